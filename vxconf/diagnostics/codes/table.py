"""The table of all codes, by code and in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vxconf.diagnostics.codes import host_codes, text_codes

if TYPE_CHECKING:
    from vxconf.diagnostics.codes.code import Code

CODES: dict[str, Code] = {
    code.code: code
    for code in (
        *text_codes.FILE,
        *text_codes.SCHEMA,
        *text_codes.RULES,
        *host_codes.REFUSALS,
        *host_codes.WARNINGS,
        *host_codes.OTHER_PLATFORM,
    )
}
