"""EFFECT: a run's staging area in the workspace, for names a task makes beside granted ones, and its removal.

The area lies on the workspace's own file system, so that a name moves from it into place in one step (rename(2)).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.errors import NotStarted, remedy
from sandbox.scratch import grant_directories, task_tmpdir

if TYPE_CHECKING:
    from collections.abc import Iterable

_WHERE = (".vx", "tmp")
#: The list of directories made for a run; it lies beside the area's own directories, which have numbers for names.
_MADE = "made"
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class StagingArea:
    """The staging area of one run.

    Attributes:
        path: absolute; the directory holds a `.gitignore` that covers it whole.
        fd: keeps the lock that says its run lives.
        made: the directories above it that were made for it, parents first.
    """

    path: str
    fd: int
    made: tuple[str, ...]

    def note(self, made: Iterable[str]) -> None:
        """Remember directories made for the run, so that they are taken back should it be killed."""
        made = (*self.made, *made)
        with open(f"{self.path}/{_MADE}", "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write("\0".join(made))

    def remove(self) -> None:
        """Remove the area with all it holds, and the directories made for it as far as they are empty."""
        task_tmpdir.remove(self.path)
        os.close(self.fd)
        for directory in dict.fromkeys((os.path.dirname(self.path), *reversed(self.made))):
            with contextlib.suppress(OSError):
                os.rmdir(directory)


def sweep(workspace: str) -> None:
    """Remove the areas that killed runs left, if there are any."""
    where = "/".join((workspace.rstrip("/"), *_WHERE))
    if os.path.isdir(where):
        with contextlib.suppress(NotStarted):
            make(workspace).remove()


def make(workspace: str) -> StagingArea:
    """A new area below `.vx/tmp`; areas that killed runs left there are removed first.

    Args:
        workspace: canonical.

    Raises:
        NotStarted: it cannot be made, or `.vx` or `.vx/tmp` is no real directory.
    """
    while True:
        try:
            return _made(workspace)
        except FileNotFoundError as error:
            # Another run may have removed the empty directory just now; a workspace that is gone is another matter.
            if os.path.isdir(workspace):
                continue
            raise NotStarted(f"the workspace {workspace} is gone", hint="restore it") from error


def _made(workspace: str) -> StagingArea:
    made: list[str] = []
    ways = [f"{workspace.rstrip('/')}/{'/'.join(_WHERE[: at + 1])}" for at in range(len(_WHERE))]
    try:
        for here in ways:
            with contextlib.suppress(FileExistsError):
                os.mkdir(here, 0o777)
                made.append(here)
            directory = os.open(here, _LIST)
            if here != ways[-1]:
                os.close(directory)
        try:
            # The area is locked before anybody else may sweep.
            fcntl.flock(directory, fcntl.LOCK_EX)
            inherited = [path for path in _sweep(here, workspace) if path in ways]
            path = tempfile.mkdtemp(prefix="run-", dir=here)
            fd = os.open(path, _LIST)
            fcntl.flock(fd, fcntl.LOCK_EX)
        finally:
            os.close(directory)
        area = StagingArea(path, fd, tuple(path for path in ways if path in made or path in inherited))
        try:
            with open(f"{path}/.gitignore", "x", encoding="ascii") as file:
                file.write("*\n")
            area.note(())
        except OSError:
            area.remove()
            raise
    except FileNotFoundError:
        raise
    except OSError as error:
        what = "is no directory" if error.errno in (errno.ENOTDIR, errno.ELOOP) else "cannot be written"
        raise NotStarted(
            f"{here}, where a task's unfinished outputs live, {what}: {error.strerror}",
            hint=remedy(error)
            or "make it a directory this user may write, or grant directories (`dist/`) instead of names",
        ) from error
    return area


def _sweep(directory: str, workspace: str) -> list[str]:
    """Remove the areas that killed runs left; the directories that were made for those runs."""
    made: list[str] = []
    for name in os.listdir(directory):
        path = f"{directory}/{name}"
        if not name.startswith("run-"):
            continue
        try:
            fd = os.open(path, _LIST)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # its run lives
            continue
        else:
            made += _take_back(path, workspace)
            task_tmpdir.remove(path)
        finally:
            os.close(fd)
    return made


def _take_back(area: str, workspace: str) -> list[str]:
    """Remove the directories that were made for a killed run, where nothing is in them; all of them."""
    try:
        with open(f"{area}/{_MADE}", encoding="utf-8", errors="surrogateescape") as file:
            made = file.read().split("\0")
    except OSError:
        return []
    grant_directories.take_back([path for path in made if paths.under(path, workspace)])
    return made
