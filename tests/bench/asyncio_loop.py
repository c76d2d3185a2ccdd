"""The proxy's event loop once more, on top of asyncio: what `proxy_loop.py` compares the project's own loop with.

It has the methods of `EventLoop` that connections, relays and the dialler call, so the very same proxy runs on either.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

T = TypeVar("T")


class AsyncioTask:
    """An asyncio task under the names of `LoopTask`."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self.task.done()

    @property
    def result(self) -> Any:
        """What it returned, `None` where it has not or raised."""
        ended = self.task.done() and not self.task.cancelled() and self.task.exception() is None
        return self.task.result() if ended else None

    def cancel(self) -> None:
        """End it where it waits."""
        self.task.cancel()

    async def join(self) -> Any:
        """What it returned; what it raised is raised."""
        try:
            return await asyncio.shield(self.task)
        except asyncio.CancelledError:
            if self.task.cancelled():
                raise ConnectionAbortedError("it was given up") from None
            raise


class AsyncioLoop:
    """Runs coroutines until it is stopped.

    Args:
        loop: an event loop of asyncio's or one that stands in for it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiters: dict[int, dict[str, asyncio.Future[None]]] = {}

    def watch(self, fd: int) -> None:
        """Know a descriptor that does not block, until `forget`."""
        self._waiters[fd] = {}

    def forget(self, fd: int) -> None:
        """Before it is closed; whoever waits for it is told."""
        for kind, waiter in self._waiters.pop(fd, {}).items():
            self._unregister(kind, fd)
            if not waiter.done():
                waiter.set_exception(ConnectionAbortedError("it was closed"))

    def _unregister(self, kind: str, fd: int) -> None:
        (self._loop.remove_reader if kind == "read" else self._loop.remove_writer)(fd)

    async def _wait(self, kind: str, fd: int) -> None:
        waiters = self._waiters.get(fd)
        if waiters is None:
            raise ConnectionAbortedError("it was closed")
        waiter = waiters[kind] = self._loop.create_future()
        add = self._loop.add_reader if kind == "read" else self._loop.add_writer
        add(fd, _end, waiter)
        try:
            await waiter
        finally:
            if waiters.pop(kind, None) is not None and fd in self._waiters:
                self._unregister(kind, fd)

    async def readable(self, fd: int) -> None:
        """Wait until a read is worth another try."""
        await self._wait("read", fd)

    async def writable(self, fd: int) -> None:
        """Wait until a write is worth another try."""
        await self._wait("write", fd)

    async def turn(self) -> None:
        """Let the others go on."""
        await asyncio.sleep(0)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def within(self, seconds: float, work: Awaitable[T]) -> T:
        """What `work` comes to.

        Raises:
            TimeoutError: it took longer, and was given up.
        """
        async with asyncio.timeout(seconds):
            return await work

    async def any_done(self, tasks: list[AsyncioTask]) -> None:
        """Wait until one of some tasks has ended."""
        await asyncio.wait([one.task for one in tasks], return_when=asyncio.FIRST_COMPLETED)

    async def thread(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises in a thread of its own."""
        return await self._loop.run_in_executor(None, work)

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> AsyncioTask:
        """Have a coroutine run beside the others, from the next turn on."""
        return AsyncioTask(self._loop.create_task(coroutine))

    def begin(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """The same: before Python 3.12 asyncio has no task that begins at once."""
        self.spawn(coroutine)

    def run(self) -> None:
        """Run until the process is ended."""
        self._loop.run_forever()


def _end(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def relay_streams(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A CONNECT proxy as asyncio's streams have one write it, which judges nothing: the least a stream proxy costs."""
    head = await reader.readuntil(b"\r\n\r\n")
    host, _, port = head.split(b" ", 2)[1].decode().rpartition(":")
    there, back = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    await asyncio.gather(_one_way(reader, back), _one_way(there, writer), return_exceptions=True)
    for one in (back, writer):
        one.close()


async def _one_way(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(1 << 18):
        target.write(data)
        await target.drain()
    target.write_eof()
