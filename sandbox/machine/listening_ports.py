"""EFFECT: the TCP ports of this machine that a server listens on, as `/proc/net/tcp` tells them (proc_pid_net(5))."""

from __future__ import annotations

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTEN = "0A"
# Addresses as the kernel prints them, each word in the machine's own byte order: any address, and loopback.
_IPV4 = ("00000000", "0100007F", "7F000001")
_IPV6 = ("0" * 32, "0" * 24 + "01000000", "0" * 31 + "1", "0000000000000000FFFF00000100007F")
_COLUMNS = 4


def listens(port: int) -> bool:
    """Whether something listens on a TCP port, on loopback or on every address; false where it cannot be known."""
    return any(_listens(table, port) for table in _TABLES)


def _listens(table: str, port: int) -> bool:
    try:
        with open(table, encoding="ascii", errors="replace") as lines:
            next(lines, None)
            for line in lines:
                columns = line.split()
                if len(columns) < _COLUMNS or columns[3] != _LISTEN:
                    continue
                address, _, number = columns[1].rpartition(":")
                if address in (*_IPV4, *_IPV6) and int(number, 16) == port:
                    return True
    except (OSError, ValueError):
        return False
    return False
