"""Questions about the AF_UNIX sockets of a network namespace, and the kernel's answers (sock_diag(7)). Pure.

The files that sockets are bound to are told by the inode and the file system, as the kernel itself has them
(`net/unix/diag.c`, UNIX_DIAG_VFS): no name is asked for, and none is looked up.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

#: The protocol of the netlink socket (NETLINK_SOCK_DIAG).
PROTOCOL = 4

_AF_UNIX = 1
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_SHOW_VFS = 2
_ERROR, _DONE = 2, 3
_VFS = 1  # UNIX_DIAG_VFS
_ALL = 0xFFFFFFFF

_HEADER = struct.Struct("<IHHII")
_QUESTION = struct.Struct("<BBHIIIII")
_ANSWER = struct.Struct("<BBBBIII")
_ATTRIBUTE = struct.Struct("<HH")
_FILE = struct.Struct("<II")

#: The question after every socket and the file it is bound to.
QUESTION = _HEADER.pack(_HEADER.size + _QUESTION.size, _BY_FAMILY, _REQUEST_DUMP, 1, 0) + _QUESTION.pack(
    _AF_UNIX, 0, 0, _ALL, 0, _SHOW_VFS, _ALL, _ALL
)


class BoundFile(NamedTuple):
    """The file of a socket.

    Attributes:
        inode: the low 32 bits of the inode's number.
        device: the file system's number, as `os.makedev` and `st_dev` have it.
        socket: the socket's own inode, as links in `/proc/<pid>/fd` name it.
    """

    inode: int
    device: int
    socket: int


class MalformedAnswer(ValueError):
    """Bytes that are no answer."""


def read(data: bytes) -> tuple[list[BoundFile], bool]:
    """The files that one datagram of the answer tells of, and whether it is the last.

    Raises:
        MalformedAnswer: the datagram has another shape.
        OSError: the kernel refuses to answer.
    """
    found: list[BoundFile] = []
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, at)
        if not _HEADER.size <= length <= len(data) - at:
            raise MalformedAnswer(f"a message of {length} bytes where {len(data) - at} are left")
        body = data[at + _HEADER.size : at + length]
        if kind == _DONE:
            return found, True
        if kind == _ERROR:
            raise OSError(-int.from_bytes(body[:4], "little", signed=True), "the kernel tells of no sockets")
        found += _bound(body)
        at += (length + 3) & ~3
    return found, False


def _bound(body: bytes) -> list[BoundFile]:
    if len(body) < _ANSWER.size:
        raise MalformedAnswer(f"a socket in {len(body)} bytes")
    number = _ANSWER.unpack_from(body)[4]
    at = _ANSWER.size
    while at + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        if length < _ATTRIBUTE.size:
            raise MalformedAnswer(f"an attribute of {length} bytes")
        if kind == _VFS:
            inode, device = _FILE.unpack_from(body, at + _ATTRIBUTE.size)
            return [BoundFile(inode, _as_stat(device), number)]
        at += (length + 3) & ~3
    return []


def _as_stat(device: int) -> int:
    """The kernel's own number of a device (MKDEV in `linux/kdev_t.h`) as stat(2) tells it."""
    major, minor = device >> 20, device & 0xFFFFF
    return (minor & 0xFF) | major << 8 | (minor & ~0xFF) << 12
