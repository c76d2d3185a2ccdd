"""EFFECT: a stream socket that does not block, as coroutines use it.

Each call is tried first and waits only where it would block. asyncio's own `sock_recv_into` is not used: it fills the
buffer in a callback, before the coroutine goes on, and all relays share one buffer.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable

# how long, and how many times, a refused client is read from after it was answered
_PART_SECONDS, _PART_READS = 30.0, 64
#: A flag for the kind of a new socket, which then does not block from the start; 0 where the system has no such flag.
NONBLOCKING = getattr(socket, "SOCK_NONBLOCK", 0)


class Connection:
    """A stream socket of the running event loop."""

    __slots__ = ("_loop", "_reading", "_writing", "fd", "socket")

    def __init__(self, sock: socket.socket) -> None:
        if sock.gettimeout() != 0.0:
            sock.setblocking(False)
        self.socket = sock
        self.fd = sock.fileno()
        self._loop = asyncio.get_running_loop()
        self._reading: asyncio.Future[None] | None = None
        self._writing: asyncio.Future[None] | None = None

    def __enter__(self) -> Self:
        """The connection itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self, *, reset: bool = False) -> None:
        """Close it, twice if need be; a coroutine that waits for it gets `ConnectionAbortedError`.

        Args:
            reset: whether the other end is told that this is no ordinary end, by a TCP reset.
        """
        if self.fd < 0:
            return
        if reset:
            with contextlib.suppress(OSError):
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        for waiter, remove in ((self._reading, self._loop.remove_reader), (self._writing, self._loop.remove_writer)):
            if waiter is not None:
                remove(self.fd)
                if not waiter.done():
                    waiter.set_exception(ConnectionAbortedError("it was closed"))
        self.fd = -1
        self.socket.close()

    async def _readable(self) -> None:
        self._reading = waiter = self._loop.create_future()
        self._loop.add_reader(self.fd, _wake, waiter, self._loop.remove_reader, self.fd)
        try:
            await waiter
        finally:
            # another reader may wait by now, where this one was cancelled
            if self._reading is waiter:
                self._reading = None
                if self.fd >= 0:
                    self._loop.remove_reader(self.fd)

    async def _writable(self) -> None:
        self._writing = waiter = self._loop.create_future()
        self._loop.add_writer(self.fd, _wake, waiter, self._loop.remove_writer, self.fd)
        try:
            await waiter
        finally:
            if self._writing is waiter:
                self._writing = None
                if self.fd >= 0:
                    self._loop.remove_writer(self.fd)

    async def connect(self, address: tuple[Any, ...]) -> None:
        """Connect it.

        Raises:
            OSError: the address cannot be reached.
        """
        if not self.begin(address):
            await self.connected()

    def begin(self, address: tuple[Any, ...]) -> bool:
        """Start to connect it; true where it is connected already, as to a server on this machine.

        Raises:
            OSError: the address cannot be reached.
        """
        code = self.socket.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
        return self._connected()

    async def connected(self) -> None:
        """Wait until a begun connect has come to an end.

        Raises:
            OSError: the address cannot be reached.
        """
        while not self._connected():
            await self._writable()

    def _connected(self) -> bool:
        try:
            self.socket.getpeername()
        except OSError as error:
            # a socket whose connect failed has no peer either, and says why (socket(7), SO_ERROR)
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code)) from None
            if error.errno != errno.ENOTCONN:
                raise
            return False
        return True

    def now(self, size: int) -> bytes | None:
        """At most `size` bytes where some have come, `None` where `recv` would wait."""
        try:
            return self.socket.recv(size)
        except BlockingIOError:
            return None

    async def recv(self, size: int) -> bytes:
        """At most `size` bytes; none at the end."""
        while True:
            try:
                return self.socket.recv(size)
            except BlockingIOError:
                await self._readable()

    async def recv_into(self, view: memoryview) -> int:
        """Read into a buffer that is untouched until the moment this returns; the number of bytes, 0 at the end."""
        while True:
            try:
                return self.socket.recv_into(view)
            except BlockingIOError:
                await self._readable()

    async def send(self, data: bytes | memoryview) -> None:
        """Send all of it."""
        view = memoryview(data)
        while view:
            try:
                view = view[self.socket.send(view) :]
            except BlockingIOError:
                await self._writable()

    async def pass_on(self, view: memoryview) -> None:
        """Send all of a buffer that others use as soon as this waits."""
        try:
            sent = self.socket.send(view)
        except BlockingIOError:
            sent = 0
        if sent < len(view):
            await self.send(bytes(view[sent:]))

    def end(self) -> None:
        """Tell the other end that nothing more is sent."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    async def part(self) -> None:
        """Tell the other end that nothing more is sent, and read what still comes for a while.

        Closing a socket with unread bytes in it resets the connection, which throws away what the other end has not
        read yet (RFC 1122, 4.2.2.13).
        """
        self.end()
        with contextlib.suppress(OSError):  # the client hung up, or takes its time
            async with asyncio.timeout(_PART_SECONDS):
                for _ in range(_PART_READS):
                    if not await self.recv(1 << 16):
                        return


def _wake(waiter: asyncio.Future[None], remove: Callable[[int], bool], fd: int) -> None:
    # the kernel tells of a ready descriptor at each turn: told once, it is not asked for again
    remove(fd)
    if not waiter.done():
        waiter.set_result(None)
