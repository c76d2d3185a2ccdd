"""EFFECT: messages sent for a caller: a copy of its bytes, and copies of the descriptors it passes along."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import struct
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from sandbox.linux.caller import caller_memory
from sandbox.linux.kernel import sockaddr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sandbox.linux.caller.caller_memory import Caller

#: Bytes of a stream that are copied at a time.
CHUNK = 1 << 20
#: More bytes than any datagram holds, whatever its buffer.
_DATAGRAM_LIMIT = 16 << 20
_CONTROL_LIMIT = 128 << 10
_DESCRIPTORS = 253  # SCM_MAX_FD, the kernel's own limit (unix(7))
_PAUSE_MS = 20
_PAUSE = 0.002
_MSG_ZEROCOPY = 0x4000000
_ID = struct.Struct("<i")


class WaitingCall:
    """A caller whose call may take its time.

    Args:
        still: raises once the caller's call waits no longer.
        nonblocking: whether the caller's call must not block.
    """

    def __init__(self, caller: Caller, sock: socket.socket, still: Callable[[], object], *, nonblocking: bool) -> None:
        self.caller = caller
        self.sock = sock
        self._still = still
        self.nonblocking = nonblocking
        self._deadline = 0.0

    def begin(self) -> None:
        """Start the socket's own time-out."""
        self._deadline = self._deadline or time.monotonic() + (send_timeout(self.sock) or float("inf"))

    def wait(self) -> bool:
        """Whether to wait on; false where the call must not block, or its time-out is over.

        Raises:
            InterruptedError: a signal wants the caller.
            OSError: the caller is gone.
        """
        if self.nonblocking:
            return False
        self.begin()
        if time.monotonic() >= self._deadline:
            return False
        self._still()
        if caller_memory.is_interrupted(self.caller.thread):
            raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))
        return True

    def wait_to_send(self) -> bool:
        """Wait until there may be room to send; the answer is that of `wait`."""
        if not self.wait():
            return False
        poll = select.poll()
        poll.register(self.sock.fileno(), select.POLLOUT)
        if poll.poll(_PAUSE_MS):
            # an unconnected socket always has room, and nothing tells whether its peer has
            time.sleep(_PAUSE)
        return True


def send_timeout(sock: socket.socket) -> float:
    """The time-out for sends (SO_SNDTIMEO, socket(7)) in seconds, 0 for none."""
    seconds, micro = struct.unpack("<qq", sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16))
    return int(seconds) + int(micro) / 1_000_000


def message(waiting: WaitingCall, parts: Sequence[tuple[int, int]], *, name: bytes, control: bytes, flags: int) -> int:
    """Send the bytes at `parts` of the caller's memory; the number of bytes sent.

    Args:
        waiting: the caller and its socket.
        parts: addresses and sizes.
        name: the address to send to, empty for the socket's peer.
        control: control messages as the caller wrote them.
        flags: the flags of the caller's call.
    """
    sock, caller = waiting.sock, waiting.caller
    stream = sock.type == socket.SOCK_STREAM
    if not stream and sum(size for _, size in parts) > _DATAGRAM_LIMIT:
        raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
    ours = (flags & ~_MSG_ZEROCOPY) | socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
    sent = 0
    with ExitStack() as stack:
        beside = _translated(caller, control, stack) if control else b""
        try:
            for data in _chunks(caller, parts, CHUNK if stream else _DATAGRAM_LIMIT):
                sent += _all(waiting, data, name=name, control=beside if not sent else b"", flags=ours)
        except OSError as error:
            if sent:
                return sent
            if error.errno == errno.EPIPE and stream and not flags & socket.MSG_NOSIGNAL:
                with suppress(OSError):
                    caller_memory.raise_signal(caller.thread, signal.SIGPIPE)
            raise
    return sent


def _all(waiting: WaitingCall, data: memoryview, *, name: bytes, control: bytes, flags: int) -> int:
    sent = 0
    while True:
        try:
            sent += caller_memory.send(
                waiting.sock.fileno(), data[sent:], name=name, control=control if not sent else b"", flags=flags
            )
            if sent == len(data):
                return sent
        except OSError as error:
            if error.errno == errno.EINTR:  # a signal to this process
                continue
            try:
                if error.errno == errno.EAGAIN and waiting.wait_to_send():
                    continue
            except OSError:
                if sent:
                    return sent
                raise
            if sent:
                return sent
            raise


def _chunks(caller: Caller, parts: Sequence[tuple[int, int]], limit: int) -> Iterator[memoryview]:
    """The bytes of all parts, at most `limit` at a time; one empty piece for a message without bytes."""
    held = bytearray()
    given = False
    for address, size in parts:
        at = 0
        while at < size:
            some = min(size - at, limit - len(held))
            held += caller.read(address + at, some)
            at += some
            if len(held) == limit:
                yield memoryview(bytes(held))
                held.clear()
                given = True
    if held or not given:
        yield memoryview(bytes(held))


def _translated(caller: Caller, raw: bytes, stack: ExitStack) -> bytes:
    """Control messages with copies of the caller's descriptors, kept until `stack` ends, and this process's own ids."""
    found = []
    try:
        for control in sockaddr.controls(raw):
            if control.level == sockaddr.SOL_SOCKET and control.kind == sockaddr.SCM_RIGHTS:
                numbers = [number for (number,) in _ID.iter_unpack(control.data[: len(control.data) & ~3])]
                if len(numbers) > _DESCRIPTORS:
                    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
                copies = [_copy(caller, number, stack) for number in numbers]
                found.append(control._replace(data=b"".join(map(_ID.pack, copies))))
            elif control.level == sockaddr.SOL_SOCKET and control.kind == sockaddr.SCM_CREDENTIALS:
                found.append(control._replace(data=struct.pack("<iii", os.getpid(), os.getuid(), os.getgid())))
            else:
                found.append(control)
    except sockaddr.MalformedAddress as error:
        raise OSError(errno.EINVAL, str(error)) from error
    return sockaddr.packed_controls(found)


def _copy(caller: Caller, number: int, stack: ExitStack) -> int:
    descriptor = caller.descriptor(number)
    stack.callback(os.close, descriptor)
    return descriptor


def control_of(caller: Caller, header: sockaddr.Header) -> bytes:
    """The control messages of a header, as the caller wrote them."""
    if header.control_size > _CONTROL_LIMIT:
        raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))
    return caller.read(header.control, header.control_size) if header.control else b""


def parts_of(caller: Caller, header: sockaddr.Header) -> list[tuple[int, int]]:
    """The addresses and sizes of a message's parts."""
    if header.part_count > sockaddr.IOV_MAX:
        raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
    return sockaddr.parts(caller.read(header.parts, 16 * header.part_count))


def question(waiting: WaitingCall, raw: bytes, parts: list[tuple[int, int]], flags: int) -> int:
    """Send a netlink message that only asks; the number of bytes sent.

    The kernel takes the privilege of a netlink message from the process that sends it (CVE-2014-0181), and this process
    is privileged over the task's own network. It therefore sends nothing that would change anything.
    """
    caller, sock = waiting.caller, waiting.sock
    if sock.proto != 0 or sum(size for _, size in parts) > CHUNK:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))
    data = b"".join(caller.read(address, size) for address, size in parts)
    try:
        to = sockaddr.parse(raw) if raw else sockaddr.Netlink(0, 0)
    except sockaddr.MalformedAddress as error:
        raise OSError(errno.EINVAL, str(error)) from error
    if to != sockaddr.Netlink(0, 0) or not sockaddr.asks_only(data):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))
    return caller_memory.send(sock.fileno(), memoryview(data), name=raw, control=b"", flags=flags | socket.MSG_DONTWAIT)
