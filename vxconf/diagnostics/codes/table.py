"""Every code there is, by its name, in the order of the names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vxconf.diagnostics.codes import host_codes as host
from vxconf.diagnostics.codes import text_codes as text

if TYPE_CHECKING:
    from vxconf.diagnostics.codes.code import Code

CODES: dict[str, Code] = {
    code.code: code for code in (*text.FILE, *text.SCHEMA, *text.RULES, *host.REFUSALS, *host.WARNINGS, *host.NOT_YET)
}
