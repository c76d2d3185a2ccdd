"""EFFECT: the server of granted names and of the directories they may stand in: which handler answers a request."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from sandbox.linux.kernel import fuse_protocol
from sandbox.linux.kernel.fuse_protocol import FuseRequest, InitFlag, Op
from sandbox.linux.mask.mask_tree import MAX_WRITE, SeenRequest
from sandbox.linux.mask.served import directory_listing, file_operations, inode_attributes, name_operations
from sandbox.linux.mask.served.handler_context import HandlerContext
from sandbox.linux.mask.served.inodes import FIRST

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.linux.mask.mask_tree import MaskTree
    from sandbox.linux.mask.served.file_operations import SlowCall
    from sandbox.planning.served_and_staged_names import GrantedNames
    from sandbox.request.protected_names import ProtectedNames

    Handler = Callable[[HandlerContext, FuseRequest], bytes | memoryview | SeenRequest | SlowCall]

# no write-back cache: with it the kernel trusts its own sizes and pages over the host's (fuse.h, FUSE_WRITEBACK_CACHE)
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

# operations on mixed directories of the plan, which the host's inodes answer as well
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
    Op.RELEASEDIR: file_operations.release,
    Op.FSYNCDIR: file_operations.fsync,
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
    Op.OPEN: file_operations.open_,
    Op.READ: file_operations.read,
    Op.WRITE: file_operations.write,
    Op.LSEEK: file_operations.lseek,
    Op.FALLOCATE: file_operations.fallocate,
    Op.COPY_FILE_RANGE: file_operations.copy,
    Op.FSYNC: file_operations.fsync,
    Op.RELEASE: file_operations.release,
}
_OPENS_TO_CHANGE = os.O_ACCMODE | os.O_TRUNC
_CHANGES_NODE = frozenset({Op.SETATTR, Op.SETXATTR, Op.REMOVEXATTR})
# operations that ENOSYS ends for good: nothing waits to be written when a file is closed
_NEVER_AGAIN = frozenset({Op.FLUSH, Op.POLL, Op.BMAP, Op.STATX})


class PassthroughServer:
    """The mask of a plan that grants names: granted names are the host's, and all else is the plan's tree.

    Args:
        tree: the names that the plan places.
        granted: the names that are served from the host.
        staging: an empty directory of this run, see `StagedNames`.
        executed: see `NameLookup`.
    """

    def __init__(
        self, tree: MaskTree, granted: GrantedNames, staging: str, executed: ProtectedNames | None = None
    ) -> None:
        self._context = HandlerContext(tree, granted, staging, executed)

    def staged_link(self, path: str) -> str | None:
        """The text of a link that the task made beside a granted name, `None` where there is none."""
        return self._context.names.staging.link(path)

    def answer(
        self, request: FuseRequest, *, now: int, owner: tuple[int, int]
    ) -> bytes | memoryview | SeenRequest | SlowCall | None:
        """The reply to a request, as of `MaskTree.answer`; a `SlowCall` does work whose result is the payload."""
        context = self._context
        context.owner, context.now = owner, now
        if request.op in fuse_protocol.SILENT:
            self._forget(request)
            return None
        if request.op == Op.INIT and request.fields[0] >= fuse_protocol.MAJOR:
            return fuse_protocol.reply(request.unique, fuse_protocol.init_out(request, want=_WANT, max_write=MAX_WRITE))
        try:
            handler = self._handler(request)
            if handler is None:
                return context.tree_answer(request)
            answer = handler(context, request)
        except OSError as error:
            return _failed(request, error)
        finally:
            context.names.end_request()
        if isinstance(answer, bytes):
            return fuse_protocol.reply(request.unique, answer)
        return answer

    def _handler(self, request: FuseRequest) -> Handler | None:
        """The handler of a request; `None` for the plan's tree.

        Raises:
            OSError: no handler answers it.
        """
        if request.node < FIRST:
            return self._handler_in_tree(request)
        op = request.op
        if op in _NEVER_AGAIN:
            raise OSError(errno.ENOSYS, "")
        handler = _HANDLERS.get(op)
        if handler is None:
            raise OSError(errno.ENOTTY if op == Op.IOCTL else errno.ENOSYS, "")
        refused = self._refused_path(request)
        return handler if not refused else lambda _context, asked: _refusal(asked, refused)

    def _handler_in_tree(self, request: FuseRequest) -> Handler | None:
        """The handler of a request about a node of the plan's tree; `None` for the tree itself."""
        names = self._context.names
        mixed = names.mixed(request.node)
        if request.op == Op.ACCESS and mixed and names.granted.stages(mixed):
            return _allowed
        return _IN_DIRECTORIES.get(request.op) if mixed else None

    def _refused_path(self, request: FuseRequest) -> str:
        """The path that a request may not change, though a grant covers it; empty where it may."""
        op, names = request.op, self._context.names
        node = self._context.node(request.node)
        changes = op in _CHANGES_NODE or (op == Op.OPEN and bool(request.fields[0] & _OPENS_TO_CHANGE))
        if changes and node.place is not None:
            protected = names.protected_path(node.place.directory, node.place.name)
            if protected:
                return protected
        return node.way if op in _CHANGES_NODE and not names.ways.made_by_task(node.key[:2]) else ""

    def _forget(self, request: FuseRequest) -> None:
        fields, table = request.fields, self._context.names.table
        if request.op == Op.FORGET:
            table.forget(request.node, fields[0])
        elif request.op == Op.BATCH_FORGET:
            for number, lookups in zip(fields[::2], fields[1::2], strict=True):
                table.forget(number, lookups)

    def close(self) -> tuple[str, ...]:
        """Close it at the end; the names left in staging, as the task saw their paths."""
        return self._context.names.close()


def _failed(request: FuseRequest, error: OSError) -> bytes:
    """The reply to a request that failed."""
    code = error.errno or errno.EIO
    if code == errno.ENOSYS and request.op in _HANDLERS:
        code = errno.EOPNOTSUPP  # after ENOSYS the kernel would never ask again
    return fuse_protocol.error(request.unique, code)


def _allowed(_context: HandlerContext, _request: FuseRequest) -> bytes:
    return b""


def _refusal(request: FuseRequest, path: str) -> SeenRequest:
    return SeenRequest(path, request.op, fuse_protocol.error(request.unique, errno.EROFS))
