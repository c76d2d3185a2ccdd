"""Questions of a task's socket calls to its proxy: the name behind an address, and whether the proxy listens there."""

from __future__ import annotations

from typing import Protocol


class StandInPorts(Protocol):
    """The proxy, as the socket calls see it."""

    def name(self, address: str) -> str:
        """The name that an address stands in for, else the address; called from any thread."""

    def reach(self, address: str, port: int) -> bool:
        """Have the proxy listen at a port of an address of its own; false where it cannot. From any other thread."""

    def datagram_connected(self, asked: str) -> None:
        """Note that a datagram socket was connected to `host:port` of a stand-in; its messages are told at the end."""

    def catch_up(self) -> None:
        """Read every name the proxy has reported: a task may connect to a stand-in right after it was given."""


class NoProxyYet:
    """A stand-in for a proxy where there is none."""

    def name(self, address: str) -> str:
        """The address itself."""
        return address

    def reach(self, address: str, port: int) -> bool:
        """Never: there is no proxy."""
        del address, port
        return False

    def datagram_connected(self, asked: str) -> None:
        """Ignore it: there is no proxy."""

    def catch_up(self) -> None:
        """Ignore it: there is no proxy."""
