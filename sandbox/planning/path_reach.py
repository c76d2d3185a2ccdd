"""A plan: the operations, and every answer that follows from them alone. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.contract.config import Reach
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
    ReadOnlyRoot,
    Way,
)
from sandbox.planning.served_and_staged_names import GrantedNames
from sandbox.request.protected_names import ProtectedNames

if TYPE_CHECKING:
    from sandbox.base.host_facts import Files
    from sandbox.planning.operations import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The layout of one attempt's file system.

    Attributes:
        operations: in the order they are carried out; the first that is no `Make` lays out the root.
        workspace, project: canonical directories.
        inert: grants that name nothing on the host, each as its field and its path.
        executed: names no task makes or changes, wherever it may write.
        granted: the names that the operations grant.
        held: the directories that are writable for such names, because nothing serves them.
    """

    operations: tuple[Operation, ...]
    workspace: str
    project: str
    inert: tuple[tuple[str, str], ...] = ()
    executed: ProtectedNames = field(default_factory=ProtectedNames)
    granted: GrantedNames = field(init=False, repr=False, compare=False)
    held: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _patterns: tuple[tuple[Names, GrantedNames], ...] = field(init=False, repr=False, compare=False)
    _at: dict[str, Operation] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the operations by place; the last operation at a place counts."""
        at = {operation.path: operation for operation in self.operations if not isinstance(operation, (Make, Names))}
        object.__setattr__(self, "granted", GrantedNames(self.operations, executed=self.executed))
        patterns = (one for one in self.operations if isinstance(one, Names))
        each = tuple((one, GrantedNames((one,), executed=self.executed)) for one in patterns)
        object.__setattr__(self, "_patterns", each)
        object.__setattr__(self, "held", tuple(path for path, one in at.items() if isinstance(one, Held)))
        object.__setattr__(self, "_at", at)

    def decided_by(self, real: str) -> Operation:
        """The operation that decides about a path with no link left: the deepest at it or above it."""
        found = self._at.get(real)
        if found is not None:
            return found
        found = next(self._at[above] for above in paths.parents(real) if above in self._at)
        if self._offers(found) and self.granted.served(real):
            return next(one for one, alone in self._patterns if alone.served(real))
        return found

    def beside(self, real: str) -> bool:
        """Whether a name the task makes at a path is kept apart from the host, and goes with the run."""
        return self._unplaced(real) and self.granted.beside(real, within=self.decided_by(real).path)

    def stages(self, real: str) -> bool:
        """Whether a name the task makes in a directory may be kept apart from the host."""
        return self._offers(self.decided_by(real)) and self.granted.stages(real)

    def leads(self, real: str) -> bool:
        """Whether a directory at a path may be made on the way to a name a pattern grants."""
        return self._unplaced(real) and self.granted.leads(real) and not self.granted.served(real)

    def _unplaced(self, real: str) -> bool:
        found = self.decided_by(real) if self.granted else None
        return found is not None and self._offers(found) and found.path != real

    def _offers(self, operation: Operation) -> bool:
        """Whether granted names may stand where an operation decides."""
        return isinstance(operation, Held if self.held else (Cover, Way))

    def holder(self, real: str) -> str:
        """The held directory a path lies in, however deep; empty when there is none."""
        return next((above for above in paths.parents(real) if above in self.held), "") if self.held else ""

    def reach(self, real: str) -> Reach:
        """The most the task can do with a path that has no link left."""
        operation = self.decided_by(real)
        match operation:
            case ReadOnlyRoot() | Fresh():
                return Reach.READ
            case Name() | Names():
                return Reach.READ if self.executed.protects(real) else Reach.NAME
            case Held():
                return Reach.READ if operation.path == real else Reach.HIDDEN
            case Bind(writable=writable):
                return Reach.WRITE if writable and not self.executed.protects(real) else Reach.READ
            case Cover() | Way() | Empty() | Link() if operation.path == real:
                return Reach.READ
            case _:
                return Reach.HIDDEN

    def could_be_read(self, real: str) -> bool:
        """Whether a path with no link left would be readable if something were there: a grant covers its directory.

        The entries of such a directory are placed one by one where names in it are granted or hidden, and a name that
        is not there is placed by no operation.
        """
        operation = self.decided_by(real)
        if not isinstance(operation, (Cover, Way, Held)) or operation.readable_without is None:
            return False
        below = paths.parts(real)[len(paths.parts(operation.path)) :]
        return bool(below) and below[0] not in operation.readable_without

    def access(self, path: str, files: Files) -> Reach:
        """The most the task can do with an absolute path as it spells it, links followed as the task would.

        A path that needs more than `paths.LINK_HOPS` links is hidden: nothing can open it.
        """

        def passes(here: str, text: str | None) -> bool:
            return text is not None or self._shown(here, files) is not Reach.HIDDEN

        here = paths.follow(path, link_at=lambda place: self.link_at(place, files), passes=passes)
        return Reach.HIDDEN if here is None else self._shown(here, files)

    def _shown(self, real: str, files: Files) -> Reach:
        """The reach of a path, by the files the host has there and further down."""
        found = self.reach(real)
        if found is not Reach.HIDDEN:
            return found
        missing = files.kind(real) is None and self.could_be_read(real)
        return Reach.READ if missing or self.is_way(real, files) else found

    def is_way(self, real: str, files: Files) -> bool:
        """Whether a directory is shown because a name in it, or further down, matches a pattern."""
        todo = [real] if self.leads(real) and files.kind(real) is Kind.DIRECTORY else []
        while todo:
            here = todo.pop()
            for name in files.entries(here):
                path = paths.join(here, name)
                if self.granted.granted(path):
                    return True
                if self.granted.leads(path) and files.kind(path) is Kind.DIRECTORY:
                    todo.append(path)
        return False

    def link_at(self, real: str, files: Files) -> str | None:
        """The text of the link the task finds at a path whose parents hold none, `None` for anything else.

        A link in a held directory leads on, although no call on the link itself is let through.
        """
        match self.decided_by(real):
            case Absent(laid_over=False):
                return files.readlink(real)
            case Link(path=place, target=target) if place == real:
                return target
            case ReadOnlyRoot() | Fresh() | Bind() | Name() | Names() if files.kind(real) is Kind.LINK:
                return files.readlink(real)
            case _:
                return None

    def describe(self) -> tuple[str, ...]:
        """One line for each operation, in order."""
        return tuple(operation.describe() for operation in self.operations)
