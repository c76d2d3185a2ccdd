"""EFFECT: requests of the mask that are about granted names, and the directories they may stand in."""

from __future__ import annotations

import errno
import mmap
import os
import resource
import struct
from typing import TYPE_CHECKING

from sandbox.linux.kernel import fuse_protocol
from sandbox.linux.kernel.fuse_protocol import FuseRequest, InitFlag, Op
from sandbox.linux.mask.mask_tree import MAX_WRITE, MaskTree, SeenRequest
from sandbox.linux.mask.served import directory_listing, inode_attributes, name_operations, open_files
from sandbox.linux.mask.served.inodes import FIRST
from sandbox.linux.mask.served.name_lookup import NameLookup
from sandbox.linux.mask.served.open_files import OpenFiles, SlowCall
from sandbox.linux.mask.served.staged_names import StagedNames

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.linux.mask.served.inodes import Inode
    from sandbox.planning.name_grants import GrantedNames
    from sandbox.request.protected_names import ProtectedNames

    Handler = Callable[["PassthroughServer", FuseRequest], bytes | memoryview | SeenRequest | SlowCall]

# no write-back cache: with it the kernel believes its own sizes and pages over what the host changed
_WANT = (
    InitFlag.ASYNC_READ
    | InitFlag.ATOMIC_O_TRUNC
    | InitFlag.BIG_WRITES
    | InitFlag.AUTO_INVAL_DATA
    | InitFlag.DO_READDIRPLUS
    | InitFlag.READDIRPLUS_AUTO
    | InitFlag.PARALLEL_DIROPS
    | InitFlag.MAX_PAGES
    | InitFlag.CACHE_SYMLINKS
    | InitFlag.HANDLE_KILLPRIV_V2
)

_OUT_HEADER = struct.Struct("<IiQ")

# what is asked of a directory of the plan, and of everything else as well
_IN_DIRECTORIES: dict[int, Handler] = {
    Op.LOOKUP: name_operations.lookup,
    Op.CREATE: name_operations.create,
    Op.TMPFILE: name_operations.tmpfile,
    Op.MKNOD: name_operations.mknod,
    Op.MKDIR: name_operations.mkdir,
    Op.SYMLINK: name_operations.symlink,
    Op.LINK: name_operations.link,
    Op.UNLINK: name_operations.unlink,
    Op.RMDIR: name_operations.rmdir,
    Op.RENAME: name_operations.rename,
    Op.RENAME2: name_operations.rename,
    Op.OPENDIR: directory_listing.opendir,
    Op.READDIR: directory_listing.readdir,
    Op.READDIRPLUS: directory_listing.readdirplus,
    Op.RELEASEDIR: open_files.release,
    Op.FSYNCDIR: open_files.fsync,
    Op.STATFS: inode_attributes.statfs,
}
_HANDLERS: dict[int, Handler] = {
    **_IN_DIRECTORIES,
    Op.GETATTR: inode_attributes.getattr_,
    Op.SETATTR: inode_attributes.setattr_,
    Op.ACCESS: inode_attributes.access,
    Op.GETXATTR: inode_attributes.getxattr,
    Op.LISTXATTR: inode_attributes.listxattr,
    Op.SETXATTR: inode_attributes.setxattr,
    Op.REMOVEXATTR: inode_attributes.removexattr,
    Op.READLINK: name_operations.readlink,
    Op.OPEN: open_files.open_,
    Op.READ: open_files.read,
    Op.WRITE: open_files.write,
    Op.LSEEK: open_files.lseek,
    Op.FALLOCATE: open_files.fallocate,
    Op.COPY_FILE_RANGE: open_files.copy,
    Op.FSYNC: open_files.fsync,
    Op.RELEASE: open_files.release,
}
_OPENS_TO_CHANGE = os.O_ACCMODE | os.O_TRUNC
_CHANGES_WAY = frozenset({Op.SETATTR, Op.SETXATTR, Op.REMOVEXATTR})
# answered so once, and never asked again: nothing waits to be written when a file is closed
_NEVER_AGAIN = frozenset({Op.FLUSH, Op.POLL, Op.BMAP, Op.STATX})


class PassthroughServer:
    """The mask where a plan grants names: what is granted is the host's, everything else the plan's tree.

    Args:
        tree: what the plan places.
        staging: an empty directory of this run, see `StagedNames`.
        executed: see `NameLookup`.
    """

    def __init__(
        self, tree: MaskTree, granted: GrantedNames, staging: str, executed: ProtectedNames | None = None
    ) -> None:
        self.owner = (0, 0)
        self.handles = OpenFiles()
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.places = NameLookup(tree, granted, StagedNames(staging), descriptors=soft, executed=executed)
        self._tree = tree
        self._now = 0
        self._buffer = mmap.mmap(-1, _OUT_HEADER.size + MAX_WRITE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._view = memoryview(self._buffer)

    def answer(
        self, request: FuseRequest, *, now: int, owner: tuple[int, int]
    ) -> bytes | memoryview | SeenRequest | SlowCall | None:
        """As `MaskTree.answer`; work that may wait for a disk comes back as `SlowCall`, its result being a payload."""
        self.owner, self._now = owner, now
        if request.op in fuse_protocol.SILENT:
            self._forget(request)
            return None
        if request.op == Op.INIT and request.fields[0] >= fuse_protocol.MAJOR:
            return fuse_protocol.reply(request.unique, fuse_protocol.init_out(request, want=_WANT, max_write=MAX_WRITE))
        try:
            handler = self._handler(request)
            if handler is None:
                return self._tree.answer(request, now=now, owner=owner)
            answer = handler(self, request)
        except OSError as error:
            return self.failed(request, error)
        finally:
            self.places.done()
        if isinstance(answer, bytes):
            return fuse_protocol.reply(request.unique, answer)
        return answer

    def _handler(self, request: FuseRequest) -> Handler | None:
        """Who answers; `None` for the plan's tree.

        Raises:
            OSError: nobody does.
        """
        op = request.op
        if op in _NEVER_AGAIN and request.node >= FIRST:
            raise OSError(errno.ENOSYS, "")
        if request.node < FIRST:
            mixed = self.places.mixed(request.node)
            if op == Op.ACCESS and mixed and self.places.granted.stages(mixed):
                return _allowed
            return _IN_DIRECTORIES.get(op) if mixed else None
        handler = _HANDLERS.get(op)
        if handler is None:
            raise OSError(errno.ENOTTY if op == Op.IOCTL else errno.ENOSYS, "")
        node = self.node(request.node)
        if node.place is not None and (op in _CHANGES_WAY or (op == Op.OPEN and request.fields[0] & _OPENS_TO_CHANGE)):
            barred = self.places.barred(node.place.directory, node.place.name)
            if barred:
                return lambda _server, asked: SeenRequest(
                    barred, asked.op, fuse_protocol.error(asked.unique, errno.EROFS)
                )
        if node.way and op in _CHANGES_WAY and not self.places.is_made(node.key):
            return _refused_way
        return handler

    def failed(self, request: FuseRequest, error: OSError) -> bytes:
        """The reply to a request that failed."""
        code = error.errno or errno.EIO
        if code == errno.ENOSYS and request.op in _HANDLERS:
            code = errno.EOPNOTSUPP  # the kernel would never ask again
        return fuse_protocol.error(request.unique, code)

    def _forget(self, request: FuseRequest) -> None:
        fields = request.fields
        if request.op == Op.FORGET:
            self.places.table.forget(request.node, fields[0])
        elif request.op == Op.BATCH_FORGET:
            for number, lookups in zip(fields[::2], fields[1::2], strict=True):
                self.places.table.forget(number, lookups)

    def of_the_plan(self, request: FuseRequest) -> bytes | SeenRequest:
        """The payload of what the plan's own tree answers."""
        answer = self._tree.answer(request, now=self._now, owner=self.owner)
        if isinstance(answer, bytes):
            return answer[_OUT_HEADER.size :]
        return answer if answer is not None else b""

    def node(self, number: int) -> Inode:
        """A node of the host."""
        return self.places.table.get(number)

    def descriptor(self, node: Inode) -> int:
        """An O_PATH descriptor of a node."""
        return self.places.table.descriptor(node)

    def left(self, node: Inode, found: os.stat_result) -> None:
        """Remember how this server left a file: if it is so at the next open, the kernel's pages of it still hold."""
        node.seen = (found.st_mtime_ns, found.st_size)

    def filled(self, unique: int, fd: int, offset: int, size: int) -> memoryview:
        """A whole reply with bytes of a file, read where it is sent from."""
        head = _OUT_HEADER.size
        got = os.preadv(fd, [self._view[head : head + size]], offset)
        _OUT_HEADER.pack_into(self._buffer, 0, head + got, 0, unique)
        return self._view[: head + got]

    def close(self) -> tuple[str, ...]:
        """At the end; what the task left beside granted names, as it saw the paths."""
        return self.places.close()


def _allowed(_server: PassthroughServer, _request: FuseRequest) -> bytes:
    return b""


def _refused_way(server: PassthroughServer, request: FuseRequest) -> SeenRequest:
    return SeenRequest(server.node(request.node).way, request.op, fuse_protocol.error(request.unique, errno.EROFS))
