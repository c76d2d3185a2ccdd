"""The FUSE kernel protocol: requests from bytes, replies to bytes. Pure.

Source: `include/uapi/linux/fuse.h`, protocol 7.31 and later. A request is one NamedTuple whatever its operation: its
names, and the integers of its body in the order of the kernel's struct (`BODIES`).
"""

from __future__ import annotations

import os
import struct
from enum import IntEnum
from typing import NamedTuple

MAJOR = 7
MINOR = 31
ROOT = 1

HEADER_SIZE = 40
_HEADER = struct.Struct("<IIQQIIIHH")
_OUT_HEADER = struct.Struct("<IiQ")
_PAIR = struct.Struct("<QQ")
_NUMBER = struct.Struct("<Q")
_ENTRY = struct.Struct("<4QII")
_DIRENT = struct.Struct("<QQII")


class MalformedFuseRequest(ValueError):
    """Bytes that are no request of this protocol."""


class Op(IntEnum):
    """Operations the kernel asks for; a number that is not listed stays an integer."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    READLINK = 5
    SYMLINK = 6
    MKNOD = 8
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    LINK = 13
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    SETXATTR = 21
    GETXATTR = 22
    LISTXATTR = 23
    REMOVEXATTR = 24
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    GETLK = 31
    SETLK = 32
    SETLKW = 33
    ACCESS = 34
    CREATE = 35
    INTERRUPT = 36
    BMAP = 37
    DESTROY = 38
    IOCTL = 39
    POLL = 40
    NOTIFY_REPLY = 41
    BATCH_FORGET = 42
    FALLOCATE = 43
    READDIRPLUS = 44
    RENAME2 = 45
    LSEEK = 46
    COPY_FILE_RANGE = 47
    SYNCFS = 50
    TMPFILE = 51
    STATX = 52


#: Operations that the kernel expects no answer to.
SILENT = frozenset({Op.FORGET, Op.BATCH_FORGET, Op.INTERRUPT, Op.NOTIFY_REPLY})


class InitFlag(IntEnum):
    """Bits of the handshake that this project asks for, or declines on purpose."""

    ASYNC_READ = 1 << 0
    ATOMIC_O_TRUNC = 1 << 3
    BIG_WRITES = 1 << 5
    AUTO_INVAL_DATA = 1 << 12
    DO_READDIRPLUS = 1 << 13
    READDIRPLUS_AUTO = 1 << 14
    WRITEBACK_CACHE = 1 << 16
    PARALLEL_DIROPS = 1 << 18
    MAX_PAGES = 1 << 22
    CACHE_SYMLINKS = 1 << 23
    HANDLE_KILLPRIV_V2 = 1 << 28


def _body(layout: str, names: int = 0, *, data: bool = False) -> tuple[struct.Struct, int, bool]:
    return struct.Struct("<" + layout), names, data


_NOTHING = _body("")
_TRANSFER = _body("QQIIQII")  # fh, offset, size, read or write flags, lock owner, flags, padding
_RELEASE = _body("QIIQ")  # fh, flags, release flags, lock owner
_SYNC = _body("QII")  # fh, flags, padding
_LOCK = _body("QQQQIIII")  # fh, owner, start, end, type, pid, flags, padding
_NODE = _body("4I", 1)

#: The body of each operation: its integers, how many names follow them, whether data follows those.
BODIES: dict[int, tuple[struct.Struct, int, bool]] = {
    Op.LOOKUP: _body("", 1),
    Op.FORGET: _body("Q"),  # nlookup
    Op.GETATTR: _body("IIQ"),  # flags, padding, fh
    # valid, padding, fh, size, lock owner, atime, mtime, ctime, three nsecs, mode, unused, uid, gid, unused
    Op.SETATTR: _body("II6Q8I"),
    Op.READLINK: _NOTHING,
    Op.SYMLINK: _body("", 2),  # the name, then what it points at
    Op.MKNOD: _NODE,  # mode, rdev, umask, padding
    Op.MKDIR: _body("2I", 1),  # mode, umask
    Op.UNLINK: _body("", 1),
    Op.RMDIR: _body("", 1),
    Op.RENAME: _body("Q", 2),  # new directory; old name, new name
    Op.LINK: _body("Q", 1),  # old node
    Op.OPEN: _body("2I"),  # flags, open flags
    Op.READ: _TRANSFER,
    Op.WRITE: (_TRANSFER[0], 0, True),
    Op.STATFS: _NOTHING,
    Op.RELEASE: _RELEASE,
    Op.FSYNC: _SYNC,
    Op.SETXATTR: _body("2I", 1, data=True),  # size, flags
    Op.GETXATTR: _body("2I", 1),  # size, padding
    Op.LISTXATTR: _body("2I"),
    Op.REMOVEXATTR: _body("", 1),
    Op.FLUSH: _RELEASE,
    Op.INIT: _body("4I"),  # major, minor, max_readahead, flags
    Op.OPENDIR: _body("2I"),
    Op.READDIR: _TRANSFER,
    Op.RELEASEDIR: _RELEASE,
    Op.FSYNCDIR: _SYNC,
    Op.GETLK: _LOCK,
    Op.SETLK: _LOCK,
    Op.SETLKW: _LOCK,
    Op.ACCESS: _body("2I"),  # mask, padding
    Op.CREATE: _NODE,  # flags, mode, umask, open flags
    Op.INTERRUPT: _body("Q"),  # the unique of the request to interrupt
    Op.BMAP: _body("QII"),
    Op.DESTROY: _NOTHING,
    Op.IOCTL: _body("QIIQII", data=True),
    Op.POLL: _body("QQII"),
    Op.NOTIFY_REPLY: _body("", data=True),
    Op.FALLOCATE: _body("QQQII"),
    Op.READDIRPLUS: _TRANSFER,
    Op.RENAME2: _body("QII", 2),  # new directory, flags, padding; old name, new name
    Op.LSEEK: _body("QQII"),
    Op.COPY_FILE_RANGE: _body("7Q"),
    Op.SYNCFS: _body("Q"),
    Op.TMPFILE: _NODE,
    Op.STATX: _body("IIQII"),  # getattr flags, reserved, fh, statx flags, statx mask
}


class FuseRequest(NamedTuple):
    """A request of the kernel's.

    Attributes:
        op: an `Op`, or the bare number of an operation not known here, of whose body nothing is decoded.
        unique: what the reply must carry.
        node: the inode the request is about.
        pid: the caller, as the server's pid namespace numbers it; 0 for the kernel itself.
        fields: the integers of the body (`BODIES`); node, count, node, count, ... for a BATCH_FORGET.
        names: the names of the body, bytes that are no UTF-8 as surrogates.
        data: the bytes after names and integers; those of a WRITE are a part of the parsed buffer, not a copy.
    """

    op: int
    unique: int
    node: int
    uid: int
    gid: int
    pid: int
    fields: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    data: bytes | memoryview = b""


def parse(raw: bytes | memoryview) -> FuseRequest:
    """A request as it is read from `/dev/fuse`.

    Raises:
        MalformedFuseRequest: the bytes are too few for the header, the stated length or the body, or a name has no end.
    """
    if len(raw) < HEADER_SIZE:
        raise MalformedFuseRequest(f"a request of {len(raw)} bytes, at least {HEADER_SIZE} expected")
    length, op, unique, node, uid, gid, pid, _, _ = _HEADER.unpack_from(raw)
    if not HEADER_SIZE <= length <= len(raw):
        raise MalformedFuseRequest(f"a request that says {length} bytes in {len(raw)} bytes")
    if op != Op.WRITE:
        raw = bytes(raw)
    if op == Op.BATCH_FORGET:
        return FuseRequest(Op.BATCH_FORGET, unique, node, uid, gid, pid, _forgets(raw, length))
    body = BODIES.get(op)
    if body is None:
        return FuseRequest(op, unique, node, uid, gid, pid)
    layout, count, has_data = body
    at = HEADER_SIZE + layout.size
    if at > length:
        raise MalformedFuseRequest(f"a {Op(op).name} of {length} bytes, at least {at} expected")
    fields = layout.unpack_from(raw, HEADER_SIZE)
    names = []
    for _ in range(count):
        end = bytes(raw).find(b"\0", at, length)
        if end < 0:
            raise MalformedFuseRequest(f"a {Op(op).name} whose name has no end")
        names.append(os.fsdecode(bytes(raw[at:end])))
        at = end + 1
    return FuseRequest(op, unique, node, uid, gid, pid, fields, tuple(names), raw[at:length] if has_data else b"")


def _forgets(raw: bytes | memoryview, length: int) -> tuple[int, ...]:
    if length < HEADER_SIZE + 8:
        raise MalformedFuseRequest(f"a BATCH_FORGET of {length} bytes")
    (count,) = struct.unpack_from("<I", raw, HEADER_SIZE)
    end = HEADER_SIZE + 8 + count * _PAIR.size
    if end > length:
        raise MalformedFuseRequest(f"a BATCH_FORGET of {count} nodes in {length} bytes")
    return struct.unpack_from(f"<{2 * count}Q", raw, HEADER_SIZE + 8)


def reply(unique: int, data: bytes = b"") -> bytes:
    """A successful answer."""
    return _OUT_HEADER.pack(_OUT_HEADER.size + len(data), 0, unique) + data


def error(unique: int, errno: int) -> bytes:
    """An answer that fails with `errno` (positive)."""
    return _OUT_HEADER.pack(_OUT_HEADER.size, -errno, unique)


def init_out(request: FuseRequest, *, want: int, max_write: int, max_background: int = 64) -> bytes:
    """A `fuse_init_out` that answers INIT.

    A kernel of a later major version asks again after this answer, with our version.

    Args:
        request: the INIT, which says what the kernel offers.
        want: the `InitFlag` bits to accept where the kernel offers them.
        max_write: bytes of the largest WRITE.
        max_background: requests the kernel may have under way by itself, such as readahead.
    """
    _, _, readahead, offered = request.fields
    pages = max(1, -(-max_write // 4096))
    return struct.pack(
        "<4IHHIIHHI7I",
        MAJOR,
        MINOR,
        readahead,
        offered & want,
        max_background,
        max_background * 3 // 4,
        max_write,
        1,
        pages,
        0,
        *(0,) * 8,
    )


def attr(
    ino: int,
    mode: int,
    *,
    size: int = 0,
    nlink: int = 1,
    owner: tuple[int, int] = (0, 0),
    times: tuple[int, int, int] = (0, 0, 0),
    rdev: int = 0,
    blocks: int = -1,
    block_size: int = 4096,
) -> bytes:
    """A `fuse_attr`; owner is uid and gid, times are atime, mtime and ctime in nanoseconds.

    Blocks count 512 bytes; without `blocks` they are as many as the size needs.
    """
    seconds = [t // 1_000_000_000 & (1 << 64) - 1 for t in times]
    rest = [t % 1_000_000_000 for t in times]
    blocks = -(-size // 512) if blocks < 0 else blocks
    return struct.pack("<6Q10I", ino, size, blocks, *seconds, *rest, mode, nlink, *owner, rdev, block_size, 0)


def renumbered(attributes: bytes, ino: int) -> bytes:
    """The `fuse_attr` of another inode that is alike in everything else."""
    return _NUMBER.pack(ino) + attributes[_NUMBER.size :]


ATTR_SIZE = 88
ENTRY_SIZE = 40 + ATTR_SIZE


def entry_out(node: int, attributes: bytes, *, entry_valid: int, attr_valid: int) -> bytes:
    """A `fuse_entry_out` for a name that exists; validities in seconds."""
    return _ENTRY.pack(node, 0, entry_valid, attr_valid, 0, 0) + attributes


def negative_entry(valid: int) -> bytes:
    """A `fuse_entry_out` for a name that does not exist, which the kernel may remember for `valid` seconds."""
    return struct.pack("<4QII", 0, 0, valid, 0, 0, 0) + bytes(ATTR_SIZE)


def attr_out(attributes: bytes, *, valid: int) -> bytes:
    """A `fuse_attr_out`; `valid` in seconds."""
    return struct.pack("<QII", valid, 0, 0) + attributes


def open_out(handle: int = 0, flags: int = 0) -> bytes:
    """A `fuse_open_out`."""
    return struct.pack("<QII", handle, flags, 0)


def write_out(size: int) -> bytes:
    """A `fuse_write_out`: how many bytes were written."""
    return struct.pack("<II", size, 0)


def xattr_size_out(size: int) -> bytes:
    """A `fuse_getxattr_out`: how many bytes the value has."""
    return struct.pack("<II", size, 0)


#: The `fuse_entry_out` of a READDIRPLUS entry whose attributes are not told.
NO_ENTRY = bytes(ENTRY_SIZE)


def lseek_out(offset: int) -> bytes:
    """A `fuse_lseek_out`."""
    return struct.pack("<Q", offset)


def statfs_out(
    *, blocks: int = 0, free: int = 0, available: int = 0, files: int = 0, files_free: int = 0, size: int = 4096
) -> bytes:
    """A `fuse_statfs_out`; counts are in blocks of `size` bytes."""
    return struct.pack("<5Q4I6I", blocks, free, available, files, files_free, size, 255, size, 0, *(0,) * 6)


def readlink_out(target: str) -> bytes:
    """A READLINK's answer: the target of a link."""
    return os.fsencode(target)


def dirent(ino: int, name: str, kind: int, next_offset: int) -> bytes:
    """A `fuse_dirent`, padded; `next_offset` is where reading goes on."""
    raw = os.fsencode(name)
    entry = _DIRENT.pack(ino, next_offset, len(raw), kind) + raw
    return entry + bytes(-len(entry) % 8)


def dirents(entries: list[tuple[int, str, int]], offset: int, size: int) -> bytes:
    """The entries of a directory from `offset` on that fit in `size` bytes.

    Args:
        entries: inode, name and kind (the file type bits of a mode, shifted right by 12) of each; they must not change
            while a directory is open, since an offset is an index into them.
        offset: the index of the first entry wanted.
        size: bytes the kernel has room for.
    """
    out: list[bytes] = []
    used = 0
    for index in range(min(offset, len(entries)), len(entries)):
        ino, name, kind = entries[index]
        entry = dirent(ino, name, kind, index + 1)
        used += len(entry)
        if used > size:
            break
        out.append(entry)
    return b"".join(out)
