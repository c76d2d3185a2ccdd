"""EFFECT: handlers of requests on names: lookups, new names, links, renames, removals."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

from sandbox.linux.kernel import fuse_protocol, kernel_calls
from sandbox.linux.kernel.fuse_protocol import Op
from sandbox.linux.kernel.set_id_bits import without_set_id
from sandbox.linux.mask.mask_tree import SeenRequest
from sandbox.linux.mask.served import inode_attributes
from sandbox.linux.mask.served.inodes import FIRST, LastSeenAt, magic_link
from sandbox.linux.mask.served.name_lookup import Spot, SpotKind
from sandbox.linux.mask.served.open_files import OpenFile

if TYPE_CHECKING:
    from sandbox.linux.kernel.fuse_protocol import FuseRequest
    from sandbox.linux.mask.served.handler_context import HandlerContext

_ACCEPTED = os.O_ACCMODE | os.O_TRUNC | os.O_EXCL
_OPENED = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_EXCHANGE, _WHITEOUT = 2, 4


def error(code: int) -> OSError:
    """An error with the system's words for it."""
    return OSError(code, os.strerror(code))


def _refused(request: FuseRequest, path: str) -> SeenRequest:
    return SeenRequest(path, request.op, fuse_protocol.error(request.unique, errno.EROFS))


def lookup(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """Answer LOOKUP; the kernel never remembers that a name is missing, for the host may make it."""
    spot = context.names.spot(request.node, request.names[0])
    if spot.kind is SpotKind.NOTHING:
        return SeenRequest(spot.path, Op.LOOKUP, fuse_protocol.reply(request.unique, fuse_protocol.negative_entry(0)))
    if spot.kind is SpotKind.PLACED:
        return context.tree_payload(request)
    try:
        return _entered(context, spot)
    except FileNotFoundError:
        return fuse_protocol.negative_entry(0)


def _entered(context: HandlerContext, spot: Spot) -> bytes:
    if spot.fd < 0:
        raise error(errno.ENOENT)
    way = spot.path if spot.kind is SpotKind.WAY else ""
    return inode_attributes.entry(context, *context.names.table.enter(spot.fd, spot.name, spot.place, way))


def _new_spot(context: HandlerContext, request: FuseRequest, *, directory: bool = False) -> Spot | SeenRequest:
    """The spot of a new name, or the refusal to make it."""
    spot = context.names.spot(request.node, request.names[0])
    if spot.kind in (SpotKind.PLACED, SpotKind.WAY):
        raise error(errno.EEXIST)
    if protected := context.names.protected_path(request.node, request.names[0], moved=not directory):
        return _refused(request, protected)
    new = context.names.new_spot(spot)
    if new is None:
        return _refused(request, spot.path)
    if new.fd < 0:
        raise error(errno.ENOENT)
    return new


def create(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """Answer CREATE: make a file and open it."""
    new = _new_spot(context, request)
    if isinstance(new, SeenRequest):
        return new
    flags, mode, _, _ = request.fields
    fd = os.open(new.name, (flags & _ACCEPTED) | os.O_CREAT | _OPENED, without_set_id(mode, 0), dir_fd=new.fd)
    return _opened(context, context.names.table.admit(fd), new.place)


def tmpfile(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """Answer TMPFILE: make a file without a name, in the file system of the directory."""
    directory = context.names.mixed(request.node)
    if not directory:
        fd = context.names.host(request.node)
    elif context.names.staging and context.names.granted.stages(directory):
        fd = context.names.staging.area(directory, make=True)
    else:
        return _refused(request, directory)
    flags, mode, _, _ = request.fields
    flags = (flags & (os.O_ACCMODE | os.O_EXCL)) | os.O_TMPFILE | os.O_CLOEXEC
    opened = os.open(".", flags, without_set_id(mode, 0), dir_fd=fd)
    return _opened(context, context.names.table.admit(opened), None)


def _opened(context: HandlerContext, fd: int, place: LastSeenAt | None) -> bytes:
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # the host put another file there meanwhile
        os.close(fd)
        raise error(errno.ESTALE)
    try:
        node, found = context.names.table.adopt(fd, place)
    except BaseException:
        os.close(fd)
        raise
    context.remember_state(node, found)
    return inode_attributes.entry(context, node, found) + fuse_protocol.open_out(
        context.handles.add(OpenFile(fd, node))
    )


def mknod(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """Answer MKNOD for files, pipes and sockets; devices are refused."""
    mode = request.fields[0]
    if stat.S_IFMT(mode) not in (stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK, 0):
        raise error(errno.EPERM)
    new = _new_spot(context, request)
    if isinstance(new, SeenRequest):
        return new
    os.mknod(new.name, stat.S_IFMT(mode) | without_set_id(mode, 0), dir_fd=new.fd)
    return _entered(context, new)


def mkdir(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """Answer MKDIR."""
    names, mode = context.names, stat.S_IMODE(request.fields[0])
    spot = names.spot(request.node, request.names[0])
    if spot.kind is SpotKind.NOTHING and names.granted.leads(spot.path) and names.host(request.node) >= 0:
        if protected := names.protected_path(request.node, request.names[0]):
            return _refused(request, protected)
        # a hidden file stays hidden, and the new directory is staged in its place
        with contextlib.suppress(FileExistsError):
            return _entered(context, names.make_way(spot, mode))
    new = _new_spot(context, request, directory=True)
    if isinstance(new, SeenRequest):
        return new
    os.mkdir(new.name, mode, dir_fd=new.fd)
    return _entered(context, new)


def symlink(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """Answer SYMLINK."""
    new = _new_spot(context, request)
    if isinstance(new, SeenRequest):
        return new
    os.symlink(request.names[1], new.name, dir_fd=new.fd)
    return _entered(context, new)


def readlink(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer READLINK."""
    return os.fsencode(os.readlink("", dir_fd=context.descriptor(context.node(request.node))))


def link(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """Answer LINK: make another name of an inode."""
    old = request.fields[0]
    new = _new_spot(context, request)
    if isinstance(new, SeenRequest):
        return new
    if old < FIRST:
        return _refused(request, new.path)
    place = context.node(old).place
    if place is not None and (protected := context.names.protected_path(place.directory, place.name)):
        # the other name would be one at which nobody looks
        return _refused(request, protected)
    # the descriptor names the inode itself, whatever stands under its old name now
    source = magic_link(context.descriptor(context.node(old)))
    os.link(source, new.name, dst_dir_fd=new.fd, follow_symlinks=True)
    return _entered(context, new)


def unlink(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """Answer UNLINK."""
    spot = _existing(context, request.node, request.names[0])
    if spot.kind is SpotKind.PLACED:
        return _refused(request, spot.path)
    if spot.kind is SpotKind.WAY:
        raise error(errno.EISDIR)
    with context.names.table.letting_go(context.names.table.known(spot.fd, spot.name)):
        os.unlink(spot.name, dir_fd=spot.fd)
    return b""


def rmdir(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """Answer RMDIR."""
    spot = _existing(context, request.node, request.names[0])
    if spot.kind is SpotKind.PLACED:
        return _refused(request, spot.path)
    if spot.kind is SpotKind.WAY:
        context.names.remove_way(spot)
        return b""
    with context.names.table.letting_go(context.names.table.known(spot.fd, spot.name)):
        os.rmdir(spot.name, dir_fd=spot.fd)
    return b""


def _existing(context: HandlerContext, directory: int, name: str) -> Spot:
    spot = context.names.spot(directory, name)
    if spot.kind is SpotKind.NOTHING or (spot.fd < 0 and spot.kind is not SpotKind.PLACED):
        raise error(errno.ENOENT)
    if protected := context.names.protected_path(directory, name):
        return spot._replace(kind=SpotKind.PLACED, path=protected)
    return spot


def rename(context: HandlerContext, request: FuseRequest) -> bytes | SeenRequest:
    """Answer RENAME and RENAME2: within the host, within staging, or from one into the other."""
    target_directory = request.fields[0]
    flags = request.fields[1] if request.op == Op.RENAME2 else 0
    if flags & _WHITEOUT:
        raise error(errno.EINVAL)
    source = _existing(context, request.node, request.names[0])
    if source.kind is SpotKind.PLACED:
        return _refused(request, source.path)
    target = context.names.spot(target_directory, request.names[1])
    if target.kind is SpotKind.PLACED:
        return _refused(request, target.path)
    if flags & _EXCHANGE and target.kind is SpotKind.NOTHING:
        raise error(errno.ENOENT)
    is_directory = stat.S_ISDIR(os.stat(source.name, dir_fd=source.fd, follow_symlinks=False).st_mode)
    for directory, name in ((request.node, request.names[0]), (target_directory, request.names[1])):
        if held := context.names.holds_protected(directory, name):
            return _refused(request, held)
    if protected := _protected_end(context, request, exchange=bool(flags & _EXCHANGE), brings=is_directory):
        return _refused(request, protected)
    _whole(context, source, target, is_directory=is_directory)
    new = context.names.new_spot(target)
    if new is None:
        return _refused(request, target.path)
    if new.fd < 0:
        raise error(errno.ENOENT)
    _move(context, source, new, flags)
    return b""


def _whole(context: HandlerContext, source: Spot, target: Spot, *, is_directory: bool) -> None:
    """Refuse to move a directory that leads to matches, and is shown in part: EXDEV has the program copy it."""
    if target.kind is SpotKind.WAY and not is_directory:
        raise error(errno.EISDIR)
    if SpotKind.WAY in (source.kind, target.kind):
        raise error(errno.EXDEV)
    if target.kind is SpotKind.NOTHING and is_directory and context.names.granted.leads(target.path):
        raise error(errno.EXDEV)


def _protected_end(context: HandlerContext, request: FuseRequest, *, exchange: bool, brings: bool) -> str:
    """The path of that end of a rename which other programs execute, else an empty string."""
    protected = context.names.protected_path(request.fields[0], request.names[1], moved=True, brings=brings)
    if exchange and not protected:
        protected = context.names.protected_path(request.node, request.names[0], moved=True, brings=True)
    return protected


def _move(context: HandlerContext, source: Spot, target: Spot, flags: int) -> None:
    table = context.names.table
    moved, replaced = table.known(source.fd, source.name), table.known(target.fd, target.name)
    if moved is not None and moved.fd < 0:
        table.descriptor(moved)  # a rename changes the time by which the inode is recognized
    with table.letting_go(None if replaced is moved or flags & _EXCHANGE else replaced):
        kernel_calls.rename(source.fd, source.name, target.fd, target.name, flags)
    if moved is not None:
        moved.place = moved.place and target.place
    if replaced is not None and flags & _EXCHANGE:
        replaced.place = replaced.place and source.place
