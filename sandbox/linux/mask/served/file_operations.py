"""EFFECT: handlers of requests on open files of the host.

Each write goes to the host at once. Pages written back later would overwrite changes by other programs.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from sandbox.linux.kernel import fuse_protocol, kernel_calls
from sandbox.linux.mask.served.inodes import magic_link
from sandbox.linux.mask.served.open_files import OpenFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.linux.kernel.fuse_protocol import FuseRequest
    from sandbox.linux.mask.served.handler_context import HandlerContext

_KEEP_CACHE = 2
_FROM_CACHE = 1  # FUSE_WRITE_CACHE: a write of cached pages, which may come through any handle
_DATA_ONLY = 1
# flags passed to the host; the kernel itself handles the others: appending, syncing, links
_PASSED = os.O_ACCMODE | os.O_TRUNC | os.O_NOATIME
#: The most bytes of one copy, so that no other copy waits long.
COPY_LIMIT = 32 << 20


class SlowCall(NamedTuple):
    """Work that may wait for a disk, done by a thread; its result is the answer."""

    work: Callable[[], bytes]


def open_(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer OPEN of a regular file; the kernel opens other kinds itself."""
    node = context.node(request.node)
    if node.kind != stat.S_IFREG:
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    flags = request.fields[0]
    fd = os.open(magic_link(context.descriptor(node)), (flags & _PASSED) | os.O_CLOEXEC | os.O_NONBLOCK)
    context.names.table.admit(fd)
    found = os.fstat(fd)
    keep = _KEEP_CACHE if node.seen == (found.st_mtime_ns, found.st_size) else 0
    context.remember_state(node, found)
    return fuse_protocol.open_out(context.handles.add(OpenFile(fd, node)), keep)


def read(context: HandlerContext, request: FuseRequest) -> memoryview:
    """Answer READ, with a whole reply."""
    handle, offset, size, *_ = request.fields
    return context.file_reply(request.unique, context.handles.get(handle).fd, offset, size)


def write(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer WRITE: all of it, or an error."""
    number, offset, _, write_flags, _, flags, _ = request.fields
    handle = context.handles.get(number)
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
        context.remember_state(handle.node, os.fstat(handle.fd))
    return fuse_protocol.write_out(done)


def lseek(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer LSEEK for data and holes; the kernel handles other offsets itself."""
    handle, offset, whence, _ = request.fields
    return fuse_protocol.lseek_out(os.lseek(context.handles.get(handle).fd, offset, whence))


def fallocate(context: HandlerContext, request: FuseRequest) -> SlowCall:
    """Answer FALLOCATE, which may write a disk full."""
    number, offset, length, mode, _ = request.fields
    handle = context.handles.get(number)

    def work() -> bytes:
        kernel_calls.allocate(handle.fd, mode, offset, length)
        if handle.node is not None:
            context.remember_state(handle.node, os.fstat(handle.fd))
        return b""

    return SlowCall(work)


def copy(context: HandlerContext, request: FuseRequest) -> SlowCall:
    """Answer COPY_FILE_RANGE between two open files."""
    source, offset, _, target, at, length, flags = request.fields
    reading, writing = context.handles.get(source), context.handles.get(target)
    if flags:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    def work() -> bytes:
        copied = os.copy_file_range(reading.fd, writing.fd, min(length, COPY_LIMIT), offset, at)
        if writing.node is not None:
            context.remember_state(writing.node, os.fstat(writing.fd))
        return fuse_protocol.write_out(copied)

    return SlowCall(work)


def fsync(context: HandlerContext, request: FuseRequest) -> SlowCall:
    """Answer FSYNC and FSYNCDIR."""
    handle, flags, _ = request.fields
    fd = context.handles.get(handle).fd

    def work() -> bytes:
        if fd >= 0:
            (os.fdatasync if flags & _DATA_ONLY else os.fsync)(fd)
        return b""

    return SlowCall(work)


def release(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer RELEASE and RELEASEDIR."""
    context.handles.close(request.fields[0])
    return b""
