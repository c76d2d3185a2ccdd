"""EFFECT: a relay of bytes between two connections, both ways, each direction ending by itself."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

from sandbox.proxy.policy.policy import HostRefused
from sandbox.proxy.protocol.tls_front import TlsFront
from sandbox.proxy.protocol.tls_hello import MalformedHello

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.proxy.io.connection import Connection

    # called with a name, or with `None` and why it cannot be told; raises where the task may not reach it
    Named = Callable[[str | None, str], object]

#: The bytes moved at once. One buffer serves every relay, since it is empty whenever one of them waits.
CHUNK = 1 << 18
# the bytes of a greeting read at once
_GREETING = 1 << 14
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
        named: Named | None = None,
    ) -> None:
        """Move bytes until both directions have ended; where one breaks, both ends are reset.

        Args:
            client: the connection that was accepted.
            server: the connection that was opened for it.
            early: bytes read of the client already.
            named: judges the names by which the client greets its server over TLS; no greeting is sent before, nor when
                it raises.
        """
        front = None if named is None else TlsFront()
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(self._one_way(server, client, front))
                if front is not None and named is not None:
                    await self._first_words(client, server, early, front, named)
                elif early:
                    await server.send(early)
                await self._one_way(client, server)
        except* (OSError, HostRefused):
            client.close(reset=True)
            server.close(reset=True)

    async def _first_words(
        self, client: Connection, server: Connection, data: bytes, front: TlsFront, named: Named
    ) -> None:
        """Pass on what a client says first, each greeting once its name is judged, until nothing is left to judge."""
        while True:
            try:
                passed, names = front.client(data)
            except MalformedHello as error:
                named(None, str(error))
                raise OSError(errno.EPROTO, "what the server is called cannot be told") from None
            for name in names:
                named(name, "")
            if passed:
                await server.send(passed)
            if front.over:
                return
            data = await client.recv(_GREETING)
            if not data:
                rest = front.end()
                if rest is None:
                    raise OSError(errno.EPROTO, "half a greeting")
                await server.send(rest)
                return

    async def _one_way(self, source: Connection, target: Connection, front: TlsFront | None = None) -> None:
        view = self._buffer
        while True:
            for _ in range(_FAIR):
                size = await source.recv_into(view)
                if not size:
                    target.end()
                    return
                if front is not None and not front.over:
                    front.server(bytes(view[:size]))
                await target.pass_on(view[:size])
            await asyncio.sleep(0)
