"""Socket addresses and messages as 64-bit kernels lay them out (unix(7), ip(7), netlink(7), sendmsg(2)). Pure."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

AF_UNSPEC = 0
AF_UNIX = 1
AF_INET = 2
AF_INET6 = 10
AF_NETLINK = 16

#: The size of `struct sockaddr_storage`, the longest address the kernel takes from a caller.
STORAGE = 128
_UNIX_SIZE = 110
_INET_SIZE = 8
_INET6_SIZE = 24
_NETLINK_SIZE = 12

MSGHDR_SIZE = 56
#: A `struct mmsghdr` is a msghdr, then the number of bytes sent at this offset.
MMSGHDR_SIZE = 64
MMSG_SENT = 56
#: The most parts of one message, and the most messages of one call (UIO_MAXIOV).
IOV_MAX = 1024

SOL_SOCKET = 1
SCM_RIGHTS = 1
SCM_CREDENTIALS = 2

_MSGHDR = struct.Struct("<QixxxxQQQQixxxx")
_CMSGHDR = struct.Struct("<Qii")
_NLMSGHDR = struct.Struct("<IHHII")
_MAPPED = bytes(10) + b"\xff\xff"


class MalformedAddress(ValueError):
    """Bytes that are no such structure."""


class Path(NamedTuple):
    """A socket by a path of the file system, as spelled."""

    path: bytes


class Abstract(NamedTuple):
    """A socket by a name of its network namespace (unix(7), abstract)."""

    name: bytes


class Inet(NamedTuple):
    """A host and a port: 4 or 16 packed bytes, where an IPv4 address mapped into IPv6 has 4."""

    packed: bytes
    port: int

    @property
    def loopback(self) -> bool:
        """Whether the kernel takes the address for this machine itself."""
        if len(self.packed) == 4:  # noqa: PLR2004  IPv4
            return self.packed[0] == 127 or self.packed == bytes(4)  # noqa: PLR2004  127.0.0.0/8
        return self.packed[:15] == bytes(15) and self.packed[15] <= 1


class Netlink(NamedTuple):
    """A netlink peer; port 0 and no group mean the kernel (netlink(7))."""

    port: int
    groups: int


class Unspecified(NamedTuple):
    """No address (AF_UNSPEC); a connect with it ends a connection (connect(2))."""


Address = Path | Abstract | Inet | Netlink | Unspecified


def inet(packed: bytes, port: int) -> Inet:
    """The host and port of 4 or 16 packed bytes."""
    return Inet(packed[12:] if len(packed) > 4 and packed.startswith(_MAPPED) else packed, port)  # noqa: PLR2004  IPv4


def parse(raw: bytes) -> Address:
    """The address in a `struct sockaddr` of any family a task may have.

    Raises:
        MalformedAddress: the bytes are too few, too many, or of another family; the kernel takes none of those.
    """
    if len(raw) < 2:  # noqa: PLR2004  the family's own size
        raise MalformedAddress(f"an address of {len(raw)} bytes")
    (family,) = struct.unpack_from("<H", raw)
    if family == AF_UNIX and 2 < len(raw) <= _UNIX_SIZE:  # noqa: PLR2004  the same
        if raw[2] == 0:
            return Abstract(raw[3:])
        return Path(raw[2:].split(b"\0", 1)[0])
    if family == AF_INET and len(raw) >= _INET_SIZE:
        return Inet(raw[4:8], int.from_bytes(raw[2:4], "big"))
    if family == AF_INET6 and len(raw) >= _INET6_SIZE:
        return inet(raw[8:24], int.from_bytes(raw[2:4], "big"))
    if family == AF_NETLINK and len(raw) >= _NETLINK_SIZE:
        return Netlink(*struct.unpack_from("<II", raw, 4))
    if family == AF_UNSPEC:
        return Unspecified()
    raise MalformedAddress(f"an address of {len(raw)} bytes and family {family}")


def unix(path: bytes) -> bytes:
    """The `struct sockaddr_un` of a path of at most 107 bytes."""
    return struct.pack("<H", AF_UNIX) + path + b"\0"


class Header(NamedTuple):
    """A `struct msghdr`: addresses and sizes in the caller's memory."""

    name: int
    name_size: int
    parts: int
    part_count: int
    control: int
    control_size: int
    flags: int

    @property
    def addressed(self) -> bool:
        """Whether the message names an address to be sent to."""
        return bool(self.name and self.name_size)


def header(raw: bytes) -> Header:
    """The header in the first 56 bytes of a `struct msghdr` or `struct mmsghdr`.

    Raises:
        MalformedAddress: the bytes are fewer.
    """
    if len(raw) < MSGHDR_SIZE:
        raise MalformedAddress(f"a message header of {len(raw)} bytes, {MSGHDR_SIZE} expected")
    return Header(*_MSGHDR.unpack_from(raw))


def parts(raw: bytes) -> list[tuple[int, int]]:
    """Address and size of each `struct iovec`; a shorter rest is left out."""
    return list(struct.iter_unpack("<QQ", raw[: len(raw) & ~15]))


class Control(NamedTuple):
    """A control message (cmsg(3))."""

    level: int
    kind: int
    data: bytes


def controls(raw: bytes) -> Iterator[Control]:
    """Each control message of a buffer.

    Raises:
        MalformedAddress: a control message does not fit, for which the kernel refuses the whole call.
    """
    at = 0
    while len(raw) - at >= _CMSGHDR.size:
        size, level, kind = _CMSGHDR.unpack_from(raw, at)
        if not _CMSGHDR.size <= size <= len(raw) - at:
            raise MalformedAddress(f"a control message of {size} bytes in a buffer of {len(raw) - at}")
        yield Control(level, kind, raw[at + _CMSGHDR.size : at + size])
        at += (size + 7) & ~7


def packed_controls(messages: list[Control]) -> bytes:
    """A buffer of control messages."""
    packed = bytearray()
    for level, kind, data in messages:
        packed += _CMSGHDR.pack(_CMSGHDR.size + len(data), level, kind) + data
        packed += bytes(-len(packed) % 8)
    return bytes(packed)


def asks_only(raw: bytes) -> bool:
    """Whether a buffer of rtnetlink(7) messages holds nothing but requests for information."""
    at = 0
    while len(raw) - at >= _NLMSGHDR.size:
        size, kind, _, _, _ = _NLMSGHDR.unpack_from(raw, at)
        # message types come in fours from RTM_BASE (16) on: NEW, DEL, GET, SET (linux/rtnetlink.h)
        if size < _NLMSGHDR.size or kind < 16 or kind & 3 != 2:  # noqa: PLR2004  RTM_BASE, GET
            return False
        at += (size + 3) & ~3
    return at > 0
