"""EFFECT: whether a socket's file is one that this very task bound, as the kernel tells of the task's own network.

Every socket belongs to the network namespace of whoever made it, and no two tasks share one. A task that passes its
socket on, or whose daemon forked, is told of all the same. A socket of the host's or of another task's is not.
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import fcntl
import os
import socket
import struct
from typing import TYPE_CHECKING

from sandbox.linux.caller import caller_memory
from sandbox.linux.caller.caller_memory import Caller
from sandbox.linux.kernel import sockaddr, unix_diag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.linux.connect.unix_socket_path import SocketPath

_ANSWER_SIZE = 1 << 16
_SECONDS = struct.pack("<qq", 5, 0)
_LOW = 0xFFFFFFFF
_SIOCUNIXFILE = 0x89E0


class SocketsOfTask:
    """The sockets of one task that have a file.

    Args:
        asked: a netlink socket of the task's network, `None` where there is none.
        first: the task's process 1, as the host numbers it.
    """

    def __init__(self, asked: socket.socket | None, first: int = 0) -> None:
        self._asked = asked
        self._first = first
        self._lock = _thread.allocate_lock()
        if asked is not None:
            asked.setblocking(True)
            asked.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _SECONDS)

    @property
    def doubt(self) -> str:
        """Why a socket that the task might have made is not taken for its own."""
        if self._asked is None:
            return "this kernel does not tell whose it is"
        return "this task did not make it"

    def made(self, place: SocketPath) -> bool:
        """Whether the task bound a socket to a file; what cannot be told is no."""
        about = os.fstat(place.descriptor)
        bound = self._all()
        if about.st_ino <= _LOW and any(one.inode == about.st_ino and one.device == about.st_dev for one in bound):
            return True
        # some file systems number themselves otherwise for programs: btrfs each subvolume, overlayfs each layer
        unsure = {one.socket for one in bound if about.st_ino > _LOW or one.device != about.st_dev}
        return bool(unsure) and any(os.path.samestat(about, file) for file in self._files(unsure))

    def _files(self, sockets: set[int]) -> Iterator[os.stat_result]:
        """The files of sockets that a process of the task holds, as the kernel opens them (SIOCUNIXFILE in unix(7))."""
        names = {f"socket:[{number}]" for number in sockets}
        for process in _processes(self._first):
            try:
                held = os.listdir(f"/proc/{process}/fd")
                mine = [int(fd) for fd in held if _link(f"/proc/{process}/fd/{fd}") in names]
                with Caller(process) as caller:
                    for number in mine:
                        with caller.socket(number) as copy:
                            file = fcntl.ioctl(copy.fileno(), _SIOCUNIXFILE)
                        try:
                            yield os.fstat(file)
                        finally:
                            os.close(file)
            except (OSError, caller_memory.UnreadableMemory):  # the process, or its descriptor, is gone
                continue

    def _all(self) -> list[unix_diag.BoundFile]:
        if self._asked is None:
            return []
        found: list[unix_diag.BoundFile] = []
        with self._lock:
            try:
                self._asked.send(unix_diag.QUESTION)
                last = False
                while not last:
                    told, last = unix_diag.read(self._asked.recv(_ANSWER_SIZE))
                    found += told
            except OSError:  # a kernel without unix_diag
                self._asked = None
                return []
        return found


def _processes(first: int) -> list[int]:
    """A process and all below it; a process 1 gets the orphans of its namespace (pid_namespaces(7))."""
    found = [first] if first else []
    for process in found:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{thread}/children", encoding="ascii") as children:
                    found += map(int, children.read().split())
    return found


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def is_bound(place: SocketPath) -> bool:
    """Whether any socket is bound to a file, found out without a word to it.

    A datagram socket that is connected sends nothing, and to a socket of another kind it is not connected at all
    (unix(7), EPROTOTYPE).
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as probe:
        try:
            caller_memory.connect(probe.fileno(), sockaddr.unix(place.name))
        except OSError as error:
            return error.errno != errno.ECONNREFUSED
    return True
