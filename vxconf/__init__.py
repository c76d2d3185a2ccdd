"""The config service: task files in, frozen sandbox configs out.

`load` gives the workspace a path belongs to; everything else is reached from there.
"""

from __future__ import annotations

# so spelled, a start-up path does not load `typing`
TYPE_CHECKING = False
if TYPE_CHECKING:
    from vxconf.diagnostics import Diagnostic, Place, Severity
    from vxconf.naming import Unknown
    from vxconf.tasks import Refused, Task
    from vxconf.workspace import Project, Workspace, load

__all__ = [
    "Diagnostic",
    "Place",
    "Project",
    "Refused",
    "Severity",
    "Task",
    "Unknown",
    "Workspace",
    "__version__",
    "load",
]

__version__ = "0.1.0"

_HOMES = {
    "Diagnostic": "vxconf.diagnostics",
    "Place": "vxconf.diagnostics",
    "Severity": "vxconf.diagnostics",
    "Unknown": "vxconf.naming",
    "Project": "vxconf.workspace",
    "Refused": "vxconf.tasks",
    "Task": "vxconf.tasks",
    "Workspace": "vxconf.workspace",
    "load": "vxconf.workspace",
}


def __getattr__(name: str) -> object:
    """Loads a public name from its room on first use, so that a room costs only who enters it."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  start-up time

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
