"""EFFECT: a stream socket in a loop, as coroutines use it."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from sandbox.proxy.io.event_loop import EventLoop

# how long, and how much of it, is read of a client that was told off
_PART_SECONDS, _PART_READS = 30.0, 64
#: Beside a kind of socket: made that way, where the system can, it need not be told.
NONBLOCKING = getattr(socket, "SOCK_NONBLOCK", 0)


class Connection:
    """A stream socket in a loop."""

    __slots__ = ("_loop", "fd", "socket")

    def __init__(self, loop: EventLoop, sock: socket.socket) -> None:
        if sock.gettimeout() != 0.0:
            sock.setblocking(False)
        self.socket = sock
        self.fd = sock.fileno()
        self._loop = loop
        loop.watch(self.fd)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self, *, reset: bool = False) -> None:
        """Close it, twice if need be; `reset` tells the other end that it is no ordinary end."""
        if self.fd < 0:
            return
        if reset:
            with contextlib.suppress(OSError):
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._loop.forget(self.fd)
        self.fd = -1
        self.socket.close()

    async def connect(self, address: tuple[Any, ...]) -> None:
        """Connect it.

        Raises:
            OSError: it cannot be.
        """
        if not self.begin(address):
            await self.connected()

    def begin(self, address: tuple[Any, ...]) -> bool:
        """Start to connect it; whether it is connected already, as to a server on this machine.

        Raises:
            OSError: it cannot be.
        """
        code = self.socket.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
        return self._connected()

    async def connected(self) -> None:
        """Wait until it is, once it was begun.

        Raises:
            OSError: it cannot be.
        """
        while not self._connected():
            await self._loop.writable(self.fd)

    def _connected(self) -> bool:
        try:
            self.socket.getpeername()
        except OSError as error:
            # one that came to nothing has no peer either, and says why
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code)) from None
            if error.errno != errno.ENOTCONN:
                raise
            return False
        return True

    def now(self, size: int) -> bytes | None:
        """What `recv` returns, where that needs no wait."""
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
                await self._loop.readable(self.fd)

    async def recv_into(self, view: memoryview) -> int:
        """As `recv`; `view` is untouched until the moment this returns."""
        while True:
            try:
                return self.socket.recv_into(view)
            except BlockingIOError:
                await self._loop.readable(self.fd)

    async def send(self, data: bytes | memoryview) -> None:
        """All of it."""
        view = memoryview(data)
        while view:
            try:
                view = view[self.socket.send(view) :]
            except BlockingIOError:
                await self._loop.writable(self.fd)

    async def pass_on(self, view: memoryview) -> None:
        """All of it, out of a buffer that others use as soon as this waits."""
        try:
            sent = self.socket.send(view)
        except BlockingIOError:
            sent = 0
        if sent < len(view):
            await self.send(bytes(view[sent:]))

    def end(self) -> None:
        """Say that nothing more is sent."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    async def part(self) -> None:
        """Say that nothing more is sent, and read what still comes for a while.

        Closing a socket with something unread in it throws away what the other end has not read yet.
        """
        self.end()
        with contextlib.suppress(OSError):  # it hung up, or takes its time
            await self._loop.within(_PART_SECONDS, self._read_on())

    async def _read_on(self) -> None:
        for _ in range(_PART_READS):
            if not await self.recv(1 << 16):
                return
