"""The config service: task files in, frozen sandbox configs out.

`load` gives the workspace that a path belongs to. The workspace gives its projects, and these give their tasks.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from vxconf.version import VERSION

if TYPE_CHECKING:
    from vxconf.diagnostics.diagnostic import Diagnostic, Place, Severity
    from vxconf.workspace.project import Project, Refused, Task
    from vxconf.workspace.references import Unknown
    from vxconf.workspace.workspace import Workspace, load

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

__version__ = VERSION

_HOMES = {
    "Diagnostic": "vxconf.diagnostics.diagnostic",
    "Place": "vxconf.diagnostics.diagnostic",
    "Severity": "vxconf.diagnostics.diagnostic",
    "Unknown": "vxconf.workspace.references",
    "Project": "vxconf.workspace.project",
    "Refused": "vxconf.workspace.project",
    "Task": "vxconf.workspace.project",
    "Workspace": "vxconf.workspace.workspace",
    "load": "vxconf.workspace.workspace",
}


def __getattr__(name: str) -> object:
    """Loads a public name from its module on first use: a program loads only the modules it needs."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
