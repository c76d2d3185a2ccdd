"""The tree that the mask serves: absolute paths, with nothing in them but what a plan places. Pure.

A request goes in and a reply comes out. The tree never changes, so a name keeps its node and its type as long as the
mask is mounted. One file system serves every cover, and a part of it is bound where each cover is.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from sandbox.linux.kernel import fuse_protocol
from sandbox.linux.kernel.fuse_protocol import FuseRequest, InitFlag, Op
from sandbox.planning.operations import Bind, Cover, Empty, Link, Name, Names, Operation, Seal, Way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ENOENT, EACCES, EINVAL, EROFS, ENOSYS = 2, 13, 22, 30, 38

#: Seconds for which the kernel may remember what never changes.
REMEMBER = 3600
MAX_WRITE = 1 << 20

_WANT = (
    InitFlag.PARALLEL_DIROPS
    | InitFlag.MAX_PAGES
    | InitFlag.CACHE_SYMLINKS
    | InitFlag.ASYNC_READ
    | InitFlag.DO_READDIRPLUS
)
_OPEN_FOR_WRITING = 0o3 | 0o1000
_ACCESS_WRITE = 2

_DIRECTORY = stat.S_IFDIR | 0o777  # no name is refused by the mode, so the kernel asks about each
_EMPTY = stat.S_IFDIR | 0o555
_FILE = stat.S_IFREG | 0o444
_SEALED = stat.S_IFREG
_LINK = stat.S_IFLNK | 0o777

#: Operations that would change a name in a directory; below, operations that would change the node itself.
_NAME_WRITES = frozenset(
    {Op.MKNOD, Op.MKDIR, Op.UNLINK, Op.RMDIR, Op.SYMLINK, Op.LINK, Op.CREATE, Op.RENAME, Op.RENAME2}
)
_NODE_WRITES = frozenset(
    {Op.SETATTR, Op.SETXATTR, Op.REMOVEXATTR, Op.TMPFILE, Op.WRITE, Op.FALLOCATE, Op.COPY_FILE_RANGE}
)


class SeenRequest(NamedTuple):
    """A request that the recorder must learn of before it is answered, with its reply.

    Attributes:
        path: the absolute path: the hidden name of a LOOKUP, the closed place of an OPEN, an ACCESS or a listing, else
            the name that would have been changed.
        op: the operation.
    """

    path: str
    op: int
    reply: bytes


class MaskTree:
    """Directories, mount points, links and sealed files, by absolute path and by node.

    Args:
        operations: those of a plan; the ones that place nothing are passed over.
        remember_missing: whether the kernel may remember that a path is hidden. Where each lookup must be seen, it may
            not.

    Raises:
        ValueError: an operation lies below a placed file or link, or at or below a name served from the host.
    """

    def __init__(self, operations: Iterable[Operation], *, remember_missing: Callable[[str], bool]) -> None:
        self._remember_missing = remember_missing
        self._paths: list[str] = ["", "/"]  # by node; the first node is 1
        self._modes: list[int] = [0, _DIRECTORY]
        self._targets: dict[int, str] = {}
        self._children: list[dict[str, int]] = [{}, {}]
        self._listings: dict[int, list[tuple[int, str, int]]] = {}
        self._served: set[str] = set()
        self._still = True
        self._known: dict[str, int] = {}
        self._attributes: dict[tuple[int, int, tuple[int, int]], bytes] = {}
        for operation in operations:
            self._place(operation)
        for path in self._served:
            if self.node(path) is not None:
                raise ValueError(f"{path} is served by name, and something is placed there")

    def _place(self, operation: Operation) -> None:
        match operation:
            case Cover() | Way():
                self._node(operation.path, _DIRECTORY)
            case Bind(directory=directory):
                self._node(operation.path, _DIRECTORY if directory else _FILE)
            case Empty():
                self._node(operation.path, _EMPTY)
            case Seal():
                self._node(operation.path, _SEALED)
            case Name():
                self._node(os.path.dirname(operation.path), _DIRECTORY)
                self._served.add(operation.path)
                self._still = False
            case Names():
                self._node(operation.path, _DIRECTORY)
                self._still = False
            case Link(target=target):
                self._targets[self._node(operation.path, _LINK)] = target
            case _:
                pass

    def _node(self, path: str, mode: int) -> int:
        above, _, name = path.rpartition("/")
        parent = self._known.get(above)
        if parent is None:
            parent = fuse_protocol.ROOT
            for part in filter(None, above.split("/")):
                parent = self._step(parent, part)
            # files granted in one directory may be thousands, and only the first walks there
            self._known[above] = parent
        node = self._step(parent, name) if name else parent
        if self._children[node] and not stat.S_ISDIR(mode):
            raise ValueError(f"{path} has something placed in it and is no directory")
        self._modes[node] = mode
        self._targets.pop(node, None)
        return node

    def _step(self, parent: int, name: str) -> int:
        child = self._children[parent].get(name)
        if child is not None:
            return child
        path = self._join(parent, name)
        if not stat.S_ISDIR(self._modes[parent]):
            raise ValueError(f"{path} is placed below {self._paths[parent]}, which is no directory")
        child = self._children[parent][name] = len(self._paths)
        self._paths.append(path)
        self._modes.append(_DIRECTORY)
        self._children.append({})
        return child

    def node(self, path: str) -> int | None:
        """The node of an absolute path, `None` where nothing is placed."""
        node: int | None = fuse_protocol.ROOT
        for name in filter(None, path.split("/")):
            node = self._children[node].get(name) if node is not None else None
        return node

    def path(self, node: int) -> str | None:
        """The absolute path of a node, `None` for a number that was never given out."""
        return self._paths[node] if 0 < node < len(self._paths) else None

    def directories(self) -> dict[int, str]:
        """The paths, by node, of the directories that hold only placed names."""
        return {node: self._paths[node] for node in range(1, len(self._paths)) if self._modes[node] == _DIRECTORY}

    def child(self, node: int, name: str) -> int | None:
        """The node of a name placed in the directory `node`, `None` where nothing is."""
        return self._children[node].get(name)

    def answer(self, request: FuseRequest, *, now: int, owner: tuple[int, int]) -> bytes | SeenRequest | None:
        """The reply to a request; `None` where the kernel expects none.

        Args:
            request: a request as `fuse_protocol.parse` returns it.
            now: nanoseconds since the epoch, the times of every node.
            owner: uid and gid of every node, as the mask's user namespace numbers them.
        """
        op, unique, node = request.op, request.unique, request.node
        if op in fuse_protocol.SILENT:
            return None
        if op == Op.INIT:
            if request.fields[0] < fuse_protocol.MAJOR:
                return fuse_protocol.error(unique, 71)  # EPROTO: a kernel older than the protocol
            return fuse_protocol.reply(unique, fuse_protocol.init_out(request, want=_WANT, max_write=MAX_WRITE))
        if op == Op.DESTROY:
            return fuse_protocol.reply(unique)
        if not 0 < node < len(self._paths):
            return fuse_protocol.error(unique, ENOENT)
        if op == Op.LOOKUP:
            return self._lookup(request, now, owner)
        if op == Op.GETATTR:
            return fuse_protocol.reply(unique, fuse_protocol.attr_out(self._attr(node, now, owner), valid=REMEMBER))
        if op in _NAME_WRITES:
            return SeenRequest(self._join(node, request.names[0]), op, fuse_protocol.error(unique, EROFS))
        if op in _NODE_WRITES:
            return SeenRequest(self._paths[node], op, fuse_protocol.error(unique, EROFS))
        return self._open(request, now, owner)

    def _lookup(self, request: FuseRequest, now: int, owner: tuple[int, int]) -> bytes | SeenRequest:
        name = request.names[0]
        child = self._children[request.node].get(name)
        if child is not None:
            return fuse_protocol.reply(request.unique, self._entry(child, now, owner))
        path = self._join(request.node, name)
        valid = REMEMBER if self._remember_missing(path) else 0
        return SeenRequest(path, Op.LOOKUP, fuse_protocol.reply(request.unique, fuse_protocol.negative_entry(valid)))

    def _entry(self, node: int, now: int, owner: tuple[int, int]) -> bytes:
        return fuse_protocol.entry_out(node, self._attr(node, now, owner), entry_valid=REMEMBER, attr_valid=REMEMBER)

    def _listed(self, request: FuseRequest, now: int, owner: tuple[int, int]) -> bytes:
        """A part of a listing with attributes, by which the kernel learns a thousand names without a lookup of each."""
        _, offset, size = request.fields[:3]
        listing = self.listing(request.node)
        out: list[bytes] = []
        for index in range(offset, len(listing)):
            node, name, kind = listing[index]
            known = self._entry(node, now, owner) if index > 1 else fuse_protocol.NO_ENTRY
            entry = known + fuse_protocol.dirent(node, name, kind, index + 1)
            size -= len(entry)
            if size < 0:
                break
            out.append(entry)
        return b"".join(out)

    def _open(self, request: FuseRequest, now: int, owner: tuple[int, int]) -> bytes | SeenRequest:
        op, unique, node = request.op, request.unique, request.node
        if self._modes[node] in (_EMPTY, _SEALED):
            return self._closed(request, now, owner)
        if op == Op.READDIRPLUS:
            return fuse_protocol.reply(unique, self._listed(request, now, owner))
        if op == Op.OPENDIR:
            # after ENOSYS the kernel opens directories by itself and caches what it reads (fs/fuse/dir.c, no_opendir)
            return (
                fuse_protocol.error(unique, ENOSYS)
                if self._still
                else fuse_protocol.reply(unique, fuse_protocol.open_out())
            )
        if op == Op.READDIR:
            return fuse_protocol.reply(
                unique, fuse_protocol.dirents(self.listing(node), request.fields[1], request.fields[2])
            )
        if op in (Op.RELEASE, Op.RELEASEDIR):
            return fuse_protocol.reply(unique)
        if op == Op.OPEN:
            if request.fields[0] & _OPEN_FOR_WRITING:
                return fuse_protocol.error(unique, EROFS)
            return fuse_protocol.reply(unique, fuse_protocol.open_out())
        return self._tell(request)

    def _closed(self, request: FuseRequest, now: int, owner: tuple[int, int]) -> bytes | SeenRequest:
        """The reply for a place that keeps its name and nothing else; who opens or lists it is told."""
        op, unique, path = request.op, request.unique, self._paths[request.node]
        sealed = self._modes[request.node] == _SEALED
        if sealed and (op == Op.OPEN or (op == Op.ACCESS and request.fields[0])):
            return SeenRequest(path, op, fuse_protocol.error(unique, EACCES))
        if op == Op.READDIRPLUS:
            return SeenRequest(path, op, fuse_protocol.reply(unique, self._listed(request, now, owner)))
        if op == Op.READDIR:
            listed = fuse_protocol.dirents(self.listing(request.node), request.fields[1], request.fields[2])
            return SeenRequest(path, op, fuse_protocol.reply(unique, listed))
        if op == Op.OPENDIR and self._still:
            return fuse_protocol.error(unique, ENOSYS)
        if op in (Op.OPENDIR, Op.RELEASEDIR):
            return fuse_protocol.reply(unique, fuse_protocol.open_out() if op == Op.OPENDIR else b"")
        return self._tell(request)

    def _tell(self, request: FuseRequest) -> bytes:
        op, unique, node = request.op, request.unique, request.node
        if op == Op.READ:
            return fuse_protocol.reply(unique)
        if op == Op.ACCESS:
            return (
                fuse_protocol.error(unique, EROFS) if request.fields[0] & _ACCESS_WRITE else fuse_protocol.reply(unique)
            )
        if op == Op.STATFS:
            return fuse_protocol.reply(unique, fuse_protocol.statfs_out())
        if op == Op.READLINK:
            target = self._targets.get(node)
            return (
                fuse_protocol.error(unique, EINVAL)
                if target is None
                else fuse_protocol.reply(unique, fuse_protocol.readlink_out(target))
            )
        return fuse_protocol.error(unique, ENOSYS)

    def _join(self, node: int, name: str) -> str:
        parent = self._paths[node]
        return f"/{name}" if parent == "/" else f"{parent}/{name}"

    def _attr(self, node: int, now: int, owner: tuple[int, int]) -> bytes:
        mode = self._modes[node]
        if stat.S_ISLNK(mode):
            target = os.fsencode(self._targets[node])
            return fuse_protocol.attr(node, mode, size=len(target), owner=owner, times=(now, now, now))
        # nodes of a kind differ in their number alone
        alike = self._attributes.get((mode, now, owner))
        if alike is None:
            nlink = 2 if stat.S_ISDIR(mode) else 1
            alike = fuse_protocol.attr(0, mode, nlink=nlink, owner=owner, times=(now, now, now))
            self._attributes[mode, now, owner] = alike
        return fuse_protocol.renumbered(alike, node)

    def listing(self, node: int) -> list[tuple[int, str, int]]:
        """A directory's entries, `.` and `..` first: inode, name and kind, as `fuse_protocol.dirents` takes them."""
        listing = self._listings.get(node)
        if listing is None:
            parent = self.node(os.path.dirname(self._paths[node])) or fuse_protocol.ROOT
            listing = [(node, ".", stat.S_IFDIR >> 12), (parent, "..", stat.S_IFDIR >> 12)]
            listing += [(child, name, self._modes[child] >> 12) for name, child in sorted(self._children[node].items())]
            self._listings[node] = listing
        return listing
