"""The one table of diagnostic codes; `docs/diagnostics.md` is generated from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vxconf.diagnostics.codes.severity import Severity

if TYPE_CHECKING:
    from vxconf.diagnostics.codes.code import Code, Stage
    from vxconf.diagnostics.codes.table import CODES

__all__ = ["CODES", "Code", "Severity", "Stage"]


def __getattr__(name: str) -> object:
    """Loads the table once somebody has something to say: a healthy file does not pay for it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vxconf.diagnostics.codes import code, table

    globals().update(CODES=table.CODES, Code=code.Code, Stage=code.Stage)
    return globals()[name]
