"""EFFECT: a walk through every directory below one, on descriptors and through no link, at any depth.

Whoever may write in the directories may rename what is in them during the walk. What a descriptor was opened for stays
what it is, so such a walk never leaves the tree it began in; a directory it lost is told as closed.
"""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.base.host_facts import Listing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: For a directory that is only passed through, or in which names are changed.
PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC if hasattr(os, "O_PATH") else _LIST
#: A name that went, or is no directory any more: somebody else was here.
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
#: The levels whose descriptors are kept; one further down is opened again from the level below it (`..`).
_HELD = 64


@dataclass(slots=True)
class _Level:
    """One directory on the way down.

    Attributes:
        fd: -1 while it is given up.
        key: device and inode, once the descriptor was given up.
        todo: directories in it that were not entered yet.
    """

    path: str
    fd: int
    key: tuple[int, int] = (0, 0)
    todo: list[str] = field(default_factory=list)


def below(directory: str, enters: Callable[[str], bool], *, opening: bool = False) -> Iterator[Listing]:
    """The listing of a directory, and of every one below it.

    Args:
        directory: canonical.
        enters: whether a directory further down is listed; asked once its own directory was given out.
        opening: see `open_through_no_link`.
    """
    try:
        fd = open_through_no_link(directory, opening=opening)
    except OSError as error:
        if error.errno not in _GONE:
            yield Listing(directory, closed=True)
        return
    levels = [_Level(directory, fd)]
    try:
        found = _listed(directory, fd)
        yield found
        levels[0].todo = _entered_next(found, enters)
        while levels:
            here = levels[-1]
            if not here.todo:
                yield from _left(levels)
                continue
            path = paths.join(here.path, name := here.todo.pop())
            try:
                fd = _entered(name, here.fd, _LIST, opening=opening)
            except OSError as error:
                if error.errno not in _GONE:
                    yield Listing(path, closed=True)
                continue
            found = _listed(path, fd)
            if not found.directories:  # most are such, and nobody comes back to one
                os.close(fd)
                yield found
                continue
            levels.append(_Level(path, fd))
            yield found
            levels[-1].todo = _entered_next(found, enters)
            if len(levels) > _HELD:
                there = os.fstat(here.fd)
                os.close(here.fd)
                here.fd, here.key = -1, (there.st_dev, there.st_ino)
    finally:
        for level in levels:
            if level.fd >= 0:
                os.close(level.fd)


def _listed(path: str, fd: int) -> Listing:
    try:
        with os.scandir(fd) as listing:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listing]
    except OSError:
        return Listing(path, closed=True)
    return Listing(path, [name for name, _ in found], [name for name, directory in found if directory])


def _entered_next(found: Listing, enters: Callable[[str], bool]) -> list[str]:
    above = "" if found.path == "/" else found.path
    return [name for name in found.directories if enters(f"{above}/{name}")]


def _left(levels: list[_Level]) -> Iterator[Listing]:
    """Leave the deepest level; whatever cannot be found again above it is closed."""
    done = levels.pop()
    try:
        while levels and levels[-1].fd < 0:
            above = levels[-1]
            with contextlib.suppress(OSError):
                fd = os.open("..", _LIST, dir_fd=done.fd) if done.fd >= 0 else -1
                if fd >= 0 and (os.fstat(fd).st_dev, os.fstat(fd).st_ino) == above.key:
                    above.fd = fd
                    return
                if fd >= 0:
                    os.close(fd)
            yield from (Listing(paths.join(above.path, name), closed=True) for name in above.todo)
            levels.pop()
    finally:
        if done.fd >= 0:
            os.close(done.fd)


def open_through_no_link(path: str, *, flags: int = _LIST, opening: bool = False) -> int:
    """A descriptor of the directory at an absolute path, opened through no link.

    Args:
        path: however long.
        flags: for the directory itself; those above it are passed through alone.
        opening: whether the user's own directories that are closed to the user are opened first, by their modes.

    Raises:
        OSError: it cannot be opened, or a link is on the way.
    """
    fd = os.open("/", PASS)
    parts = paths.parts(path)
    for at, name in enumerate(parts, 1):
        try:
            below = _entered(name, fd, flags if at == len(parts) else PASS, opening=opening)
        finally:
            os.close(fd)
        fd = below
    if not parts:
        os.close(fd)
        return os.open("/", flags)
    return fd


def _entered(name: str, directory: int, flags: int, *, opening: bool) -> int:
    try:
        return os.open(name, flags, dir_fd=directory)
    except PermissionError:
        if not opening:
            raise
    # The descriptor names the directory itself: no link that is put in its place is followed.
    with contextlib.suppress(PermissionError):
        open_up(directory)
    passed = os.open(name, PASS, dir_fd=directory)
    try:
        open_up(passed)
    finally:
        os.close(passed)
    return os.open(name, flags, dir_fd=directory)


def open_up(fd: int) -> None:
    """Give the user every right to a directory of the user's own."""
    mode = os.fstat(fd).st_mode
    os.chmod(f"/proc/self/fd/{fd}", mode & 0o7777 | 0o700)
