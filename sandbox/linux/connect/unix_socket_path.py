"""EFFECT: the socket that a caller's path leads to, found as the caller would find it, and held by a descriptor."""

from __future__ import annotations

import errno
import os
import stat
from functools import partial
from typing import NamedTuple

from sandbox.linux.caller import caller_memory
from sandbox.linux.caller.links_as_caller import CallFails, TaskTree, Unread
from sandbox.linux.caller.resolve_path_as_caller import walk

_OPEN = os.O_PATH | os.O_CLOEXEC
_DIRECTORY = os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY
# the task's own devices, shared memory included: nothing of the host's lies below
_PRIVATE = "/dev"
_TRIES = 4


class SocketPath(NamedTuple):
    """A file that a path led to.

    Attributes:
        path: absolute, as the caller sees it, with no link left.
        descriptor: an O_PATH descriptor of just that file.
        socket: whether the file is a socket.
    """

    path: str
    descriptor: int
    socket: bool

    @property
    def name(self) -> bytes:
        """A path by which this process reaches this very file (proc(5), /proc/pid/fd)."""
        return b"/proc/self/fd/%d" % self.descriptor


def reach(thread: int, path: bytes) -> SocketPath:
    """Follow a path as the caller's own call would, from its root and its working directory.

    Raises:
        OSError: the caller is to be answered with it.
    """
    flags = _OPEN | (os.O_DIRECTORY if path.endswith(b"/") else 0)
    if path.startswith(b"/"):
        descriptor = _from_root(thread, path, flags)
    else:
        here = os.open(f"/proc/{thread}/cwd", _DIRECTORY)
        try:
            beneath = caller_memory.RESOLVE_BENEATH | caller_memory.RESOLVE_NO_MAGICLINKS
            descriptor = caller_memory.open_at(here, path, flags, beneath)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EAGAIN):
                raise
            base = os.fsencode(os.readlink(f"/proc/self/fd/{here}"))
            descriptor = _from_root(thread, base + b"/" + path, flags)
        finally:
            os.close(here)
    try:
        found = os.readlink(f"/proc/self/fd/{descriptor}")
        return SocketPath(found, descriptor, stat.S_ISSOCK(os.fstat(descriptor).st_mode))
    except OSError:
        os.close(descriptor)
        raise


def _from_root(thread: int, path: bytes, flags: int) -> int:
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
                path = os.fsencode(_walked(thread, os.fsdecode(path)))
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    finally:
        os.close(root)


def own(path: str, places: tuple[str, ...]) -> bool:
    """Whether sockets at a canonical path are the task's own: in one of `places`, or among its devices."""
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in (*places, _PRIVATE))


def on_host(thread: int, path: str) -> str:
    """The path on the host of a name that is hidden from the caller."""
    base = os.readlink(f"/proc/{thread}/cwd") if not path.startswith("/") else "/"
    return _walked(thread, path, base=base)


def _walked(thread: int, path: str, *, base: str = "/") -> str:
    """The path with no link left, the host's hidden ones followed, too.

    Raises:
        OSError: it cannot be told.
    """
    with TaskTree() as tree:
        tree.masked = True
        try:
            return walk(partial(tree.link, thread), path, base=base, follows=True).path
        except (Unread, CallFails) as error:
            raise OSError(error.errno, os.strerror(error.errno)) from error


def is_socket(path: str) -> bool:
    """Whether the host has a socket there; nothing in the task's own places is the host's."""
    try:
        return not path.startswith(_PRIVATE + "/") and stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False
