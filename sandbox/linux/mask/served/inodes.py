"""EFFECT: the inodes the kernel knows of, each with a descriptor of its own while there are descriptors to spare."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

#: Nodes of the host start here; the mask's own lie below.
FIRST = 1 << 32

_HOLD = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class LastSeenAt(NamedTuple):
    """Where a node was last seen: the node of its directory, its name, whether in that directory's staging area."""

    directory: int
    name: str
    staged: bool = False


@dataclass(slots=True)
class Inode:
    """One inode of the host.

    Attributes:
        key: its device, its number, and `way`.
        kind: the file type bits of its mode, which never change.
        fd: an O_PATH descriptor, -1 while it is given up.
        way: for a directory shown only as the way to matches its path as the task sees it, else empty.
        seen: modification time and size as this server last left or showed them.
        handles: how many of its handles are open.
        changed: when its inode last changed, as it was when the descriptor was given up.
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
        """Whether an inode of this number is this one: a number is given again once nothing holds its inode."""
        if self.fd >= 0 or self.handles:
            return True
        if stat.S_IFMT(found.st_mode) != self.kind:
            return False
        # a working directory must survive what the host does in it; what is in it is looked up anew
        return self.kind == stat.S_IFDIR or found.st_ctime_ns == self.changed


def magic(fd: int) -> str:
    """A path that leads to what a descriptor holds and nowhere else."""
    return f"/proc/self/fd/{fd}"


def stale() -> OSError:
    """What a node answers that is no longer where it was; the kernel looks again."""
    return OSError(errno.ESTALE, os.strerror(errno.ESTALE))


class InodeTable:
    """Nodes by number and by key.

    Args:
        budget: how many descriptors nodes may hold; past it those held longest are given up, to be opened again
            where they were last seen and only if the same inode is still there.
        directory: an O_PATH descriptor for the directory part of a `LastSeenAt`.
        limit: no descriptor from this number on is given to the task's doings: this process needs some of its own,
            to read who asks.
    """

    def __init__(self, budget: int, directory: Callable[[int, bool], int], limit: int = 1 << 30) -> None:
        self._budget = max(16, budget)
        self._limit = limit
        self._directory = directory
        self._nodes: dict[int, Inode] = {}
        self._keys: dict[tuple[int, int, str], Inode] = {}
        self._held: dict[int, None] = {}  # by number, held longest first
        self._next = FIRST

    def __len__(self) -> int:
        """How many nodes the kernel knows of."""
        return len(self._nodes)

    def get(self, number: int) -> Inode:
        """The node of a number.

        Raises:
            OSError: ESTALE, there is none.
        """
        node = self._nodes.get(number)
        if node is None:
            raise stale()
        return node

    def spared(self, fd: int) -> int:
        """A descriptor just opened, if enough are left after it.

        Raises:
            OSError: EMFILE, too few are; it is closed.
        """
        if fd >= self._limit:
            os.close(fd)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return fd

    def enter(self, directory: int, name: str, place: LastSeenAt, way: str = "") -> tuple[Inode, os.stat_result]:
        """Look a name up in the directory of the host that is open as `directory`; counts as one lookup."""
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        node = self._keys.get((found.st_dev, found.st_ino, way))
        if node is None or not node.is_still(found):
            fd = os.open(name, _HOLD, dir_fd=directory)
            return self._hold(self.spared(fd), place, way)
        node.place = node.place and place
        node.lookups += 1
        return node, found

    def adopt(self, opened: int, place: LastSeenAt | None) -> tuple[Inode, os.stat_result]:
        """The node of a file that is open; counts as one lookup. Without a place it has no name."""
        # not a duplicate: one open for writing would forbid the file to be executed
        return self._hold(os.open(magic(opened), os.O_PATH | os.O_CLOEXEC), place, "")

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
        """Between two requests: give descriptors up where too many are held."""
        if len(self._held) <= self._budget:
            return
        for number in list(self._held)[: len(self._held) - self._budget + self._budget // 4]:
            node = self._nodes[number]
            if node.place is not None:  # else nothing leads back to it
                del self._held[number]
                node.changed = os.fstat(node.fd).st_ctime_ns
                os.close(node.fd)
                node.fd = -1

    def descriptor(self, node: Inode) -> int:
        """A descriptor of the node, valid until the request is answered.

        Raises:
            OSError: ESTALE, something else is where it was.
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
        """The node of a name, if the kernel knows of it; not counted."""
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except OSError:
            return None
        return self._keys.get((found.st_dev, found.st_ino, ""))

    def pin(self, node: Inode | None) -> None:
        """Before a name of the node goes: hold it from now on, for no other name is known."""
        if node is not None:
            try:
                self.descriptor(node)
                node.place = None
            except OSError:  # it was gone already
                return

    def forget(self, number: int, lookups: int) -> None:
        """The kernel gives back that many lookups of a node."""
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
