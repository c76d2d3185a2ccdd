"""The places that no task on Linux sees without a grant: the workspace, walls, others' temporary directories, secrets.

A hermetic task sees nothing outside the workspace but what a process needs to start. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.planning.operations import Origin

if TYPE_CHECKING:
    from sandbox.base.host_facts import Files
    from sandbox.planning.mark_tree import MarkTree
    from sandbox.planning.path_marks import Hide
    from sandbox.request.request import Request

_WORKSPACE = Origin(reason="nothing in the workspace exists unless it is granted")
_TEMP_ROOT = Origin(reason="other tasks' temporary directories do not exist")
_HERMETIC = Origin(reason="the task is hermetic: nothing outside exists unless it is granted")
_STARTS = Origin(reason="a process needs it to start")
_OWN = Origin(reason="every sandbox has its own")

#: The directories a process needs to start, besides those of the root whose name begins with `lib`.
_SYSTEM = ("/usr", "/bin", "/sbin", "/etc", "/nix/store", "/gnu/store")


def hide(request: Request, files: Files, tree: MarkTree, temp: str | None) -> None:
    """Mark every place that is hidden but for what is granted at it or below it.

    Args:
        request: what may be reached.
        files: the host's file system, as it is now.
        tree: takes the marks.
        temp: the task's own temporary directory, canonical.
    """
    temp_root = request.facts.temp_root
    if request.config.hermetic:
        _only_what_starts(files, tree)
    tree.hide(request.config.workspace, "content", _WORKSPACE, always=True)
    if files.kind(temp_root) is Kind.DIRECTORY or (temp is not None and paths.at_or_under(temp, temp_root)):
        tree.hide(temp_root, "content", _TEMP_ROOT)
    for wall in request.walls:
        there = files.kind(wall.path) is not None
        # A cache that is not there yet may be made while the task runs, even by another task.
        if there or (wall.closed and paths.under(wall.path, request.config.workspace)):
            place = wall.path if there else _first_missing(wall.path, files)
            tree.hide(place, "absent", Origin(reason=f"{wall.reason} is a wall"))
    for wall in request.around:
        if files.kind(wall.path) is Kind.DIRECTORY:
            tree.hide(wall.path, "content", Origin(reason=f"{wall.reason} is a wall"))
    for store in request.stores:
        # A secret of the system is laid over: a cover of all of `/etc` would double the mounts of the plan.
        how: Hide = "over" if store.path in request.facts.secrets else "blank"
        tree.hide(store.path, how, Origin(reason=f"{store.reason} is closed unless a grant names it"))


def _first_missing(path: str, files: Files) -> str:
    above = [path, *paths.parents(path)]
    return next(one for one in reversed(above) if files.kind(one) is None)


def _only_what_starts(files: Files, tree: MarkTree) -> None:
    """Have the root show what a process needs to start, and nothing else of the host's."""
    tree.hide("/", "content", _HERMETIC, always=True)
    for path in ("/dev", "/proc"):
        tree.fresh(path, _OWN)
    libraries = (paths.join("/", name) for name in files.entries("/") if name.startswith("lib"))
    for path in (*_SYSTEM, *libraries):
        if files.kind(path) in {Kind.DIRECTORY, Kind.LINK}:
            tree.read(path, _STARTS)
