"""The places, walls and outputs that one attempt is judged against. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from sandbox.base import paths
from sandbox.request.protected_names import is_policy, named_below
from sandbox.request.task_outputs import Declared, head

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sandbox.contract.config import Reach
    from sandbox.planning.operations import Operation
    from sandbox.request.linked_packages import Withheld
    from sandbox.request.request import Request


class Reachable(Protocol):
    """The part of a plan that a judge asks."""

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations in the order they are carried out."""

    def reach(self, real: str) -> Reach:
        """The most the task can do with a path that has no link left."""

    def could_be_read(self, real: str) -> bool:
        """Whether a path where nothing is would be readable."""

    def beside(self, real: str) -> bool:
        """Whether a name the task makes at a path is kept apart from the host, and goes with the run."""

    def stages(self, real: str) -> bool:
        """Whether a name the task makes in a directory may be kept apart from the host."""

    def leads(self, real: str) -> bool:
        """Whether a directory at a path may be made on the way to a name a pattern grants."""


class Walled(Protocol):
    """A place that a grant above it does not open."""

    @property
    def path(self) -> str:
        """The canonical path of the place."""

    @property
    def reason(self) -> str:
        """The kind of wall, as a noun phrase for people."""

    @property
    def closed(self) -> bool:
        """Whether no write grant may name the place or anything in it."""


def unchanged(text: str) -> str:
    """The text itself: for an attempt without secrets, or without links."""
    return text


def nothing(_path: str) -> bool:
    """False: for an attempt of which nothing of the kind is known."""
    return False


def empty(_path: str) -> tuple[str, ...]:
    """No path: for directories of which nothing is known to be in them."""
    return ()


#: The kernel's own file systems: a refusal there lies with the machine and is never a missing grant.
_KERNELS_OWN = ("/dev", "/proc", "/sys")


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """The places, walls and facts that one attempt's accesses are compared with; every path canonical.

    Attributes:
        withheld: directories outside the project whose denials are reported as if they were in it.
        packages: those of `withheld` that are linked packages: no such ones, or the cache key answers for none of them.
        nested: directories of other projects inside this one.
        stores: credential stores.
        temp: the task's own temporary directory, empty when it has none.
        asked: directories an interpreter looks for whenever it starts; a look there is no denial.
        executed: whether a path that may be written otherwise is kept from the task for the name it has.
        policy: the files that links of files that say what tasks are granted lead to.
        git_config: whether a repository's own settings may be written.
        shared: directories every user may write temporary files in.
        declared: the outputs that the task and its dependencies declare.
        served: whether a write grant of a name can be given.
        directory: whether the host has a directory at a path.
        tree: the paths in a directory, `None` where there are too many to look at.
        names: the names in a directory.
        hermetic: whether the task sees nothing outside the workspace that was not granted.
        ports: the host's loopback ports the task may reach, and those it offers.
        cached: whether the task has a cache, so that a new read belongs in its key.
        canonical: resolves links, for entries that name one.
        mask: hides secrets in text that people see.
    """

    plan: Reachable
    project: str
    workspace: str
    home: str
    temp: str = ""
    withheld: tuple[str, ...] = ()
    packages: tuple[Withheld, ...] = ()
    nested: tuple[str, ...] = ()
    walls: tuple[Walled, ...] = ()
    stores: tuple[Walled, ...] = ()
    asked: frozenset[str] = frozenset()
    executed: Callable[[str], bool] = nothing
    policy: Collection[str] = ()
    git_config: bool = False
    shared: tuple[str, ...] = ()
    declared: Declared = field(default_factory=Declared)
    served: bool = True
    directory: Callable[[str], bool] = nothing
    tree: Callable[[str], tuple[str, ...] | None] = empty
    names: Callable[[str], tuple[str, ...]] = empty
    hermetic: bool = False
    ports: frozenset[int] = frozenset()
    cached: bool = False
    canonical: Callable[[str], str] = unchanged
    mask: Callable[[str], str] = unchanged

    @classmethod
    def of_request(cls, request: Request, plan: Reachable, directory: Callable[[str], bool]) -> Boundary:
        """The boundary of an attempt, as far as its request alone tells it.

        Args:
            request: the attempt.
            plan: its plan.
            directory: whether the host has a directory at a path.
        """
        config = request.config
        return cls(
            plan=plan,
            project=config.project,
            workspace=request.workspace_root,
            home=request.facts.home,
            withheld=request.reported,
            packages=request.withheld,
            nested=tuple(wall.path for wall in request.walls if paths.under(wall.path, config.project)),
            walls=request.walls,
            stores=request.stores,
            asked=frozenset(request.asked),
            git_config=config.git_config,
            declared=request.workspace.declared,
            directory=directory,
            hermetic=config.hermetic,
            cached=request.keyed is not None,
        )

    def obeyed(self, path: str) -> bool:
        """Whether other programs execute or obey a path for its name, so that no write grant of it can be given."""
        if self.executed(path):
            return True
        below = self.project if paths.at_or_under(path, self.project) else self.workspace
        return paths.under(path, below) and named_below(path, below, git_config=self.git_config)

    def says_grants(self, path: str) -> bool:
        """Whether a file says what tasks are granted."""
        return path in self.policy or is_policy(path)

    def wall(self, path: str) -> Walled | None:
        """The innermost wall a path is, or is in."""
        found = [wall for wall in self.walls if paths.at_or_under(path, wall.path)]
        return max(found, key=lambda wall: len(wall.path), default=None)

    def store(self, path: str) -> Walled | None:
        """The credential store a path is, or is in."""
        return next((store for store in self.stores if paths.at_or_under(path, store.path)), None)

    def temporary(self, path: str) -> bool:
        """Whether a path is a temporary file in a place all users share, so that the task's own is the better one."""
        shared = any(paths.under(path, place) for place in self.shared)
        return shared and not any(paths.at_or_under(path, own) for own in (self.workspace, self.home))

    def output(self, path: str) -> str | None:
        """The directory that holds the declared output a path is; `None` when it is none, or a file beside others."""
        if not self.declared.makes(path):
            return None
        heads = [head(pattern) for pattern in self.declared.own if not pattern.startswith("!")]
        held = [place for place in heads if paths.under(path, place) and paths.under(place, self.project)]
        return max(held, key=len, default=None)

    def refuses_writing(self, directory: str) -> bool:
        """Whether a write grant of a whole directory would be refused for what it is, holds or lies in."""
        held = (*(w.path for w in (*self.walls, *self.stores)), self.home, self.workspace)
        return any(paths.at_or_under(path, directory) for path in held) or any(
            wall.closed and paths.at_or_under(directory, wall.path) for wall in self.walls
        )


def reported(path: str, boundary: Boundary) -> bool:
    """Whether a denial at a path is the task's own matter and so fails it."""
    return any(paths.at_or_under(path, root) for root in (boundary.project, *boundary.withheld))


def never_counts(path: str, boundary: Boundary) -> bool:
    """Whether no denial at a path ever counts."""
    own = (boundary.temp,) if boundary.temp else ()
    return any(paths.at_or_under(path, root) for root in (*_KERNELS_OWN, *own))
