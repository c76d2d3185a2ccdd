"""EFFECT: what happens to names: looked up, made, linked, renamed, removed."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

from sandbox.linux.kernel import fuse_protocol, kernel_calls
from sandbox.linux.kernel.fuse_protocol import Op
from sandbox.linux.mask.mask_tree import SeenRequest
from sandbox.linux.mask.served import inode_attributes
from sandbox.linux.mask.served.inodes import FIRST, LastSeenAt, magic
from sandbox.linux.mask.served.name_lookup import Spot, What
from sandbox.linux.mask.served.open_files import OpenFile

if TYPE_CHECKING:
    from sandbox.linux.kernel.fuse_protocol import FuseRequest
    from sandbox.linux.mask.served.handler_context import HandlerContext

_ACCEPTED = os.O_ACCMODE | os.O_TRUNC | os.O_EXCL
_OPENED = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_EXCHANGE, _WHITEOUT = 2, 4


def error(code: int) -> OSError:
    """An error with its usual words."""
    return OSError(code, os.strerror(code))


def _refused(request: FuseRequest, path: str) -> SeenRequest:
    return SeenRequest(path, request.op, fuse_protocol.error(request.unique, errno.EROFS))


def lookup(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """LOOKUP; a name that is not there is never remembered, for the host may make it."""
    spot = context.names.spot(request.node, request.names[0])
    if spot.what is What.NOTHING:
        return SeenRequest(spot.path, Op.LOOKUP, fuse_protocol.reply(request.unique, fuse_protocol.negative_entry(0)))
    if spot.what is What.PLACED:
        return context.tree_payload(request)
    try:
        return _entered(context, spot)
    except FileNotFoundError:
        return fuse_protocol.negative_entry(0)


def _entered(context: HandlerContext, spot: Spot) -> bytes:
    if spot.fd < 0:
        raise error(errno.ENOENT)
    way = spot.path if spot.what is What.WAY else ""
    return inode_attributes.entry(context, *context.names.table.enter(spot.fd, spot.name, spot.place, way))


def _room(context: HandlerContext, request: FuseRequest, *, directory: bool = False) -> Spot | SeenRequest:
    """Where a new name goes."""
    spot = context.names.spot(request.node, request.names[0])
    if spot.what in (What.PLACED, What.WAY):
        raise error(errno.EEXIST)
    if barred := context.names.barred(request.node, request.names[0], moved=not directory):
        return _refused(request, barred)
    room = context.names.room(spot)
    if room is None:
        return _refused(request, spot.path)
    if room.fd < 0:
        raise error(errno.ENOENT)
    return room


def create(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """CREATE: make a file and open it."""
    room = _room(context, request)
    if isinstance(room, SeenRequest):
        return room
    flags, mode, _, _ = request.fields
    fd = os.open(room.name, (flags & _ACCEPTED) | os.O_CREAT | _OPENED, stat.S_IMODE(mode), dir_fd=room.fd)
    return _opened(context, context.names.table.spared(fd), room.place)


def tmpfile(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """TMPFILE: a file without a name, in the file system of the directory."""
    directory = context.names.mixed(request.node)
    if not directory:
        fd = context.names.host(request.node)
    elif context.names.staging and context.names.granted.stages(directory):
        fd = context.names.staging.area(directory, make=True)
    else:
        return _refused(request, directory)
    flags, mode, _, _ = request.fields
    flags = (flags & (os.O_ACCMODE | os.O_EXCL)) | os.O_TMPFILE | os.O_CLOEXEC
    opened = os.open(".", flags, stat.S_IMODE(mode), dir_fd=fd)
    return _opened(context, context.names.table.spared(opened), None)


def _opened(context: HandlerContext, fd: int, place: LastSeenAt | None) -> bytes:
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # the host put something else there meanwhile
        os.close(fd)
        raise error(errno.ESTALE)
    try:
        node, found = context.names.table.adopt(fd, place)
    except BaseException:
        os.close(fd)
        raise
    context.left(node, found)
    return inode_attributes.entry(context, node, found) + fuse_protocol.open_out(
        context.handles.add(OpenFile(fd, node))
    )


def mknod(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """MKNOD: files, pipes and sockets; no devices."""
    mode = request.fields[0]
    if stat.S_IFMT(mode) not in (stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK, 0):
        raise error(errno.EPERM)
    room = _room(context, request)
    if isinstance(room, SeenRequest):
        return room
    os.mknod(room.name, mode, dir_fd=room.fd)
    return _entered(context, room)


def mkdir(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """MKDIR."""
    mode = stat.S_IMODE(request.fields[0])
    spot = context.names.spot(request.node, request.names[0])
    if spot.what is What.NOTHING and context.names.granted.leads(spot.path) and context.names.host(request.node) >= 0:
        if barred := context.names.barred(request.node, request.names[0]):
            return _refused(request, barred)
        # a file that is hidden there stays so: what is made in its place is staged
        with contextlib.suppress(FileExistsError):
            return _entered(context, context.names.make_way(spot, mode))
    room = _room(context, request, directory=True)
    if isinstance(room, SeenRequest):
        return room
    os.mkdir(room.name, mode, dir_fd=room.fd)
    return _entered(context, room)


def symlink(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """SYMLINK."""
    room = _room(context, request)
    if isinstance(room, SeenRequest):
        return room
    os.symlink(request.names[1], room.name, dir_fd=room.fd)
    return _entered(context, room)


def readlink(context: HandlerContext, request: FuseRequest) -> bytes:
    """READLINK."""
    return os.fsencode(os.readlink("", dir_fd=context.descriptor(context.node(request.node))))


def link(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """LINK: a further name of an inode."""
    old = request.fields[0]
    room = _room(context, request)
    if isinstance(room, SeenRequest):
        return room
    if old < FIRST:
        return _refused(request, room.path)
    # through the descriptor: whatever stands under its old name now, this inode is meant
    source = magic(context.descriptor(context.node(old)))
    os.link(source, room.name, dst_dir_fd=room.fd, follow_symlinks=True)
    return _entered(context, room)


def unlink(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """UNLINK."""
    spot = _existing(context, request.node, request.names[0])
    if spot.what is What.PLACED:
        return _refused(request, spot.path)
    if spot.what is What.WAY:
        raise error(errno.EISDIR)
    context.names.table.pin(context.names.table.known(spot.fd, spot.name))
    os.unlink(spot.name, dir_fd=spot.fd)
    return b""


def rmdir(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """RMDIR."""
    spot = _existing(context, request.node, request.names[0])
    if spot.what is What.PLACED:
        return _refused(request, spot.path)
    if spot.what is What.WAY:
        context.names.remove_way(spot)
        return b""
    context.names.table.pin(context.names.table.known(spot.fd, spot.name))
    os.rmdir(spot.name, dir_fd=spot.fd)
    return b""


def _existing(context: HandlerContext, directory: int, name: str) -> Spot:
    spot = context.names.spot(directory, name)
    if spot.what is What.NOTHING or (spot.fd < 0 and spot.what is not What.PLACED):
        raise error(errno.ENOENT)
    if barred := context.names.barred(directory, name):
        return spot._replace(what=What.PLACED, path=barred)
    return spot


def rename(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """RENAME and RENAME2: within the host, within staging, or from one into the other."""
    target_directory = request.fields[0]
    flags = request.fields[1] if request.op == Op.RENAME2 else 0
    if flags & _WHITEOUT:
        raise error(errno.EINVAL)
    source = _existing(context, request.node, request.names[0])
    if source.what is What.PLACED:
        return _refused(request, source.path)
    target = context.names.spot(target_directory, request.names[1])
    if target.what is What.PLACED:
        return _refused(request, target.path)
    if flags & _EXCHANGE and target.what is What.NOTHING:
        raise error(errno.ENOENT)
    is_directory = stat.S_ISDIR(os.stat(source.name, dir_fd=source.fd, follow_symlinks=False).st_mode)
    if barred := _barred(context, request, exchange=bool(flags & _EXCHANGE), brings=is_directory):
        return _refused(request, barred)
    _whole(context, source, target, is_directory=is_directory)
    room = context.names.room(target)
    if room is None:
        return _refused(request, target.path)
    if room.fd < 0:
        raise error(errno.ENOENT)
    _move(context, source, room, flags)
    return b""


def _whole(context: HandlerContext, source: Spot, target: Spot, *, is_directory: bool) -> None:
    """Refuse to move what leads to matches: partly shown and partly not, it is copied by who would move it."""
    if target.what is What.WAY and not is_directory:
        raise error(errno.EISDIR)
    if What.WAY in (source.what, target.what):
        raise error(errno.EXDEV)
    if target.what is What.NOTHING and is_directory and context.names.granted.leads(target.path):
        raise error(errno.EXDEV)


def _barred(context: HandlerContext, request: FuseRequest, *, exchange: bool, brings: bool) -> str:
    """The path of either end that is no place to move anything to, else an empty string."""
    barred = context.names.barred(request.fields[0], request.names[1], moved=True, brings=brings)
    if exchange and not barred:
        barred = context.names.barred(request.node, request.names[0], moved=True, brings=True)
    return barred


def _move(context: HandlerContext, source: Spot, target: Spot, flags: int) -> None:
    table = context.names.table
    moved, replaced = table.known(source.fd, source.name), table.known(target.fd, target.name)
    if replaced is not moved and not flags & _EXCHANGE:
        table.pin(replaced)
    if moved is not None and moved.fd < 0:
        table.descriptor(moved)  # held from now on: renaming changes what it would be known by
    kernel_calls.rename(source.fd, source.name, target.fd, target.name, flags)
    if moved is not None:
        moved.place = moved.place and target.place
    if replaced is not None and flags & _EXCHANGE:
        replaced.place = replaced.place and source.place
