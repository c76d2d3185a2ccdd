"""The one table of diagnostic codes; `docs/diagnostics.md` is generated from it."""

from __future__ import annotations

from vxconf.codes import host, text
from vxconf.codes.model import Code, Severity, Stage

__all__ = ["CODES", "Code", "Severity", "Stage"]

#: Every code there is, by its name, in the order of the names.
CODES: dict[str, Code] = {
    code.code: code for code in (*text.FILE, *text.SCHEMA, *text.RULES, *host.REFUSALS, *host.WARNINGS, *host.NOT_YET)
}
