"""EFFECT: the state that the handlers of one mask share: names, inodes, open files, the owner, the plan's tree."""

from __future__ import annotations

import mmap
import os
import resource
import struct
from typing import TYPE_CHECKING

from sandbox.linux.mask.mask_tree import MAX_WRITE, MaskTree, SeenRequest
from sandbox.linux.mask.served.name_lookup import NameLookup
from sandbox.linux.mask.served.open_files import OpenFiles
from sandbox.linux.mask.served.staging_directories import StagedNames

if TYPE_CHECKING:
    from sandbox.linux.kernel.fuse_protocol import FuseRequest
    from sandbox.linux.mask.served.inodes import Inode
    from sandbox.planning.served_and_staged_names import GrantedNames
    from sandbox.request.protected_names import ProtectedNames

_OUT_HEADER = struct.Struct("<IiQ")


class HandlerContext:
    """The state of one mask's handlers.

    Attributes:
        names: tells what each name of a served directory stands for; its table holds the inodes.
        handles: the files and directories that the task has open.
        owner: uid and gid of everything served, as the mask's user namespace numbers them.
        now: nanoseconds since the epoch, the times of names that only the plan's tree holds.
    """

    def __init__(
        self, tree: MaskTree, granted: GrantedNames, staging: str, executed: ProtectedNames | None = None
    ) -> None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.names = NameLookup(tree, granted, StagedNames(staging), descriptors=soft, executed=executed)
        self.handles = OpenFiles()
        self.owner = (0, 0)
        self.now = 0
        self._tree = tree
        self._buffer = mmap.mmap(-1, _OUT_HEADER.size + MAX_WRITE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._view = memoryview(self._buffer)

    def node(self, number: int) -> Inode:
        """The node of a number, if it is one of the host's.

        Raises:
            OSError: ESTALE, no such node exists.
        """
        return self.names.table.get(number)

    def descriptor(self, node: Inode) -> int:
        """An O_PATH descriptor of a node."""
        return self.names.table.descriptor(node)

    def remember_state(self, node: Inode, found: os.stat_result) -> None:
        """Remember a file's state as a handler leaves it: cached pages hold if the next open finds the same."""
        node.seen = (found.st_mtime_ns, found.st_size)

    def tree_answer(self, request: FuseRequest) -> bytes | SeenRequest | None:
        """The reply of the plan's own tree."""
        return self._tree.answer(request, now=self.now, owner=self.owner)

    def tree_payload(self, request: FuseRequest) -> bytes | SeenRequest:
        """The payload of the reply of the plan's own tree."""
        answer = self.tree_answer(request)
        if isinstance(answer, bytes):
            return answer[_OUT_HEADER.size :]
        return answer if answer is not None else b""

    def file_reply(self, unique: int, fd: int, offset: int, size: int) -> memoryview:
        """A whole reply with bytes of a file, read into the buffer that it is sent from."""
        head = _OUT_HEADER.size
        got = os.preadv(fd, [self._view[head : head + size]], offset)
        _OUT_HEADER.pack_into(self._buffer, 0, head + got, 0, unique)
        return self._view[: head + got]
