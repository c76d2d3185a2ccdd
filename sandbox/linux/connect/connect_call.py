"""EFFECT: one connect on a caller's socket, however long it takes, and what the kernel tells of that socket."""

from __future__ import annotations

import errno
import select
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

from sandbox.linux.caller import caller_memory

if TYPE_CHECKING:
    from sandbox.linux.connect.send_call import WaitingCall

# a blocked connect is interrupted so often to see whether its caller still waits; seconds, microseconds
_LOOK = struct.pack("<qq", 0, 48_000)
# the shortest time-out; the kernel rounds it up to one tick of its clock, at most 10 ms
_MOMENT = struct.pack("<qq", 0, 1)
_CLOSED = 7  # TCP_CLOSE (include/net/tcp_states.h): neither connected nor listening
_WAITS = frozenset({errno.EAGAIN, errno.EINPROGRESS, errno.EALREADY})
_SO_NETNS_COOKIE = 71


def connected(waiting: WaitingCall, address: bytes) -> int:
    """Connect; the errno, 0 for none.

    The kernel would block for as long as the connect takes, and no signal to the caller would end that. A socket that
    may block is therefore given a short time-out meanwhile, which nobody else waits on while it is not connected.
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


def at_once(waiting: WaitingCall, address: bytes) -> int | None:
    """Connect to a host where that takes no time; the errno, 0 for none, or `None` where `connected` has to go on."""
    sock = waiting.sock
    if waiting.nonblocking or sock.type != socket.SOCK_STREAM:
        return _once(sock, address)
    try:
        fresh = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _CLOSED
    except OSError:  # a protocol other than TCP
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
    """Whether a socket listens or is connected, so that a connect is answered at once."""
    if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return True
    try:
        sock.getpeername()
    except OSError:
        return False
    return True


def pending(sock: socket.socket) -> int:
    """The errno a connect in progress has come to so far, 0 for none; the caller still gets it from its own socket."""
    poll = select.poll()
    poll.register(sock.fileno(), 0)
    # a refusal in the task's own network is known before connect(2) returns
    return errno.ECONNREFUSED if any(event & select.POLLERR for _, event in poll.poll(0)) else 0


def namespace(sock: socket.socket) -> bytes | None:
    """A number of the network namespace that a socket belongs to (SO_NETNS_COOKIE, Linux 5.14), `None` if unknown."""
    try:
        return sock.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
    except OSError:
        return None
