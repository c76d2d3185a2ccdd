"""EFFECT: the relay between two loopbacks: a task's servers on the host, and the host's in the task's network."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from sandbox.proxy.io.connection import Connection
from sandbox.proxy.policy.service_addresses import LOOPBACK, LOOPBACK6

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.proxy.io.byte_relay import ByteRelay


class LoopbackPorts:
    """The relay of connections between the two loopbacks.

    Args:
        inside: makes a stream socket of a family in the task's network.
    """

    def __init__(self, relay: ByteRelay, inside: Callable[[int], socket.socket]) -> None:
        self._relay = relay
        self._inside = inside

    async def inward(self, connection: Connection, port: int) -> None:
        """Relay a connection from the host to the task's own server."""
        await self._lead(connection, port, self._inside)

    async def outward(self, connection: Connection, port: int) -> None:
        """Relay a connection from the task to the host's server."""
        await self._lead(connection, port, lambda family: socket.socket(family, socket.SOCK_STREAM))

    async def _lead(self, connection: Connection, port: int, new: Callable[[int], socket.socket]) -> None:
        try:
            other = await self._dial(new(socket.AF_INET), (LOOPBACK, port))
        except OSError:
            # a server of "localhost" may listen on ::1 alone, which is its first address on some machines
            other = await self._dial(new(socket.AF_INET6), (LOOPBACK6, port))
        with other:
            await self._relay.both(connection, other)

    async def _dial(self, sock: socket.socket, address: tuple[str, int]) -> Connection:
        connection = Connection(sock)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await connection.connect(address)
        except BaseException:
            connection.close()
            raise
        return connection
