"""Stand-in addresses: one for each name a task looked up, so that the address dialled tells the name."""

from __future__ import annotations

#: Names of one task that have an address of their own; each costs the proxy a few listeners.
NAMES_LIMIT = 1000

#: Addresses of nobody, before the stand-ins' own; the second's range is the task's own network's alone.
FIRST4 = "127.64.0.0"
FIRST6 = "fd76:7863:6f6e:64::"

_FIRST = (127 << 24) + (64 << 16)


class NoAddressLeft(Exception):
    """More names were looked up than have addresses."""


class StandInAddresses:
    """Which name each stand-in address is for, and the other way round."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._hosts: dict[str, str] = {}

    def give(self, host: str) -> tuple[str, str, bool]:
        """The IPv4 and the IPv6 address of a name, and whether they are new.

        Raises:
            Full: there are no more.
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
    # from 127.64.0.1; no name ends in .0 or .255, which some programs take for networks
    high, low = divmod(number - 1, 254)
    value = _FIRST + (high << 8) + low + 1
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))
