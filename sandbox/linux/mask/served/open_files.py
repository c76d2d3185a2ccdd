"""EFFECT: the handles that the kernel holds: open files and open directories of the host, by number."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.linux.mask.served.inodes import Inode
    from sandbox.linux.mask.served.name_lookup import Entry


@dataclass(slots=True)
class OpenFile:
    """An open file or directory.

    Attributes:
        fd: its descriptor, -1 for a mixed directory.
        listing: the entries of a directory when it was last read from its start.
    """

    fd: int
    node: Inode | None
    listing: list[Entry] = field(default_factory=list)


class OpenFiles:
    """Handles by the numbers that the kernel knows, from 1 on."""

    def __init__(self) -> None:
        self._handles: dict[int, OpenFile] = {}
        self._next = 1

    def add(self, handle: OpenFile) -> int:
        """Keep a handle; its number."""
        if handle.node is not None:
            handle.node.handles += 1
        number, self._next = self._next, self._next + 1
        self._handles[number] = handle
        return number

    def get(self, number: int) -> OpenFile:
        """The handle of a number.

        Raises:
            OSError: EBADF, no such handle exists.
        """
        handle = self._handles.get(number)
        if handle is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return handle

    def close(self, number: int) -> None:
        """Close a handle, if there is one of that number."""
        handle = self._handles.pop(number, None)
        if handle is None:
            return
        if handle.node is not None:
            handle.node.handles -= 1
            handle.node.changed = os.fstat(handle.fd).st_ctime_ns
        if handle.fd >= 0:
            os.close(handle.fd)
