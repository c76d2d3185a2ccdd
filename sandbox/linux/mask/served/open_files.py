"""EFFECT: open files of the host: reading, writing and what else is done through a handle.

Every write goes straight through: another program's changes are then never lost under pages written back late.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from sandbox.linux.kernel import fuse_protocol, kernel_calls
from sandbox.linux.mask.served.inodes import magic

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.linux.kernel.fuse_protocol import FuseRequest
    from sandbox.linux.mask.served.inodes import Inode
    from sandbox.linux.mask.served.name_lookup import Entry
    from sandbox.linux.mask.served.passthrough_server import PassthroughServer

_KEEP_CACHE = 2
_FROM_CACHE = 1  # a write of pages, which may come through any handle
_DATA_ONLY = 1
# the kernel itself sees to the rest: appending, syncing, and no link is there to follow
_PASSED = os.O_ACCMODE | os.O_TRUNC | os.O_NOATIME
#: Of one copy at most this much, so that nothing waits long for the next.
COPY_LIMIT = 32 << 20


class SlowCall(NamedTuple):
    """Work that may wait for a disk, to be done aside: its result is the answer."""

    work: Callable[[], bytes]


@dataclass(slots=True)
class OpenFile:
    """An open file or directory.

    Attributes:
        fd: -1 for a directory that is not the host's whole.
        listing: of a directory, as it was when it was last read from its start.
    """

    fd: int
    node: Inode | None
    listing: list[Entry] = field(default_factory=list)


class OpenFiles:
    """Handles by the number the kernel knows them by, from 1."""

    def __init__(self) -> None:
        self._handles: dict[int, OpenFile] = {}
        self._next = 1

    def add(self, handle: OpenFile) -> int:
        """Its number."""
        if handle.node is not None:
            handle.node.handles += 1
        number, self._next = self._next, self._next + 1
        self._handles[number] = handle
        return number

    def get(self, number: int) -> OpenFile:
        """The handle of a number.

        Raises:
            OSError: EBADF, there is none.
        """
        handle = self._handles.get(number)
        if handle is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return handle

    def close(self, number: int) -> None:
        """Forget a handle."""
        handle = self._handles.pop(number, None)
        if handle is None:
            return
        if handle.node is not None:
            handle.node.handles -= 1
            handle.node.changed = os.fstat(handle.fd).st_ctime_ns
        if handle.fd >= 0:
            os.close(handle.fd)


def open_(server: PassthroughServer, request: FuseRequest) -> bytes:
    """OPEN of a regular file; what else can be opened the kernel opens itself."""
    node = server.node(request.node)
    if node.kind != stat.S_IFREG:
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    flags = request.fields[0]
    fd = os.open(magic(server.descriptor(node)), (flags & _PASSED) | os.O_CLOEXEC | os.O_NONBLOCK)
    server.places.table.spared(fd)
    found = os.fstat(fd)
    keep = _KEEP_CACHE if node.seen == (found.st_mtime_ns, found.st_size) else 0
    server.left(node, found)
    return fuse_protocol.open_out(server.handles.add(OpenFile(fd, node)), keep)


def read(server: PassthroughServer, request: FuseRequest) -> memoryview:
    """READ, as a whole reply."""
    handle, offset, size, *_ = request.fields
    return server.filled(request.unique, server.handles.get(handle).fd, offset, size)


def write(server: PassthroughServer, request: FuseRequest) -> bytes:
    """WRITE, all of it or an error."""
    number, offset, _, write_flags, _, flags, _ = request.fields
    handle = server.handles.get(number)
    appends = flags & os.O_APPEND and not write_flags & _FROM_CACHE
    data, done = memoryview(request.data), 0
    while done < len(data):
        rest = data[done:]
        written = (
            os.pwritev(handle.fd, [rest], offset + done, os.RWF_APPEND)
            if appends
            else os.pwrite(handle.fd, rest, offset + done)
        )
        if written == 0:
            break
        done += written
    if handle.node is not None:
        server.left(handle.node, os.fstat(handle.fd))
    return fuse_protocol.write_out(done)


def lseek(server: PassthroughServer, request: FuseRequest) -> bytes:
    """LSEEK for data and holes, the only ones that are asked."""
    handle, offset, whence, _ = request.fields
    return fuse_protocol.lseek_out(os.lseek(server.handles.get(handle).fd, offset, whence))


def fallocate(server: PassthroughServer, request: FuseRequest) -> SlowCall:
    """FALLOCATE, which may have a disk's worth to write."""
    number, offset, length, mode, _ = request.fields
    handle = server.handles.get(number)

    def work() -> bytes:
        kernel_calls.allocate(handle.fd, mode, offset, length)
        if handle.node is not None:
            server.left(handle.node, os.fstat(handle.fd))
        return b""

    return SlowCall(work)


def copy(server: PassthroughServer, request: FuseRequest) -> SlowCall:
    """COPY_FILE_RANGE between two open files."""
    source, offset, _, target, at, length, flags = request.fields
    reading, writing = server.handles.get(source), server.handles.get(target)
    if flags:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    def work() -> bytes:
        copied = os.copy_file_range(reading.fd, writing.fd, min(length, COPY_LIMIT), offset, at)
        if writing.node is not None:
            server.left(writing.node, os.fstat(writing.fd))
        return fuse_protocol.write_out(copied)

    return SlowCall(work)


def fsync(server: PassthroughServer, request: FuseRequest) -> SlowCall:
    """FSYNC and FSYNCDIR."""
    handle, flags, _ = request.fields
    fd = server.handles.get(handle).fd

    def work() -> bytes:
        if fd >= 0:
            (os.fdatasync if flags & _DATA_ONLY else os.fsync)(fd)
        return b""

    return SlowCall(work)


def release(server: PassthroughServer, request: FuseRequest) -> bytes:
    """RELEASE and RELEASEDIR."""
    server.handles.close(request.fields[0])
    return b""
