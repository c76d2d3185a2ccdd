"""Stand-in addresses, one for each name that a task looked up: a connection to one tells the name. Pure."""

from __future__ import annotations

#: The most names of one task that have a stand-in; each costs the proxy a few listeners.
NAMES_LIMIT = 1000

#: The addresses before the first stand-ins, which are nobody's. FIRST6's range exists in the task's network alone.
FIRST4 = "127.64.0.0"
FIRST6 = "fd76:7863:6f6e:64::"

_FIRST = (127 << 24) + (64 << 16)


class NoAddressLeft(Exception):
    """A lookup of more names than there are stand-ins for."""


class StandInAddresses:
    """The name of each stand-in address, and the stand-ins of each name."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._hosts: dict[str, str] = {}

    def give(self, host: str) -> tuple[str, str, bool]:
        """The IPv4 and the IPv6 address of a name, and whether they are new.

        Raises:
            NoAddressLeft: every stand-in is taken.
        """
        number = self._numbers.get(host)
        fresh = number is None
        if number is None:
            if len(self._numbers) >= NAMES_LIMIT:
                raise NoAddressLeft
            number = self._numbers[host] = len(self._numbers) + 1
        four, six = _four(number), f"{FIRST6}{number:x}"
        self._hosts[four] = self._hosts[six] = host
        return four, six, fresh

    def host(self, address: str) -> str:
        """The name an address stands in for, or the address itself."""
        return self._hosts.get(address, address)


def _four(number: int) -> str:
    # stand-ins start at 127.64.0.1 and leave out .0 and .255, which some programs take for networks
    high, low = divmod(number - 1, 254)
    value = _FIRST + (high << 8) + low + 1
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))
