"""EFFECT: bytes between two connections, both ways, each direction ending by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.network import hello
from sandbox.network.policy import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.network.connection import Connection
    from sandbox.network.loop import Loop

#: Bytes moved at once; one buffer serves every relay, as it is empty whenever one of them waits.
CHUNK = 1 << 18
# how much of a greeting is read at once, and how often
_GREETING, _READS = 1 << 14, 4096
# chunks after which the others have their turn
_FAIR = 8


class Relay:
    """Moves bytes for every tunnel of a front."""

    def __init__(self, loop: Loop) -> None:
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
                early = await self._greeting(one, early, named)
            if early:
                await other.send(early)
            await self._one_way(one, other)
            await back.join()
        except (OSError, Refused):
            one.close(reset=True)
            other.close(reset=True)
        finally:
            back.cancel()

    async def _greeting(self, client: Connection, data: bytes, named: Callable[[str | None], object]) -> bytes:
        name: str | None = None
        try:
            for _ in range(_READS):
                if (name := hello.server_name(data)) is not None:
                    break
                more = await client.recv(_GREETING)
                if not more:
                    return data
                data += more
        except hello.Malformed:
            pass  # it is judged as one that tells no name for certain
        if name != "":
            named(name)
        return data

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
