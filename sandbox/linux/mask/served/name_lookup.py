"""EFFECT: the meaning of a name in a directory: placed by the plan, the host's, staged, a way to matches, or nothing.

A *mixed* directory is a cover or a way of the plan in which granted names may stand, or a directory of the host's that
leads to matches of a pattern. Any other directory is the host's whole.
"""

from __future__ import annotations

import errno
import os
import stat
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from sandbox.linux.kernel import kernel_calls
from sandbox.linux.mask.served import inodes
from sandbox.linux.mask.served.inodes import FIRST, InodeTable, LastSeenAt
from sandbox.linux.mask.served.ways_to_matches import WaysToMatches
from sandbox.request.protected_names import ProtectedNames, carries

if TYPE_CHECKING:
    from sandbox.linux.mask.mask_tree import MaskTree
    from sandbox.linux.mask.served.staging_directories import StagedNames
    from sandbox.planning.served_and_staged_names import GrantedNames

_KEPT_BACK = 256
_NODES = 65536

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

#: Inode, name and kind, as `fuse_protocol.dirents` takes them.
Entry = tuple[int, str, int]


class SpotKind(Enum):
    """The meaning of a name."""

    PLACED = auto()  # placed by the plan
    HOST = auto()  # granted, or below a granted name; the name need not exist
    STAGED = auto()
    WAY = auto()  # a directory that leads to matches
    NOTHING = auto()


class Spot(NamedTuple):
    """A name in a directory.

    Attributes:
        fd: the directory that holds the name, or would; -1 for `PLACED` and `NOTHING`.
        path: the path as the task sees it; empty below a granted name.
        parent: the node of the directory.
    """

    kind: SpotKind
    fd: int
    name: str
    path: str
    parent: int

    @property
    def place(self) -> LastSeenAt:
        """The name's place, for the table of nodes."""
        return LastSeenAt(self.parent, self.name, self.kind is SpotKind.STAGED)


class NameLookup:
    """The meaning of each name in each served directory.

    Args:
        descriptors: the number of descriptors that this process may have.
        executed: names that other programs execute, below which nothing may be made or changed, whatever is granted.
    """

    def __init__(
        self,
        tree: MaskTree,
        granted: GrantedNames,
        staging: StagedNames,
        descriptors: int,
        executed: ProtectedNames | None = None,
    ) -> None:
        # a request opens a few descriptors for a moment, and another thread reads callers
        limit = descriptors - min(_KEPT_BACK, descriptors // 8)
        self.table = InodeTable(min(descriptors // 2, _NODES), self._directory, limit)
        self.staging = staging
        self.granted = granted
        self._executed = executed or ProtectedNames()
        self._tree = tree
        self._root = os.open("/", _DIRECTORY)
        self._fixed = {
            node: path
            for node, path in tree.directories().items()
            if granted.stages(path) or granted.leads(path) or granted.literal(path)
        }
        self._kept = {node: fd for node, path in self._fixed.items() if (fd := self._opened(path)) >= 0}
        self._scratch: list[int] = []
        self.ways = WaysToMatches(granted, self.table.admit)

    def mixed(self, node: int) -> str:
        """The path of a mixed directory, empty for any other node."""
        if node < FIRST:
            return self._fixed.get(node, "")
        return self.table.get(node).way

    def host(self, node: int) -> int:
        """A descriptor of a directory on the host, valid until the request is answered; -1 where the host has none."""
        if node >= FIRST:
            return self.table.descriptor(self.table.get(node))
        fd = self._opened(self._fixed[node])
        if fd >= 0:
            self._scratch.append(fd)
            return fd
        return self._kept.get(node, -1)

    def _opened(self, path: str) -> int:
        try:
            return kernel_calls.open_beneath(self._root, path.strip("/"), _DIRECTORY)
        except OSError:
            return -1

    def _directory(self, node: int, staged: bool) -> int:
        return self.staging.area(self.mixed(node), make=False) if staged else self.host(node)

    def end_request(self) -> None:
        """Close what was opened for a request that is answered."""
        while self._scratch:
            os.close(self._scratch.pop())
        self.table.trim()

    def spot(self, node: int, name: str) -> Spot:
        """The meaning of `name` in the directory `node`."""
        mixed = self.mixed(node)
        if not mixed and node < FIRST:
            # the plan's directory holds no granted name; only a rename into it asks
            return Spot(SpotKind.PLACED, -1, name, f"{(self._tree.path(node) or '').rstrip('/')}/{name}", node)
        if not mixed:
            return Spot(SpotKind.HOST, self.host(node), name, "", node)
        path = f"{mixed.rstrip('/')}/{name}"
        if node < FIRST and self._tree.child(node, name) is not None:
            return Spot(SpotKind.PLACED, -1, name, path, node)
        if self.granted.granted(path):
            return Spot(SpotKind.HOST, self.host(node), name, path, node)
        if self.staging.holds(mixed, name):
            return Spot(SpotKind.STAGED, self.staging.area(mixed, make=False), name, path, node)
        if self.granted.leads(path) and self.ways.shown(host := self.host(node), name, path):
            return Spot(SpotKind.WAY, host, name, path, node)
        return Spot(SpotKind.NOTHING, -1, name, path, node)

    def protected_path(self, node: int, name: str, *, moved: bool = False, brings: bool = False) -> str:
        """The path of a name in a directory where other programs execute it, else an empty string.

        The mask must judge this itself: a caller may change the path of a notified call after it was read, but the
        kernel resolved the names of a request. Staged names are judged as well, for they may be moved into place.

        Args:
            node: the directory.
            name: the name to be made, changed or removed.
            moved: whether an existing file becomes the name, or something other than a directory is made.
            brings: whether that file is a directory.
        """
        top, path = self._path(node, name) if self._executed else ("", "")
        if not path:
            return ""
        if self._executed.reserves(path, top):
            return path
        return path if moved and carries(path, brings=brings) else ""

    def holds_protected(self, node: int, name: str) -> str:
        """The path of a directory that is not renamed, since a protected name lies below it; else an empty string."""
        path = self._path(node, name)[1] if self._executed.kept else ""
        return path if path and self._executed.holds(path) else ""

    def _path(self, node: int, name: str) -> tuple[str, str]:
        """The mixed directory that a name lies in, however deep, and the path; empty in a directory that is gone."""
        parts = [name]
        while not (top := self.mixed(node)):
            place = self.table.get(node).place
            if place is None:  # the directory was removed, and nothing can be made in it
                return "", ""
            parts.append(place.name)
            node = place.directory
        return top, "/".join((top.rstrip("/"), *reversed(parts)))

    def new_spot(self, spot: Spot) -> Spot | None:
        """The spot where a new name is made: its own, or the staging area; `None` where nothing may be made."""
        if spot.kind in (SpotKind.HOST, SpotKind.STAGED):
            return spot
        directory = self.mixed(spot.parent)
        if spot.kind is SpotKind.NOTHING and self.staging and self.granted.stages(directory):
            return spot._replace(kind=SpotKind.STAGED, fd=self.staging.area(directory, make=True))
        return None

    def make_way(self, spot: Spot, mode: int) -> Spot:
        """Make a directory on the host that may lead to matches."""
        host = self.host(spot.parent)
        self.ways.make(host, spot.name, mode)
        return spot._replace(kind=SpotKind.WAY, fd=host)

    def remove_way(self, spot: Spot) -> None:
        """Remove a way: from the host where it is empty there and was shown or made, else from the task's sight.

        Raises:
            OSError: ENOTEMPTY, the task sees a name in it.
        """
        fd = kernel_calls.open_beneath(spot.fd, spot.name, _DIRECTORY)
        try:
            if self.staging.names(spot.path) or self._seen_on_host(fd, spot.path):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
            found = os.fstat(fd)
        finally:
            os.close(fd)
        self.ways.remove(spot.fd, spot.name, (found.st_dev, found.st_ino))

    def listing(self, node: int) -> list[Entry]:
        """The entries that a mixed directory shows, without `.` and `..`."""
        mixed = self.mixed(node)
        shown: dict[str, Entry] = {}
        host = self.host(node)
        if host >= 0:
            shown.update((entry[1], entry) for entry in self._seen_on_host(host, mixed))
        area = self.staging.area(mixed, make=False)
        if area >= 0:
            shown.update((entry[1], entry) for entry in entries(area))
        if node < FIRST:
            shown.update((entry[1], entry) for entry in self._tree.listing(node)[2:])
        return list(shown.values())

    def _seen_on_host(self, fd: int, directory: str) -> list[Entry]:
        seen = []
        leads = self.granted.leads(directory)
        for entry in entries(fd) if leads else _stated(fd, self.granted.literal(directory)):
            path = f"{directory.rstrip('/')}/{entry[1]}"
            if self.granted.granted(path) or (self.granted.leads(path) and self.ways.shown(fd, entry[1], path)):
                seen.append(entry)
        return seen

    def close(self) -> tuple[str, ...]:
        """Remove the ways that the task made and left empty; the names left in staging, as the task saw their paths."""
        self.ways.close()
        return self.staging.leftovers()


def entries(fd: int) -> list[Entry]:
    """The entries of a directory of the host's, without `.` and `..`."""
    opened = os.open(inodes.magic_link(fd), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with os.scandir(opened) as found:
            return [(entry.inode(), entry.name, _kind(entry)) for entry in found]
    finally:
        os.close(opened)


def _kind(entry: os.DirEntry[str]) -> int:
    if entry.is_symlink():
        return stat.S_IFLNK >> 12
    if entry.is_dir(follow_symlinks=False):
        return stat.S_IFDIR >> 12
    return stat.S_IFREG >> 12 if entry.is_file(follow_symlinks=False) else 0


def _stated(fd: int, names: frozenset[str]) -> list[Entry]:
    found = []
    for name in sorted(names):
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            continue
        found.append((status.st_ino, name, stat.S_IFMT(status.st_mode) >> 12))
    return found
