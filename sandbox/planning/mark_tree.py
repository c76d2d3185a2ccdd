"""The marks that a request's grants and walls put on paths, as a plan of Linux collects them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.planning.marks_to_operations import Layout
from sandbox.planning.operations import (
    Make,
    Name,
    Names,
    Operation,
    Origin,
    ReadOnlyRoot,
)
from sandbox.planning.path_marks import MarkedPath
from sandbox.planning.served_and_staged_names import GrantedNames

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.base.host_facts import Files
    from sandbox.planning.path_marks import Hide
    from sandbox.request.protected_names import ProtectedNames


class MarkTree:
    """Marks on paths, collected in any order; the operations do not depend on the order."""

    def __init__(self, files: Files) -> None:
        """Start with the whole root readable."""
        self._files = files
        self._root = MarkedPath()
        self._makes: dict[str, Make] = {}
        self._served: list[Name | Names] = []
        self._instead: dict[Names, str] = {}
        self._holds = False
        # Directories that are led to already, the root among them; nothing about the way there changes again.
        self._led: dict[str, MarkedPath] = {"": self._root}

    def read(self, path: str, origin: Origin) -> None:
        """Grant reading of a path and everything below it."""
        node = self._lead(path, origin)
        node.read = node.read or origin

    def write(self, path: str, origin: Origin, *, directory: bool, make: bool = False) -> None:
        """Grant writing; `make` has the directory made first."""
        node = self._lead(path, origin)
        node.write = node.write or origin
        if directory:
            self._mark_made(path)
        if make and (path not in self._makes or self._makes[path].passing):
            self._makes[path] = Make(path=path, origin=origin)

    def name(self, path: str, origin: Origin, *, make: str = "") -> None:
        """Grant a name, whatever it becomes; `make` is the directory to make first, if any."""
        node = self._lead(path, origin)
        if node.name is None:
            node.name = origin
            self._served.append(Name(path=path, origin=origin))
        self._make_passing(make, origin)

    def pattern(self, names: Names, *, make: str = "", instead: str = "") -> None:
        """Grant every name that matches; `instead` is advice for where that takes too much."""
        node = self._lead(names.path, names.origin)
        node.way = node.way or names.origin
        node.patterns += (names,)
        self._served.append(names)
        self._instead[names] = instead
        self._make_passing(make, names.origin)

    def make(self, path: str, origin: Origin) -> None:
        """Have a directory made first, inside what is granted by name."""
        if path:
            self._makes[path] = Make(path=path, origin=origin)

    def _make_passing(self, path: str, origin: Origin) -> None:
        if path:
            self._node(path)
            self._mark_made(path)
            self._makes.setdefault(path, Make(path=path, origin=origin, passing=True))

    @property
    def served(self) -> tuple[Name | Names, ...]:
        """The operations of granted names."""
        return tuple(self._served)

    def opens(self, path: str) -> bool:
        """Whether the marks so far let the task reach a path with no link left, whether or not something is there."""
        node, opened = self._root, self._root.hide is None or self._root.granted is not None
        for part in paths.parts(path):
            found = node.children.get(part)
            if found is None:
                break
            node = found
            opened = node.granted is not None or node.name is not None or (opened and node.hide is None)
        return opened or GrantedNames(self._served).served(path)

    def hold(self, path: str, origin: Origin, *, make: Iterable[str] = ()) -> None:
        """Have a directory be writable for the names granted in it, and for nothing else it has.

        Args:
            path: the directory; it exists, or is marked to be made.
            origin: the grant.
            make: directories to make in it, so that they can be laid over.
        """
        node = self._lead(path, origin)
        node.held = node.held or origin
        self._holds = True
        for directory in make:
            self._make_passing(directory, origin)

    def way(self, path: str, origin: Origin) -> None:
        """Have a directory exist, whatever is in it."""
        node = self._lead(path, origin)
        node.way = node.way or origin

    def fresh(self, path: str, origin: Origin) -> None:
        """Have the sandbox's own file system stand at a path, where the root is covered."""
        self.way(path, origin)
        self._node(path).fresh = True

    def link(self, path: str, target: str, origin: Origin) -> None:
        """Have a link exist."""
        node = self._lead(path, origin)
        node.link = node.link or (target, origin)

    def hide(self, path: str, how: Hide, origin: Origin, *, always: bool = False) -> None:
        """Hide a path, but for what is granted at it or below it."""
        node = self._lead(path, origin) if always else self._node(path)
        if node.hide is None:
            node.hide, node.hidden_by = how, origin
        node.always = node.always or always

    def pin(self, path: str, origin: Origin, *, below: str) -> None:
        """Keep a path as it is, in the directory `below` that may be written."""
        node = self._node(below)
        for part in paths.parts(path)[len(paths.parts(below)) :]:
            node.holds = node.holds or origin
            node = node.children.setdefault(part, MarkedPath())
        node.pinned = node.pinned or origin

    def operations(self, origin: Origin, executed: ProtectedNames | None = None) -> tuple[Operation, ...]:
        """The operations, parents before children; `origin` says why the root is readable.

        Raises:
            Refusal: a pattern reaches into readable directories of too many entries.
        """
        if self._root.hide is not None and self._root.read is not None:
            # A root that is covered and then granted whole is shown as it is.
            self._root.hide, self._root.always, origin = None, False, self._root.read
        makes = (self._makes[path] for path in sorted(self._makes, key=paths.parts))
        shown = () if self._root.hide == "content" else (ReadOnlyRoot(path="/", origin=origin),)
        granted = GrantedNames(self._served, executed=executed)
        layout = Layout(self._files, self._root, granted, self._instead, holds=self._holds)
        return (*makes, *shown, *layout.operations(origin))

    def _node(self, path: str) -> MarkedPath:
        node = self._root
        for part in paths.parts(path):
            node = node.children.setdefault(part, MarkedPath())
        return node

    def _lead(self, path: str, origin: Origin) -> MarkedPath:
        above, _, name = path.rpartition("/")
        node = self._led.get(above)
        if node is None:
            node = self._root
            for part in paths.parts(above):
                node.leads = node.leads or origin
                node = node.children.setdefault(part, MarkedPath())
            self._led[above] = node
        if not name:
            return node
        node.leads = node.leads or origin
        found = node.children.get(name)
        if found is None:
            found = node.children[name] = MarkedPath()
        return found

    def _mark_made(self, path: str) -> None:
        node = self._root
        for part in paths.parts(path):
            node.made = True
            node = node.children[part]
        node.made = True
