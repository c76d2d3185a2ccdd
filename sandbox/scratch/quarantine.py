"""EFFECT: the quarantine for files a run left where it may leave none; they are kept, outside the workspace."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from sandbox.base import paths
from sandbox.machine import walk_directories

#: The place of set-aside files, below the directory of all tasks' temporary directories, which no task sees.
_KEPT = "set-aside"


class Quarantine:
    """The place one run's files are moved to, each by itself; it is made for the first."""

    def __init__(self, temp_root: str) -> None:
        self._root = paths.join(temp_root, _KEPT)
        self._place = ""
        self._count = 0

    def put(self, path: str, *, or_remove: bool = False) -> str:
        """Move a file or a directory at a canonical path away; its fate, for people.

        Args:
            path: not followed, should it be a link.
            or_remove: whether a file that cannot be moved is renamed where it is, or removed.
        """
        holder, name = -1, paths.name(path)
        try:
            target = paths.join(self._room(), name)
            # Other tasks may be putting links on the way there.
            holder = walk_directories.open_through_no_link(
                paths.parent(path), flags=walk_directories.PASS, opening=or_remove
            )
            if or_remove:
                _make_movable(holder, name)
            _move(holder, name, target)
        except OSError as error:
            why = f"could not be moved away ({error.strerror or error})"
            return _disarmed(holder, path, why) if or_remove and holder >= 0 else why
        finally:
            if holder >= 0:
                os.close(holder)
        return f"was moved to {target}"

    def _room(self) -> str:
        """A new directory for one file, since a name may be as long as names can be."""
        if not self._place:
            import tempfile

            os.makedirs(self._root, mode=0o700, exist_ok=True)
            self._place = tempfile.mkdtemp(dir=self._root)
        room = paths.join(self._place, str(self._count))
        self._count += 1
        os.mkdir(room)
        return room


def _make_movable(holder: int, name: str) -> None:
    """Take back the modes by which a task keeps its own directories from being changed."""
    if os.access(f"/proc/self/fd/{holder}", os.W_OK | os.X_OK) and not _is_closed_directory(holder, name):
        return
    with contextlib.suppress(OSError):
        walk_directories.open_up(holder)
    with contextlib.suppress(OSError):
        fd = os.open(name, walk_directories.PASS, dir_fd=holder)
        try:
            # A directory changes when it gets another parent (rename(2), EACCES).
            walk_directories.open_up(fd)
        finally:
            os.close(fd)


def _is_closed_directory(holder: int, name: str) -> bool:
    mode = os.stat(name, dir_fd=holder, follow_symlinks=False).st_mode
    return stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU


def _move(holder: int, name: str, target: str) -> None:
    try:
        os.rename(name, target, src_dir_fd=holder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        import shutil

        # A move to another file system copies.
        shutil.move(f"/proc/self/fd/{holder}/{name}", target)


def _disarmed(holder: int, path: str, why: str) -> str:
    """Give a file or a directory that cannot be moved a name that says nothing, or remove the file."""
    name = paths.name(path)
    for harmless in (f"{name[:200]}.set-aside-{os.urandom(4).hex()}", f"set-aside-{os.urandom(8).hex()}"):
        with contextlib.suppress(OSError):
            os.rename(name, harmless, src_dir_fd=holder, dst_dir_fd=holder)
            return f"{why} and was renamed to {harmless}"
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=holder)
        return f"{why} and was removed"
    return why
