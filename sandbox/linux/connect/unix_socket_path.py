"""EFFECT: the socket that a caller's path leads to, found as the caller would find it, and held by a descriptor."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from sandbox.linux.caller import reach_as_caller

# the task's own devices, shared memory included: nothing of the host's lies below
_PRIVATE = "/dev"


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
    descriptor = reach_as_caller.reach(thread, path)
    try:
        found = os.readlink(f"/proc/self/fd/{descriptor}")
        return SocketPath(found, descriptor, stat.S_ISSOCK(os.fstat(descriptor).st_mode))
    except OSError:
        os.close(descriptor)
        raise


def own(path: str, places: tuple[str, ...]) -> bool:
    """Whether sockets at a canonical path are the task's own: in one of `places`, or among its devices."""
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in (*places, _PRIVATE))


def on_host(thread: int, path: str) -> str:
    """The path on the host of a name that is hidden from the caller."""
    base = os.readlink(f"/proc/{thread}/cwd") if not path.startswith("/") else "/"
    return reach_as_caller.walked(thread, path, base=base)


def is_socket(path: str) -> bool:
    """Whether the host has a socket there; nothing in the task's own places is the host's."""
    try:
        return not path.startswith(_PRIVATE + "/") and stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False
