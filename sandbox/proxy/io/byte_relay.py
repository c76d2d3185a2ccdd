"""EFFECT: bytes between two connections, both ways, each direction ending by itself."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from sandbox.proxy.policy.policy import HostRefused
from sandbox.proxy.protocol import tls_hello

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.proxy.io.connection import Connection
    from sandbox.proxy.io.event_loop import EventLoop

#: Bytes moved at once; one buffer serves every relay, as it is empty whenever one of them waits.
CHUNK = 1 << 18
# how much of a greeting is read at once, and how often
_GREETING, _READS = 1 << 14, 4096
# what a client says before its server asks it to greet again, and servers pass over: those that do take much less
_EARLY = 1 << 20
# chunks after which the others have their turn
_FAIR = 8


class ByteRelay:
    """Moves bytes for every tunnel of a front."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._buffer = memoryview(bytearray(CHUNK))

    async def both(
        self,
        one: Connection,
        other: Connection,
        early: bytes = b"",
        named: Callable[[str | None], object] | None = None,
    ) -> None:
        """Until both directions have ended; where one breaks, both ends hear of it.

        Args:
            one: the client.
            other: its server.
            early: what was read of the client already.
            named: called with the name by which the client greets its server over TLS, empty for none, `None` where
                it cannot be told; nothing is sent before, and nothing at all when it raises.
        """
        back = self._loop.spawn(self._one_way(other, one))
        try:
            if named is not None:
                early = await self._greetings(one, other, early, named)
            if early:
                await other.send(early)
            await self._one_way(one, other)
            await back.join()
        except (OSError, HostRefused):
            one.close(reset=True)
            other.close(reset=True)
        finally:
            back.cancel()

    async def _greetings(
        self, client: Connection, server: Connection, data: bytes, named: Callable[[str | None], object]
    ) -> bytes:
        """Judge what a client calls its server, once or twice, and pass it on; what was read beyond that."""
        try:
            found, data = await self._first(client, data)
            if found is None or found.name:
                named(found and found.name)
            if found is None or not found.size:
                return data
            await server.send(data[: found.size])
            name, data = await self._second(client, server, data[found.size :], early=found.early)
        except tls_hello.MalformedHello:
            named(None)
            raise OSError(errno.EPROTO, "what the server is called cannot be told") from None
        if name:
            named(name)
        return data

    async def _first(self, client: Connection, data: bytes) -> tuple[tls_hello.Greeting | None, bytes]:
        for _ in range(_READS):
            if (found := tls_hello.read(data)) is not None:
                return found, data
            more = await client.recv(_GREETING)
            if not more:
                return tls_hello.Greeting(""), data
            data += more
        return None, data

    async def _second(self, client: Connection, server: Connection, data: bytes, *, early: bool) -> tuple[str, bytes]:
        passed = 0
        while passed < _EARLY:
            size, name = tls_hello.again(data, early=early)
            if size:
                await server.send(data[:size])
                data, passed = data[size:], passed + size
            if name is not None:
                return name, data
            more = await client.recv(_GREETING)
            if not more:
                break
            data += more
        return "", data

    async def _one_way(self, source: Connection, target: Connection) -> None:
        view = self._buffer
        try:
            while True:
                for _ in range(_FAIR):
                    size = await source.recv_into(view)
                    if not size:
                        target.end()
                        return
                    await target.pass_on(view[:size])
                await self._loop.turn()
        except OSError:
            # so that the other direction does not wait for ever
            source.close(reset=True)
            target.close(reset=True)
            raise
