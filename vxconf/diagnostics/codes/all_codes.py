"""The table of all codes, by code and in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vxconf.diagnostics.codes import (
    vx0_file,
    vx1_schema,
    vx2_field_rules,
    vx3_refusals,
    vx4_warnings,
    vx5_other_platform,
)

if TYPE_CHECKING:
    from vxconf.diagnostics.codes.code import Code

CODES: dict[str, Code] = {
    code.code: code
    for code in (
        *vx0_file.FILE,
        *vx1_schema.SCHEMA,
        *vx2_field_rules.RULES,
        *vx3_refusals.REFUSALS,
        *vx4_warnings.WARNINGS,
        *vx5_other_platform.OTHER_PLATFORM,
    )
}
