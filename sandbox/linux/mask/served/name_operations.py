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
    from sandbox.linux.mask.served.passthrough_server import PassthroughServer

_ACCEPTED = os.O_ACCMODE | os.O_TRUNC | os.O_EXCL
_OPENED = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_EXCHANGE, _WHITEOUT = 2, 4


def error(code: int) -> OSError:
    """An error with its usual words."""
    return OSError(code, os.strerror(code))


def _refused(request: FuseRequest, path: str) -> SeenRequest:
    return SeenRequest(path, request.op, fuse_protocol.error(request.unique, errno.EROFS))


def lookup(server: PassthroughServer, request: FuseRequest) -> bytes | SeenRequest:
    """LOOKUP; a name that is not there is never remembered, for the host may make it."""
    spot = server.places.spot(request.node, request.names[0])
    if spot.what is What.NOTHING:
        return SeenRequest(spot.path, Op.LOOKUP, fuse_protocol.reply(request.unique, fuse_protocol.negative_entry(0)))
    if spot.what is What.PLACED:
        return server.of_the_plan(request)
    try:
        return _entered(server, spot)
    except FileNotFoundError:
        return fuse_protocol.negative_entry(0)


def _entered(server: PassthroughServer, spot: Spot) -> bytes:
    if spot.fd < 0:
        raise error(errno.ENOENT)
    way = spot.path if spot.what is What.WAY else ""
    return inode_attributes.entry(server, *server.places.table.enter(spot.fd, spot.name, spot.place, way))


def _room(server: PassthroughServer, request: FuseRequest, *, directory: bool = False) -> Spot | SeenRequest:
    """Where a new name goes."""
    spot = server.places.spot(request.node, request.names[0])
    if spot.what in (What.PLACED, What.WAY):
        raise error(errno.EEXIST)
    if barred := server.places.barred(request.node, request.names[0], moved=not directory):
        return _refused(request, barred)
    room = server.places.room(spot)
    if room is None:
        return _refused(request, spot.path)
    if room.fd < 0:
        raise error(errno.ENOENT)
    return room


def create(server: PassthroughServer, request: FuseRequest) -> bytes | SeenRequest:
    """CREATE: make a file and open it."""
    room = _room(server, request)
    if isinstance(room, SeenRequest):
        return room
    flags, mode, _, _ = request.fields
    fd = os.open(room.name, (flags & _ACCEPTED) | os.O_CREAT | _OPENED, stat.S_IMODE(mode), dir_fd=room.fd)
    return _opened(server, server.places.table.spared(fd), room.place)


def tmpfile(server: PassthroughServer, request: FuseRequest) -> bytes | SeenRequest:
    """TMPFILE: a file without a name, in the file system of the directory."""
    directory = server.places.mixed(request.node)
    if not directory:
        fd = server.places.host(request.node)
    elif server.places.staging and server.places.granted.stages(directory):
        fd = server.places.staging.area(directory, make=True)
    else:
        return _refused(request, directory)
    flags, mode, _, _ = request.fields
    flags = (flags & (os.O_ACCMODE | os.O_EXCL)) | os.O_TMPFILE | os.O_CLOEXEC
    opened = os.open(".", flags, stat.S_IMODE(mode), dir_fd=fd)
    return _opened(server, server.places.table.spared(opened), None)


def _opened(server: PassthroughServer, fd: int, place: LastSeenAt | None) -> bytes:
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # the host put something else there meanwhile
        os.close(fd)
        raise error(errno.ESTALE)
    try:
        node, found = server.places.table.adopt(fd, place)
    except BaseException:
        os.close(fd)
        raise
    server.left(node, found)
    return inode_attributes.entry(server, node, found) + fuse_protocol.open_out(server.handles.add(OpenFile(fd, node)))


def mknod(server: PassthroughServer, request: FuseRequest) -> bytes | SeenRequest:
    """MKNOD: files, pipes and sockets; no devices."""
    mode = request.fields[0]
    if stat.S_IFMT(mode) not in (stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK, 0):
        raise error(errno.EPERM)
    room = _room(server, request)
    if isinstance(room, SeenRequest):
        return room
    os.mknod(room.name, mode, dir_fd=room.fd)
    return _entered(server, room)


def mkdir(server: PassthroughServer, request: FuseRequest) -> bytes | SeenRequest:
    """MKDIR."""
    places, mode = server.places, stat.S_IMODE(request.fields[0])
    spot = places.spot(request.node, request.names[0])
    if spot.what is What.NOTHING and places.granted.leads(spot.path) and places.host(request.node) >= 0:
        if barred := places.barred(request.node, request.names[0]):
            return _refused(request, barred)
        # a file that is hidden there stays so: what is made in its place is staged
        with contextlib.suppress(FileExistsError):
            return _entered(server, places.make_way(spot, mode))
    room = _room(server, request, directory=True)
    if isinstance(room, SeenRequest):
        return room
    os.mkdir(room.name, mode, dir_fd=room.fd)
    return _entered(server, room)


def symlink(server: PassthroughServer, request: FuseRequest) -> bytes | SeenRequest:
    """SYMLINK."""
    room = _room(server, request)
    if isinstance(room, SeenRequest):
        return room
    os.symlink(request.names[1], room.name, dir_fd=room.fd)
    return _entered(server, room)


def readlink(server: PassthroughServer, request: FuseRequest) -> bytes:
    """READLINK."""
    return os.fsencode(os.readlink("", dir_fd=server.descriptor(server.node(request.node))))


def link(server: PassthroughServer, request: FuseRequest) -> bytes | SeenRequest:
    """LINK: a further name of an inode."""
    old = request.fields[0]
    room = _room(server, request)
    if isinstance(room, SeenRequest):
        return room
    if old < FIRST:
        return _refused(request, room.path)
    # through the descriptor: whatever stands under its old name now, this inode is meant
    source = magic(server.descriptor(server.node(old)))
    os.link(source, room.name, dst_dir_fd=room.fd, follow_symlinks=True)
    return _entered(server, room)


def unlink(server: PassthroughServer, request: FuseRequest) -> bytes | SeenRequest:
    """UNLINK."""
    spot = _existing(server, request.node, request.names[0])
    if spot.what is What.PLACED:
        return _refused(request, spot.path)
    if spot.what is What.WAY:
        raise error(errno.EISDIR)
    server.places.table.pin(server.places.table.known(spot.fd, spot.name))
    os.unlink(spot.name, dir_fd=spot.fd)
    return b""


def rmdir(server: PassthroughServer, request: FuseRequest) -> bytes | SeenRequest:
    """RMDIR."""
    spot = _existing(server, request.node, request.names[0])
    if spot.what is What.PLACED:
        return _refused(request, spot.path)
    if spot.what is What.WAY:
        server.places.remove_way(spot)
        return b""
    server.places.table.pin(server.places.table.known(spot.fd, spot.name))
    os.rmdir(spot.name, dir_fd=spot.fd)
    return b""


def _existing(server: PassthroughServer, directory: int, name: str) -> Spot:
    spot = server.places.spot(directory, name)
    if spot.what is What.NOTHING or (spot.fd < 0 and spot.what is not What.PLACED):
        raise error(errno.ENOENT)
    if barred := server.places.barred(directory, name):
        return spot._replace(what=What.PLACED, path=barred)
    return spot


def rename(server: PassthroughServer, request: FuseRequest) -> bytes | SeenRequest:
    """RENAME and RENAME2: within the host, within staging, or from one into the other."""
    target_directory = request.fields[0]
    flags = request.fields[1] if request.op == Op.RENAME2 else 0
    if flags & _WHITEOUT:
        raise error(errno.EINVAL)
    source = _existing(server, request.node, request.names[0])
    if source.what is What.PLACED:
        return _refused(request, source.path)
    target = server.places.spot(target_directory, request.names[1])
    if target.what is What.PLACED:
        return _refused(request, target.path)
    if flags & _EXCHANGE and target.what is What.NOTHING:
        raise error(errno.ENOENT)
    is_directory = stat.S_ISDIR(os.stat(source.name, dir_fd=source.fd, follow_symlinks=False).st_mode)
    if barred := _barred(server, request, exchange=bool(flags & _EXCHANGE), brings=is_directory):
        return _refused(request, barred)
    _whole(server, source, target, is_directory=is_directory)
    room = server.places.room(target)
    if room is None:
        return _refused(request, target.path)
    if room.fd < 0:
        raise error(errno.ENOENT)
    _move(server, source, room, flags)
    return b""


def _whole(server: PassthroughServer, source: Spot, target: Spot, *, is_directory: bool) -> None:
    """Refuse to move what leads to matches: partly shown and partly not, it is copied by who would move it."""
    if target.what is What.WAY and not is_directory:
        raise error(errno.EISDIR)
    if What.WAY in (source.what, target.what):
        raise error(errno.EXDEV)
    if target.what is What.NOTHING and is_directory and server.places.granted.leads(target.path):
        raise error(errno.EXDEV)


def _barred(server: PassthroughServer, request: FuseRequest, *, exchange: bool, brings: bool) -> str:
    """The path of either end that is no place to move anything to, else an empty string."""
    barred = server.places.barred(request.fields[0], request.names[1], moved=True, brings=brings)
    if exchange and not barred:
        barred = server.places.barred(request.node, request.names[0], moved=True, brings=True)
    return barred


def _move(server: PassthroughServer, source: Spot, target: Spot, flags: int) -> None:
    table = server.places.table
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
