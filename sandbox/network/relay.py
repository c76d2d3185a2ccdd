"""EFFECT: bytes between two connections, both ways, each direction ending by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.network.connection import Connection
    from sandbox.network.loop import Loop

#: Bytes moved at once; one buffer serves every relay, as it is empty whenever one of them waits.
CHUNK = 1 << 18
# chunks after which the others have their turn
_FAIR = 8


class Relay:
    """Moves bytes for every tunnel of a front."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._buffer = memoryview(bytearray(CHUNK))

    async def both(self, one: Connection, other: Connection) -> None:
        """Until both directions have ended; where one breaks, both ends hear of it."""
        back = self._loop.spawn(self._one_way(other, one))
        try:
            await self._one_way(one, other)
            await back.join()
        except OSError:
            one.close(reset=True)
            other.close(reset=True)
        finally:
            back.cancel()

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
