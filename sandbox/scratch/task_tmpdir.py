"""EFFECT: a temporary directory of its own for every task, and its removal.

The directory above them is this user's own real directory, mode 0700, in a parent nobody else may rewrite. In a shared
`/tmp` another user may plant the name first.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from sandbox.contract.errors import NotStarted, remedy

if TYPE_CHECKING:
    from collections.abc import Iterator


_PREFIX = "task-"
# The system makes these; a container may not know the user they belong to.
_SYSTEMS = ("/tmp", "/var/tmp")  # noqa: S108  looked at, not used
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class TaskTmpdir(NamedTuple):
    """The temporary directory of one task.

    Attributes:
        path: absolute.
        fd: keeps the lock that says its run lives, whatever process numbers mean to who looks.
    """

    path: str
    fd: int

    def remove(self) -> None:
        """Remove the directory with all it holds, see `remove`."""
        remove(self.path)
        os.close(self.fd)


def make(root: str) -> TaskTmpdir:
    """A new empty directory below `root`, mode 0700; makes `root` too.

    Raises:
        NotStarted: `root` is not ours alone, or nothing can be made there.
    """
    parent = os.path.dirname(root)
    hint = "set VX_TMPDIR to a directory of your own that nobody else may write"
    try:
        above = os.stat(parent)
        with contextlib.suppress(FileExistsError):
            os.mkdir(root, 0o700)
        own = os.lstat(root)
    except OSError as error:
        raise NotStarted(
            f"the temporary directory {root} cannot be made: {error.strerror}", hint=remedy(error) or hint
        ) from error
    if not stat.S_ISDIR(own.st_mode) or own.st_uid != os.getuid():
        raise NotStarted(f"{root} is not a directory of this user", hint=f"remove it, or {hint}")
    if above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX:
        raise NotStarted(f"{parent} lets other users rename what is in it", hint=hint)
    if above.st_uid not in (0, os.getuid()) and not (parent in _SYSTEMS and _is_nobody(above.st_uid)):
        raise NotStarted(f"{parent} belongs to another user", hint=hint)
    try:
        if own.st_mode & 0o077:
            os.chmod(root, 0o700)
        with _locked(root, fcntl.LOCK_SH):
            path = tempfile.mkdtemp(prefix=_PREFIX, dir=root)
            try:
                return TaskTmpdir(path, _held(path))
            except OSError:  # a file system without locks, or no descriptor left
                os.rmdir(path)
                raise
    except OSError as error:
        raise NotStarted(
            f"no temporary directory can be made in {root}: {error.strerror}", hint=remedy(error) or hint
        ) from error


def _is_nobody(user: int) -> bool:
    """Whether a number stands for all users outside of this user namespace (user_namespaces(7), the overflow user)."""
    try:
        with open("/proc/self/uid_map", encoding="ascii") as mapped:
            ranges = [tuple(map(int, line.split())) for line in mapped]
    except OSError:
        return False
    return not any(first <= user < first + count for first, _, count in ranges)


def _held(path: str) -> int:
    fd = os.open(path, _LIST)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError:
        os.close(fd)
        raise
    return fd


def sweep(root: str) -> None:
    """Remove the directories of tasks whose executor is gone, in a `root` that is this user's own."""
    stale: list[str] = []
    try:
        own = os.lstat(root)
        if not stat.S_ISDIR(own.st_mode) or own.st_uid != os.getuid():
            return
        # A directory is locked before anybody else may look at it.
        with _locked(root, fcntl.LOCK_EX):
            for name in os.listdir(root):
                with contextlib.suppress(OSError):
                    if name.startswith(_PREFIX) and _is_stale(f"{root}/{name}"):
                        stale.append(name)
    except OSError:
        return
    for name in stale:
        remove(f"{root}/{name}")


def _is_stale(path: str) -> bool:
    try:
        fd = os.open(path, _LIST)
    except PermissionError:
        # A task may have taken the rights to its own directory.
        _unlock(path, None)
        fd = os.open(path, _LIST)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


@contextlib.contextmanager
def _locked(directory: str, how: int) -> Iterator[None]:
    fd = os.open(directory, _LIST)
    try:
        fcntl.flock(fd, how)
        yield
    finally:
        os.close(fd)


def remove(path: str) -> None:
    """Remove a task's directory with all it holds, however deep, locked or linked; files that cannot go stay.

    No path is used on the way: a task may have made one longer than any call takes, or may still be dying.
    """
    try:
        _unlock(path, None)
        top = _open(path, None)
    except OSError:
        return
    # The task cannot have taken this name.
    prefix, count = f".{os.urandom(16).hex()}-", 0
    try:
        todo = os.listdir(top)
        while todo:
            name = todo.pop()
            for inner, directory in _emptied(name, top):
                # Directories are hoisted, so that neither descriptors nor recursion grow with the depth.
                count += 1
                try:
                    _unlock(inner, directory)
                    os.rename(inner, f"{prefix}{count}", src_dir_fd=directory, dst_dir_fd=top)
                except OSError:
                    continue
                todo.append(f"{prefix}{count}")
    finally:
        os.close(top)
    with contextlib.suppress(OSError):
        os.rmdir(path)


def _emptied(name: str, top: int) -> Iterator[tuple[str, int]]:
    """Remove a name; a directory's own directories are handed out first, to be moved away."""
    try:
        os.unlink(name, dir_fd=top)
    except (IsADirectoryError, PermissionError):
        pass
    except OSError:
        return
    else:
        return
    try:
        _unlock(name, top)
        directory = _open(name, top)
    except OSError:
        return
    try:
        for inner in os.listdir(directory):
            try:
                os.unlink(inner, dir_fd=directory)
            except OSError:
                yield inner, directory
    finally:
        os.close(directory)
    with contextlib.suppress(OSError):
        os.rmdir(name, dir_fd=top)


def _open(name: str, directory: int | None) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)


def _unlock(name: str, directory: int | None) -> None:
    """Give this user all rights to a directory, and to nothing a link leads to."""
    if not hasattr(os, "O_PATH"):  # macOS changes a link's own mode
        os.chmod(name, 0o700, dir_fd=directory, follow_symlinks=False)
        return
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.chmod(f"/proc/self/fd/{fd}", 0o700)
    finally:
        os.close(fd)
