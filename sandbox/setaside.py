"""EFFECT: takes what a run left under names other programs execute out of the workspace, without losing it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from sandbox import paths
from sandbox.executed import Executed, existing
from sandbox.results import Violation

if TYPE_CHECKING:
    from sandbox.facts import Files

#: Below the directory of all tasks' temporary directories, which no task sees.
_KEPT = "set-aside"
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def set_aside(executed: Executed, *, workspace: str, temp_root: str, files: Files) -> tuple[Violation, ...]:
    """Move away every such name that was not there when the run began; call when nothing of it lives any more.

    The call that made one was refused, so this is what a task got past that by racing itself, or what somebody
    else made meanwhile: it is kept and its new place told.
    """
    if not executed.roots:
        return ()
    now = existing(executed.roots, workspace, files, git_config=executed.git_config)
    found: list[Violation] = []
    place = ""
    for path in now:
        if path in executed.kept or not os.path.lexists(path):
            continue
        import shutil  # noqa: PLC0415  start-up time: next to no run comes here

        if not place:
            import tempfile  # noqa: PLC0415  see above

            os.makedirs(paths.join(temp_root, _KEPT), mode=0o700, exist_ok=True)
            place = tempfile.mkdtemp(dir=paths.join(temp_root, _KEPT))
        target = paths.join(place, f"{len(found)}-{paths.name(path)}")
        fate = f"was moved to {target}"
        holder = -1
        try:
            holder = _holder(path)
            # not followed, should it be a link; copied where the place is on another file system
            shutil.move(f"/proc/self/fd/{holder}/{paths.name(path)}", target)
        except OSError as error:
            fate = f"could not be moved away ({error.strerror or error})"
            if holder >= 0:
                with contextlib.suppress(OSError):
                    os.unlink(paths.name(path), dir_fd=holder)
        finally:
            if holder >= 0:
                os.close(holder)
        line = f"{path} is a name other programs execute: it was made during the run and {fate}"
        found.append(Violation(kind="write", operation="create", target=path, path=path, errno="", line=line))
    return tuple(found)


def _holder(path: str) -> int:
    """The directory a canonical path is in, opened through no link: other tasks may be putting some there."""
    fd = os.open("/", _DIRECTORY)
    for name in paths.parts(paths.parent(path)):
        try:
            below = os.open(name, _DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd
