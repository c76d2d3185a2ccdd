"""From marks on paths to operations, whatever grants the marks come from. Pure.

Rule 1: the deepest mark above a path decides about it; at one place a grant beats a mark that hides. Rule 2: below
something hidden a grant opens itself and the directories that lead to it, nothing else. Rule 3: a name that is hidden
rests on a cover around it. It is laid over instead only in a writable directory, in the file system's root where that
is shown, and where a mark asks for it. Rule 4: a bind that adds nothing is left out, but for the directories above a
pin: those have to be mounts so that they cannot be renamed away. Rule 5: a directory held for the names granted in it
is writable; each other entry it has is placed as if it were not. Rule 6: where names are served, a readable directory
in which granted names may stand is presented: it is a cover, and its other children are bound one by one. Nothing is
placed at a granted name or below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.contract import refusal_codes
from sandbox.contract.config import Reach
from sandbox.contract.errors import Refusal
from sandbox.planning.name_grants import GrantedNames
from sandbox.planning.operations import (
    Absent,
    Bind,
    Cover,
    Empty,
    Fresh,
    Held,
    Link,
    Make,
    Name,
    Names,
    Operation,
    Origin,
    ReadOnlyRoot,
    Seal,
    Way,
)
from sandbox.planning.path_marks import LayoutStep, MarkedPath, content_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.base.host_facts import Files
    from sandbox.planning.path_marks import Hide
    from sandbox.request.protected_names import ProtectedNames

#: The most entries of readable directories that a task's patterns of names may have presented.
PRESENTED_LIMIT = 2_000


class Tree:
    """Marks on paths, collected in any order; the operations do not depend on the order."""

    def __init__(self, files: Files) -> None:
        """Start with the whole root readable."""
        self._files = files
        self._root = MarkedPath()
        self._makes: dict[str, Make] = {}
        self._served: list[Name | Names] = []
        self._granted = GrantedNames()
        self._instead: dict[Names, str] = {}
        self._presented = 0
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
        self._granted = GrantedNames(self._served, executed=executed)
        if self._root.hide is not None and self._root.read is not None:
            # A root that is covered and then granted whole is shown as it is.
            self._root.hide, self._root.always, origin = None, False, self._root.read
        makes = (self._makes[path] for path in sorted(self._makes, key=paths.parts))
        shown = () if self._root.hide == "content" else (ReadOnlyRoot(path="/", origin=origin),)
        return (*makes, *shown, *self._lay(origin))

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

    def _lay(self, origin: Origin) -> Iterator[Operation]:
        # A stack replaces recursion: paths are deeper than Python's.
        todo = [LayoutStep("/", self._root, Reach.READ, Reach.READ, origin)]
        while todo:
            task = todo.pop()
            if task.node.read is not None and self._is_lone_file(task):
                yield Bind(path=task.path, origin=task.node.read, directory=False)
                continue
            placed, below = self._place(task)
            yield from placed
            todo.extend(reversed(below))

    def _place(self, task: LayoutStep) -> tuple[list[Operation], list[LayoutStep]]:
        node = task.node
        if self._is_served(task):
            return self._serve(task)
        if node.link is not None and (task.laid is Reach.HIDDEN or task.held):
            return [Link(path=task.path, target=node.link[0], origin=node.link[1])], []
        content, origin = content_of(task)
        laid = task.laid
        placed: list[Operation] = []
        if node.hide == "content" and (node.always or task.content is not Reach.HIDDEN):
            placed.append(Cover(path=task.path, origin=node.hidden_by or origin))
            laid = Reach.HIDDEN
        if node.held is not None and content is not Reach.WRITE:
            placed, below = self._hold(LayoutStep(task.path, node, laid, content, origin), placed, node.held)
        elif content is Reach.HIDDEN:
            placed, below = self._hidden(task, placed, origin)
        else:
            placed, below = self._open(LayoutStep(task.path, node, laid, content, origin, held=task.held), placed)
        return [*placed, *node.patterns], below

    def _serve(self, task: LayoutStep) -> tuple[list[Operation], list[LayoutStep]]:
        """Serve a name; any other grant there is part of it."""
        node = task.node
        placed: list[Operation] = [] if node.name is None else [Name(path=task.path, origin=node.name)]
        if not self._holds or node.holds is None or self._files.kind(task.path) is not Kind.DIRECTORY:
            return placed, []
        # Protected names in the served directory have to be laid over.
        return self._open(LayoutStep(task.path, node, Reach.READ, Reach.WRITE, node.holds), placed)

    def _is_lone_file(self, task: LayoutStep) -> bool:
        """Whether a file in a cover has no mark but a grant to read it, which leaves nothing to weigh."""
        node = task.node
        return (
            task.laid is Reach.HIDDEN
            and task.content is Reach.HIDDEN
            and not (node.children or node.hide or node.write or node.link or node.pinned or node.patterns or node.made)
            and not self._granted
            and self._files.kind(task.path) is Kind.FILE
        )

    def _is_served(self, task: LayoutStep) -> bool:
        if task.node.name is not None:
            return True
        if not self._granted:
            return False
        return task.node.write is None and task.content is not Reach.WRITE and self._granted.granted(task.path)

    def _hold(
        self, task: LayoutStep, placed: list[Operation], reason: Origin
    ) -> tuple[list[Operation], list[LayoutStep]]:
        path, children = task.path, task.node.children
        without = None if task.content is Reach.HIDDEN else _hidden_in(task.node)
        placed.append(Held(path=path, origin=reason, directory=True, writable=True, readable_without=without))
        content, origin, entries = task.content, task.origin, set(self._files.entries(path))
        below = [
            LayoutStep(
                paths.join(path, name), children.get(name) or MarkedPath(), Reach.WRITE, content, origin, held=True
            )
            for name in sorted({*entries, *children})
            # A path that is not there cannot be laid over.
            if name in entries or children[name].made or children[name].name is not None
        ]
        self._presented += len(below)
        if self._presented > PRESENTED_LIMIT:
            instead = next((advice for names, advice in self._instead.items() if names.origin == reason), "")
            raise Refusal(
                f"names are granted in {path}, which together with others like it has more than {PRESENTED_LIMIT} "
                "entries to hold, and nothing serves names here",
                field=reason.field,
                code=refusal_codes.TOO_MUCH,
                hint=f"make /dev/fuse available to this user, or {instead or 'grant directories, ending in a slash'}",
            )
        return placed, below

    def _hidden(
        self, task: LayoutStep, placed: list[Operation], origin: Origin
    ) -> tuple[list[Operation], list[LayoutStep]]:
        node, path = task.node, task.path
        reason = node.way or node.leads
        if not placed:
            if reason is not None:
                inside: type[Operation] = Fresh if node.fresh else Way
                placed.append((inside if task.laid is Reach.HIDDEN else Cover)(path=path, origin=reason))
            elif task.held:
                kind = Kind.DIRECTORY if node.made else self._files.kind(path)
                directory, laid_over = kind is Kind.DIRECTORY, kind is not Kind.LINK
                placed.append(Absent(path=path, origin=origin, directory=directory, laid_over=laid_over))
            elif task.content is not Reach.HIDDEN and (node.hide == "blank" or task.laid is not Reach.HIDDEN):
                blank = Empty if self._files.kind(path) is Kind.DIRECTORY else Seal
                placed.append(blank(path=path, origin=origin, laid_over=task.laid is not Reach.HIDDEN))
        if reason is None:
            return placed, []
        below = [
            LayoutStep(paths.join(path, name), node.children[name], Reach.HIDDEN, Reach.HIDDEN, origin)
            for name in sorted(node.children)
        ]
        return placed, below

    def _open(self, task: LayoutStep, placed: list[Operation]) -> tuple[list[Operation], list[LayoutStep]]:
        """Show the file or directory at a place, readable or writable, and go on with the marks below it."""
        kind = Kind.DIRECTORY if task.node.made else self._files.kind(task.path)
        if kind is Kind.LINK:
            if task.laid is Reach.HIDDEN or task.held:
                placed.append(Link(path=task.path, target=self._files.readlink(task.path), origin=task.origin))
            return placed, []
        if kind is not Kind.DIRECTORY:
            return [*placed, *_opened_file(task, kind)], []
        return self._open_directory(task, placed)

    def _open_directory(self, task: LayoutStep, placed: list[Operation]) -> tuple[list[Operation], list[LayoutStep]]:
        path, node, origin = task.path, task.node, task.origin
        writable = task.content is Reach.WRITE
        names, laid = set(node.children), task.content
        if not writable and self._must_be_presented(task):
            laid = Reach.HIDDEN
            entries = self._files.entries(path)
            self._count(path, len(entries))
            names |= set(entries)
            way = Way if task.laid is Reach.HIDDEN and not placed else Cover
            placed = [way(path=path, origin=placed[0].origin if placed else origin, readable_without=_hidden_in(node))]
        elif task.laid is not task.content or (task.held and writable):
            placed.append(Bind(path=path, origin=origin, directory=True, writable=writable))
        elif writable and node.holds is not None:
            placed.append(Bind(path=path, origin=node.holds, directory=True, writable=True))
        below = [
            LayoutStep(paths.join(path, name), node.children.get(name) or MarkedPath(), laid, task.content, origin)
            for name in sorted(names)
        ]
        return placed, below

    def _must_be_presented(self, task: LayoutStep) -> bool:
        """Whether something in a readable directory is hidden by name, so that no bind may show it whole."""
        if task.path == "/":
            return False
        if not self._holds and (self._granted.stages(task.path) or self._granted.leads(task.path)):
            return True
        if task.laid is not Reach.HIDDEN:
            return any(self._hides_a_name(child) for child in task.node.children.values())
        todo = list(task.node.children.values())
        while todo:
            node = todo.pop()
            if self._hides_a_name(node):
                return True
            # A writable directory is bound whole, and a cover within a bind holds its hidden names itself.
            if node.write is None and node.hide != "content":
                todo.extend(node.children.values())
        return False

    def _hides_a_name(self, node: MarkedPath) -> bool:
        if node.name is not None or node.patterns:
            return not self._holds
        return node.hide in {"absent", "blank"} and node.granted is None

    def _count(self, directory: str, entries: int) -> None:
        """Count the entries that patterns have presented, and refuse too many."""
        if not self._granted.leads(directory):
            return
        self._presented += entries
        if self._presented > PRESENTED_LIMIT:
            names = next(one for one in self._instead if GrantedNames((one,)).leads(directory))
            raise Refusal(
                f'write grant "{names.pattern}" reaches into readable directories of more than '
                f"{PRESENTED_LIMIT} entries, {directory} among them",
                field=names.origin.field,
                code=refusal_codes.TOO_MUCH,
                hint=self._instead[names] or "start the pattern in a deeper directory",
            )


def _hidden_in(node: MarkedPath) -> tuple[str, ...]:
    """The names directly in a readable directory that are hidden, whether they are there or not."""
    return tuple(sorted(name for name, child in node.children.items() if child.hide is not None and not child.granted))


def _opened_file(task: LayoutStep, kind: Kind | None) -> Iterator[Operation]:
    """Show a file, or a socket or a device that a grant names; nothing where there is none."""
    writable = task.content is Reach.WRITE
    wanted = kind is Kind.FILE or (kind is Kind.OTHER and task.node.granted is not None)
    if task.held and not wanted:
        yield Absent(path=task.path, origin=task.origin, directory=False)
    if wanted and (task.laid is not task.content or (task.held and writable)):
        yield Bind(path=task.path, origin=task.origin, directory=False, writable=writable)
