"""EFFECT: this machine's addresses by getifaddrs(3), for systems without netlink."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import sys

# the place and the size of the address in a socket address of each family
_PLACES = {int(socket.AF_INET): (4, 4), int(socket.AF_INET6): (8, 16)}
_LINK_LOCAL, _SCOPE = b"\xfe\x80", slice(2, 4)


class _Interface(ctypes.Structure):
    pass


# the first fields of `struct ifaddrs`, which are the same on every system
_Interface._fields_ = (
    ("next", ctypes.POINTER(_Interface)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.c_void_p),
)


def own_addresses() -> frozenset[str]:
    """Every address of this machine's interfaces, in canonical form.

    Raises:
        OSError: they cannot be read; a machine always has one, that of its loopback.
    """
    library = ctypes.CDLL(None, use_errno=True)
    try:
        ask, let_go = library.getifaddrs, library.freeifaddrs
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), "getifaddrs") from None
    first = ctypes.POINTER(_Interface)()
    if ask(ctypes.byref(first)):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "getifaddrs")
    try:
        found = frozenset(_addresses(first))
    finally:
        let_go(first)
    if not found:
        raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL), "getifaddrs")
    return found


def _addresses(interface: ctypes._Pointer[_Interface]) -> list[str]:
    found = []
    while interface:
        if address := interface.contents.address:
            family = _family(ctypes.string_at(address, 2))
            if family in _PLACES:
                at, size = _PLACES[family]
                packed = ctypes.string_at(address + at, size)
                found.append(socket.inet_ntop(family, unscoped(packed)))
        interface = interface.contents.next
    return found


def _family(head: bytes) -> int:
    # BSD's socket addresses begin with their length, and the family follows
    return int.from_bytes(head, sys.byteorder) if sys.platform == "linux" else head[1]


def unscoped(packed: bytes) -> bytes:
    """An address without the number of its link, which BSD keeps inside a link-local address."""
    if len(packed) == 16 and packed.startswith(_LINK_LOCAL):  # noqa: PLR2004  IPv6
        return packed[: _SCOPE.start] + bytes(2) + packed[_SCOPE.stop :]
    return packed
