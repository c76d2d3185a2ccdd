"""EFFECT: the inodes that the kernel knows of, each with a descriptor while there are enough descriptors."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: The first node of the host's; the numbers below are nodes of the plan's tree.
FIRST = 1 << 32

_HOLD = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class LastSeenAt(NamedTuple):
    """The place where a node was last seen: its directory's node, its name, whether it lies in the staging area."""

    directory: int
    name: str
    staged: bool = False


@dataclass(slots=True)
class Inode:
    """An inode of the host.

    Attributes:
        key: device, inode number, and `way`.
        kind: the file type bits of the mode, which never change.
        fd: an O_PATH descriptor, -1 while it is given up.
        way: the path, as the task sees it, of a directory that is shown only because it leads to matches; else empty.
        seen: modification time and size as this server last left or showed the file.
        handles: the number of open handles.
        changed: the change time when the descriptor was given up.
    """

    number: int
    key: tuple[int, int, str]
    kind: int
    fd: int
    place: LastSeenAt | None
    way: str = ""
    lookups: int = 0
    seen: tuple[int, int] = (-1, -1)
    handles: int = 0
    changed: int = 0

    def is_still(self, found: os.stat_result) -> bool:
        """Whether a found inode is this one: a number is given again once nothing holds its inode."""
        if self.fd >= 0 or self.handles:
            return True
        if stat.S_IFMT(found.st_mode) != self.kind:
            return False
        # a working directory survives what the host does in it, since names in it are looked up anew
        return self.kind == stat.S_IFDIR or found.st_ctime_ns == self.changed


def magic_link(fd: int) -> str:
    """A magic link, which leads to the file of a descriptor and nowhere else (proc(5), /proc/pid/fd)."""
    return f"/proc/self/fd/{fd}"


def stale() -> OSError:
    """The error of a node that is no longer where it was, after which the kernel looks again."""
    return OSError(errno.ESTALE, os.strerror(errno.ESTALE))


class InodeTable:
    """Nodes by number and by key.

    Args:
        budget: the descriptors that nodes may hold. Beyond it those held longest are given up; a node's file is opened
            again where it was last seen, if the same inode is still there.
        directory: finds the O_PATH descriptor of the directory in a `LastSeenAt`.
        limit: the number from which on no descriptor serves the task, since this process needs some itself to read
            callers.
    """

    def __init__(self, budget: int, directory: Callable[[int, bool], int], limit: int = 1 << 30) -> None:
        self._budget = max(16, budget)
        self._limit = limit
        self._directory = directory
        self._nodes: dict[int, Inode] = {}
        self._keys: dict[tuple[int, int, str], Inode] = {}
        self._held: dict[int, None] = {}  # by number, the longest held first
        self._next = FIRST

    def __len__(self) -> int:
        """The number of nodes that the kernel knows of."""
        return len(self._nodes)

    def get(self, number: int) -> Inode:
        """The node of a number, if it is one of the host's.

        Raises:
            OSError: ESTALE, no such node exists.
        """
        node = self._nodes.get(number)
        if node is None:
            raise stale()
        return node

    def admit(self, fd: int) -> int:
        """A descriptor that was just opened, if enough others are left.

        Raises:
            OSError: EMFILE, too few are left; the descriptor is closed.
        """
        if fd >= self._limit:
            os.close(fd)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return fd

    def enter(self, directory: int, name: str, place: LastSeenAt, way: str = "") -> tuple[Inode, os.stat_result]:
        """Look a name up in the host's directory open as `directory`, which counts as one lookup of the node."""
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        node = self._keys.get((found.st_dev, found.st_ino, way))
        if node is None or not node.is_still(found):
            fd = os.open(name, _HOLD, dir_fd=directory)
            return self._hold(self.admit(fd), place, way)
        node.place = node.place and place
        node.lookups += 1
        return node, found

    def adopt(self, opened: int, place: LastSeenAt | None) -> tuple[Inode, os.stat_result]:
        """The node of an open file, which counts as one lookup; without a place the file has no name."""
        # no duplicate is kept: a descriptor open for writing would keep the file from being executed (ETXTBSY)
        return self._hold(os.open(magic_link(opened), os.O_PATH | os.O_CLOEXEC), place, "")

    def _hold(self, fd: int, place: LastSeenAt | None, way: str) -> tuple[Inode, os.stat_result]:
        found = os.fstat(fd)
        key = (found.st_dev, found.st_ino, way)
        node = self._keys.get(key)
        if node is None or not node.is_still(found):
            node = Inode(self._next, key, stat.S_IFMT(found.st_mode), fd, place, way)
            self._next += 1
            self._nodes[node.number] = self._keys[key] = node
            self._held[node.number] = None
        else:
            os.close(fd)
            node.place = node.place and place
        node.lookups += 1
        return node, found

    def trim(self) -> None:
        """Give descriptors up, between two requests, where too many are held."""
        if len(self._held) <= self._budget:
            return
        for number in list(self._held)[: len(self._held) - self._budget + self._budget // 4]:
            node = self._nodes[number]
            if node.place is not None:  # a file without a name cannot be opened again
                del self._held[number]
                node.changed = os.fstat(node.fd).st_ctime_ns
                os.close(node.fd)
                node.fd = -1

    def descriptor(self, node: Inode) -> int:
        """A descriptor of a node, valid until the request is answered.

        Raises:
            OSError: ESTALE, another file is where the node was.
        """
        if node.fd < 0:
            if node.place is None:
                raise stale()
            try:
                fd = os.open(node.place.name, _HOLD, dir_fd=self._directory(node.place.directory, node.place.staged))
            except FileNotFoundError as error:
                raise stale() from error
            found = os.fstat(fd)
            if (found.st_dev, found.st_ino) != node.key[:2] or not node.is_still(found):
                os.close(fd)
                raise stale()
            node.fd = fd
            self._held[node.number] = None
        return node.fd

    def known(self, directory: int, name: str) -> Inode | None:
        """The node of a name, where the kernel knows of it; this counts as no lookup."""
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except OSError:
            return None
        return self._keys.get((found.st_dev, found.st_ino, ""))

    @contextlib.contextmanager
    def letting_go(self, node: Inode | None) -> Iterator[None]:
        """Hold a node from now on, while its name goes: no other name of it is known.

        Where the name stays after all, the node is still there: what is made in a directory is judged by its place.
        """
        place = None if node is None else node.place
        if node is not None:
            with contextlib.suppress(OSError):  # the file is gone already
                self.descriptor(node)
                node.place = None
        try:
            yield
        except OSError:
            if node is not None:
                node.place = place
            raise

    def forget(self, number: int, lookups: int) -> None:
        """Count that the kernel gives back so many lookups of a node, and drop a node without any."""
        node = self._nodes.get(number)
        if node is None:
            return
        node.lookups -= lookups
        if node.lookups <= 0:
            del self._nodes[number]
            if self._keys.get(node.key) is node:
                del self._keys[node.key]
            self._held.pop(number, None)
            if node.fd >= 0:
                os.close(node.fd)
