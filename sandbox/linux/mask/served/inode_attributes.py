"""EFFECT: handlers of requests about an inode of the host: attributes, permission, free space."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from sandbox.linux.kernel import fuse_protocol, kernel_calls
from sandbox.linux.kernel.set_id_bits import without_set_id
from sandbox.linux.mask.served.inodes import magic_link

if TYPE_CHECKING:
    from sandbox.linux.kernel.fuse_protocol import FuseRequest
    from sandbox.linux.mask.served.handler_context import HandlerContext
    from sandbox.linux.mask.served.inodes import Inode

#: Seconds for which the kernel may remember a name or attributes of the host.
REMEMBER = 1

_MODE, _UID, _GID, _SIZE, _ATIME, _MTIME, _HANDLE, _ATIME_NOW, _MTIME_NOW = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_XATTRS = "user."


def attributes(found: os.stat_result, owner: tuple[int, int]) -> bytes:
    """A `fuse_attr` of the host's attributes, except that everything belongs to `owner`."""
    major, minor = os.major(found.st_rdev), os.minor(found.st_rdev)
    return fuse_protocol.attr(
        found.st_ino,
        found.st_mode,
        size=found.st_size,
        nlink=found.st_nlink,
        owner=owner,
        times=(found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns),
        rdev=(minor & 0xFF) | (major << 8) | ((minor & ~0xFF) << 12),
        blocks=found.st_blocks,
        block_size=found.st_blksize,
    )


def entry(context: HandlerContext, node: Inode, found: os.stat_result) -> bytes:
    """A `fuse_entry_out` of a node."""
    about = attributes(found, context.owner)
    return fuse_protocol.entry_out(node.number, about, entry_valid=REMEMBER, attr_valid=REMEMBER)


def attribute_reply(context: HandlerContext, node: Inode, handle: int = 0) -> bytes:
    """A `fuse_attr_out` of a node, through an open handle where there is one."""
    fd = context.handles.get(handle).fd if handle else context.descriptor(node)
    return fuse_protocol.attr_out(attributes(os.fstat(fd), context.owner), valid=REMEMBER)


def getattr_(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer GETATTR."""
    flags, _, handle = request.fields
    return attribute_reply(context, context.node(request.node), handle if flags & 1 else 0)


def setattr_(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer SETATTR: mode, owner, size and times."""
    valid, _, handle, size, _, atime, mtime, _, atime_ns, mtime_ns, _, mode, _, uid, gid, _ = request.fields
    node = context.node(request.node)
    fd = context.descriptor(node)
    opened = context.handles.get(handle).fd if valid & _HANDLE else -1
    if valid & (_UID | _GID):
        _set_owner(context, fd, uid if valid & _UID else -1, gid if valid & _GID else -1)
    if valid & _MODE:
        os.chmod(magic_link(fd), without_set_id(mode, os.fstat(fd).st_mode))
    if valid & _SIZE:
        if opened >= 0:
            os.ftruncate(opened, size)
        else:
            os.truncate(magic_link(fd), size)
        context.remember_state(node, os.fstat(fd))
    if valid & (_ATIME | _MTIME):
        kernel_calls.set_times(
            fd,
            _time(atime, atime_ns, told=valid & _ATIME, now=valid & _ATIME_NOW),
            _time(mtime, mtime_ns, told=valid & _MTIME, now=valid & _MTIME_NOW),
        )
        context.remember_state(node, os.fstat(fd))
    return fuse_protocol.attr_out(attributes(os.fstat(fd), context.owner), valid=REMEMBER)


def _time(seconds: int, nanoseconds: int, *, told: int, now: int) -> tuple[int, int]:
    if not told:
        return 0, kernel_calls.UTIME_OMIT
    if now:
        return 0, kernel_calls.UTIME_NOW
    return (seconds - (1 << 64) if seconds >= 1 << 63 else seconds), nanoseconds


def _set_owner(context: HandlerContext, fd: int, uid: int, gid: int) -> None:
    """Set the owner, to the task's one user and group alone; the host's own rules count as well."""
    if uid not in (-1, context.owner[0]) or gid not in (-1, context.owner[1]):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
    os.chown(magic_link(fd), -1 if uid < 0 else os.geteuid(), -1 if gid < 0 else os.getegid())


def access(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer ACCESS, for the user that both the task and this process are."""
    node = context.node(request.node)
    wanted = request.fields[0]
    if not node.way and not os.access(magic_link(context.descriptor(node)), wanted, effective_ids=True):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return b""


def statfs(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer STATFS for the file system of the host's inode."""
    told = os.statvfs(magic_link(context.names.host(request.node)))
    return fuse_protocol.statfs_out(
        blocks=told.f_blocks,
        free=told.f_bfree,
        available=told.f_bavail,
        files=told.f_files,
        files_free=told.f_ffree,
        size=told.f_frsize,
    )


def getxattr(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer GETXATTR, for names in `user.` alone (xattr(7))."""
    name = request.names[0]
    if not name.startswith(_XATTRS):
        raise _no_xattr(name, errno.ENODATA)
    return _sized(request, os.getxattr(magic_link(context.descriptor(context.node(request.node))), name))


def listxattr(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer LISTXATTR."""
    names = os.listxattr(magic_link(context.descriptor(context.node(request.node))))
    return _sized(request, b"".join(os.fsencode(name) + b"\0" for name in names if name.startswith(_XATTRS)))


def setxattr(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer SETXATTR."""
    size, flags = request.fields
    name = request.names[0]
    if not name.startswith(_XATTRS):
        raise _no_xattr(name, errno.EPERM)
    os.setxattr(magic_link(context.descriptor(context.node(request.node))), name, bytes(request.data[:size]), flags)
    return b""


def removexattr(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer REMOVEXATTR."""
    name = request.names[0]
    if not name.startswith(_XATTRS):
        raise _no_xattr(name, errno.EPERM)
    os.removexattr(magic_link(context.descriptor(context.node(request.node))), name)
    return b""


def _no_xattr(name: str, code: int) -> OSError:
    code = errno.EOPNOTSUPP if name.startswith("system.") else code
    return OSError(code, os.strerror(code))


def _sized(request: FuseRequest, value: bytes) -> bytes:
    size = request.fields[0]
    if size == 0:
        return fuse_protocol.xattr_size_out(len(value))
    if len(value) > size:
        raise OSError(errno.ERANGE, os.strerror(errno.ERANGE))
    return value
