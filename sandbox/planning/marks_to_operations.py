"""From marks on paths to operations, whatever grants the marks come from. Pure.

Rule 1: the deepest mark above a path decides about it (`sandbox.planning.deepest_mark_decides`).

Rule 2: below something hidden a grant opens itself and the directories that lead to it, nothing else.

Rule 3: a name that is hidden rests on a cover around it. It is laid over instead only in a writable directory, in the
file system's root where that is shown, and where a mark asks for it.

Rule 4: a bind that adds nothing is left out, but for the directories above a pin: those have to be mounts so that they
cannot be renamed away.

Rule 5: a directory held for the names granted in it is writable; each other entry it has is placed as if it were not.

Rule 6: where names are served, a readable directory in which granted names may stand is presented: it is a cover, and
its other children are bound one by one. Nothing is placed at a granted name or below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.contract import refusal_codes
from sandbox.contract.config import Reach
from sandbox.contract.errors import Refusal
from sandbox.planning.deepest_mark_decides import LayoutStep, content_of
from sandbox.planning.operations import (
    Absent,
    Bind,
    Cover,
    Empty,
    Fresh,
    Held,
    Link,
    Name,
    Names,
    Operation,
    Origin,
    Seal,
    Way,
)
from sandbox.planning.path_marks import MarkedPath
from sandbox.planning.served_and_staged_names import GrantedNames

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sandbox.base.host_facts import Files

#: The most entries of readable directories that a task's patterns of names may have presented.
PRESENTED_LIMIT = 2_000


class Layout:
    """The layout of one plan's file system.

    Args:
        files: the host's file system.
        root: the marks.
        granted: the names that are served or held.
        instead: for each pattern of names, advice for where it takes too much.
        holds: whether directories are held for granted names, because nothing serves them.
    """

    def __init__(
        self, files: Files, root: MarkedPath, granted: GrantedNames, instead: Mapping[Names, str], *, holds: bool
    ) -> None:
        self._files = files
        self._root = root
        self._granted = granted
        self._instead = instead
        self._holds = holds
        self._presented = 0

    def operations(self, origin: Origin) -> Iterator[Operation]:
        """The operations, parents before children; `origin` says why the root is readable.

        Raises:
            Refusal: a pattern reaches into readable directories of too many entries.
        """
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
