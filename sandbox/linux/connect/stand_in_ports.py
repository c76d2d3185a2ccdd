"""What makes a task's connections asks of its proxy: which name an address stands for, and that it listens there."""

from __future__ import annotations

from typing import Protocol


class StandInPorts(Protocol):
    """The proxy, as the doors see it."""

    def name(self, address: str) -> str:
        """The name a stand-in address is for, or the address; from any thread."""

    def reach(self, address: str, port: int) -> bool:
        """Have the proxy listen at a port of an address of its own; false where it cannot. From any other thread."""

    def lettered(self, asked: str) -> None:
        """A datagram socket was connected to `host:port` of a stand-in: what is sent there is told at the end."""

    def catch_up(self) -> None:
        """Hear of every name that was given so far: one that a task dials was told of before it knew it."""


class NoProxyYet:
    """No proxy at all."""

    def name(self, address: str) -> str:
        """The address."""
        return address

    def reach(self, address: str, port: int) -> bool:
        """No."""
        del address, port
        return False

    def lettered(self, asked: str) -> None:
        """Nothing comes of it."""

    def catch_up(self) -> None:
        """There is nothing to hear."""
