"""EFFECT: a relay of bytes between two connections, both ways, each direction ending by itself."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

from sandbox.proxy.policy.policy import HostRefused
from sandbox.proxy.protocol import tls_hello

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.proxy.io.connection import Connection

#: The bytes moved at once. One buffer serves every relay, since it is empty whenever one of them waits.
CHUNK = 1 << 18
# the bytes of a greeting read at once, and the most reads
_GREETING, _READS = 1 << 14, 4096
# early data (RFC 8446, 4.2.10) that a client sends before its server asks it to greet again; servers take much less
_EARLY = 1 << 20
# chunks moved in one go, before other connections have their turn
_FAIR = 8


class ByteRelay:
    """The mover of every tunnel's bytes in one proxy."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(CHUNK))

    async def both(
        self,
        client: Connection,
        server: Connection,
        early: bytes = b"",
        named: Callable[[str | None], object] | None = None,
    ) -> None:
        """Move bytes until both directions have ended; where one breaks, both ends are reset.

        Args:
            client: the connection that was accepted.
            server: the connection that was opened for it.
            early: bytes read of the client already.
            named: called with the name by which the client greets its server over TLS, empty for none, `None` where
                it cannot be told; nothing is sent before, and nothing at all when it raises.
        """
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(self._one_way(server, client))
                if named is not None:
                    early = await self._greetings(client, server, early, named)
                if early:
                    await server.send(early)
                await self._one_way(client, server)
        except* (OSError, HostRefused):
            client.close(reset=True)
            server.close(reset=True)

    async def _greetings(
        self, client: Connection, server: Connection, data: bytes, named: Callable[[str | None], object]
    ) -> bytes:
        """Judge each name that a client greets its server by, and pass the greetings on; the bytes read beyond them."""
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
        while True:
            for _ in range(_FAIR):
                size = await source.recv_into(view)
                if not size:
                    target.end()
                    return
                await target.pass_on(view[:size])
            await asyncio.sleep(0)
