"""Every code there is, by its name, in the order of the names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vxconf.codes import host, text

if TYPE_CHECKING:
    from vxconf.codes.model import Code

CODES: dict[str, Code] = {
    code.code: code for code in (*text.FILE, *text.SCHEMA, *text.RULES, *host.REFUSALS, *host.WARNINGS, *host.NOT_YET)
}
