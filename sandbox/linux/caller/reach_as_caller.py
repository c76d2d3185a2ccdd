"""EFFECT: the file that a caller's path leads to, found by the kernel as for the caller, and held by a descriptor."""

from __future__ import annotations

import errno
import os
from functools import partial

from sandbox.linux.caller import caller_memory
from sandbox.linux.caller.links_as_caller import CallFails, TaskTree, Unread
from sandbox.linux.caller.resolve_path_as_caller import walk

_OPEN = os.O_PATH | os.O_CLOEXEC
_DIRECTORY = os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY
_TRIES = 4


def reach(thread: int, path: bytes, *, start: int | None = None, follows: bool = True) -> int:
    """An O_PATH descriptor of the file that a caller's own call would find, in the caller's own mounts.

    Args:
        thread: the caller, as the host numbers it.
        path: the path as spelled.
        start: a copy of the descriptor that a relative path starts from, `None` for the working directory.
        follows: whether a link in the last place is followed.

    Raises:
        OSError: the caller is to be answered with it.
    """
    flags = _OPEN | (os.O_DIRECTORY if path.endswith(b"/") else 0) | (0 if follows else os.O_NOFOLLOW)
    if path.startswith(b"/"):
        return _from_root(thread, path, flags, follows=follows)
    here = os.open(f"/proc/{thread}/cwd", _DIRECTORY) if start is None else os.dup(start)
    try:
        beneath = caller_memory.RESOLVE_BENEATH | caller_memory.RESOLVE_NO_MAGICLINKS
        return caller_memory.open_at(here, path, flags, beneath)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EAGAIN):
            raise
        base = os.fsencode(os.readlink(f"/proc/self/fd/{here}"))
        return _from_root(thread, base + b"/" + path, flags, follows=follows)
    finally:
        os.close(here)


def _from_root(thread: int, path: bytes, flags: int, *, follows: bool) -> int:
    root = os.open(f"/proc/{thread}/root", _DIRECTORY)
    inside = caller_memory.RESOLVE_IN_ROOT | caller_memory.RESOLVE_NO_MAGICLINKS
    try:
        for _ in range(_TRIES):
            try:
                return caller_memory.open_at(root, path, flags, inside)
            except OSError as error:
                if error.errno != errno.EAGAIN and not path.startswith((b"/proc/", b"/dev/")):
                    raise
                if error.errno not in (errno.EAGAIN, errno.ENOENT, errno.ELOOP, errno.EXDEV):
                    raise
                # a magic link of /proc leads where it leads for its reader: the caller is to be that, not this process
                path = os.fsencode(walked(thread, os.fsdecode(path), follows=follows))
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    finally:
        os.close(root)


def walked(thread: int, path: str, *, base: str = "/", follows: bool = True) -> str:
    """The path with no link left, the host's hidden ones followed, too.

    Raises:
        OSError: it cannot be told.
    """
    with TaskTree() as tree:
        tree.masked = True
        try:
            return walk(partial(tree.link, thread), path, base=base, follows=follows).path
        except (Unread, CallFails) as error:
            raise OSError(error.errno, os.strerror(error.errno)) from error
