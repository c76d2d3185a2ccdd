"""EFFECT: one connect on a caller's socket, however long it takes, and what its socket tells of itself."""

from __future__ import annotations

import errno
import select
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

from sandbox.linux.caller import caller_memory

if TYPE_CHECKING:
    from sandbox.linux.connect.send_call import Waiting

# a blocked connect looks so often whether its caller still waits; seconds, microseconds
_LOOK = struct.pack("<qq", 0, 48_000)
# rounded up to one tick of the kernel's clock, at most a hundredth of a second
_MOMENT = struct.pack("<qq", 0, 1)
_CLOSED = 7  # of a connection (linux/tcp_states.h): neither made nor listened for
_WAITS = frozenset({errno.EAGAIN, errno.EINPROGRESS, errno.EALREADY})
_SO_NETNS_COOKIE = 71


def connected(waiting: Waiting, address: bytes) -> int:
    """Connect; the errno, 0 for none.

    The kernel would block in here for as long as it takes, and no signal of the caller's would end that. So a socket
    that may block is given a short time-out for the while: nobody else waits on one that is not connected yet.
    """
    sock = waiting.sock
    fresh = sock.type in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET) and not _settled(sock)
    before = sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16) if fresh and not waiting.nonblocking else b""
    try:
        if before:
            waiting.begin()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _LOOK)
        while True:
            code = _once(sock, address)
            if code == errno.EINTR or (before and code in _WAITS and waiting.wait()):
                continue
            return code
    finally:
        if before:
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, before)


def at_once(waiting: Waiting, address: bytes) -> int | None:
    """Connect to a host, if that takes no time: the errno, 0 for none, or `None` where `connected` has to go on."""
    sock = waiting.sock
    if waiting.nonblocking or sock.type != socket.SOCK_STREAM:
        return _once(sock, address)
    try:
        fresh = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _CLOSED
    except OSError:  # another protocol
        return None
    if not fresh:
        return None
    before = sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _MOMENT)
        code = _once(sock, address)
    finally:
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, before)
    return None if code == errno.EINTR or code in _WAITS else code


def _once(sock: socket.socket, address: bytes) -> int:
    try:
        caller_memory.connect(sock.fileno(), address)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def _settled(sock: socket.socket) -> bool:
    """Whether it listens or is connected: the answer then comes at once."""
    if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return True
    try:
        sock.getpeername()
    except OSError:
        return False
    return True


def pending(sock: socket.socket) -> int:
    """How a connect that goes on by itself has ended so far, without taking the answer from the caller."""
    poll = select.poll()
    poll.register(sock.fileno(), 0)
    # in the task's own network the answer is there before the call returns
    return errno.ECONNREFUSED if any(event & select.POLLERR for _, event in poll.poll(0)) else 0


def namespace(sock: socket.socket) -> bytes | None:
    """Which network a socket is of (Linux 5.14), `None` where the kernel does not tell."""
    try:
        return sock.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
    except OSError:
        return None
