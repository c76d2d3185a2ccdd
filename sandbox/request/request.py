"""The request: one attempt ready to be planned, with everything that was judged and found for it. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from sandbox.request.task_outputs import Declared
from sandbox.request.write_grant_refusals import WriteGrantContext
from sandbox.request.write_grant_shapes import look_again

if TYPE_CHECKING:
    from sandbox.base.host_facts import Files, HostFacts
    from sandbox.contract.config import ResolvedSandboxConfig
    from sandbox.contract.errors import Refusal
    from sandbox.request.linked_packages import Withheld
    from sandbox.request.walls import Wall
    from sandbox.request.write_grant_shapes import WriteGrant


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceFacts:
    """The workspace around one attempt, as whoever reads its task files knows it.

    A request keeps these facts, so that the request can be built again on another machine.

    Attributes:
        root: the directory around which everything is hidden.
        keyed: directories of the projects the task's cache key answers for; `None` when it has no cache.
        nested: directories of the workspace's projects; those inside the task's project become walls. A request keeps
            those that were met.
        dependency_outputs: files and directories other tasks made for this one.
        dependency_reported: directories that hold those outputs; denials in them are this task's matter.
        cache_dir: where the run keeps its cache, when that is not `.vx/cache`.
        links: links the grants were spelled through, each as its place and its text, so that both names work.
        declared: the outputs that the task and its dependencies declare, which explain denials and open nothing.
    """

    root: str
    keyed: tuple[str, ...] | None = None
    nested: tuple[str, ...] = ()
    dependency_outputs: tuple[str, ...] = ()
    dependency_reported: tuple[str, ...] = ()
    cache_dir: str | None = None
    links: tuple[tuple[str, str], ...] = ()
    declared: Declared = field(default_factory=Declared)


class JudgedConfig(NamedTuple):
    """A config every grant of which can be given, with its write grants as they were judged.

    The two stay together: a request with another config has to be judged anew.

    Attributes:
        writes: in the order of the config, each brace alternative by itself.
    """

    config: ResolvedSandboxConfig
    writes: tuple[WriteGrant, ...] = ()


class Implied(NamedTuple):
    """A path that may be read though no grant names it.

    Attributes:
        path: canonical.
        reason: a clause for people.
    """

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One attempt, ready to be planned.

    Attributes:
        judged: the config and its write grants.
        workspace_root: canonical.
        facts: what is known of the machine.
        reads: implied read grants.
        walls: places a grant above them does not open, existing or not.
        stores: credential stores that exist.
        around: checkouts that hold the workspace or share its repository; they show nothing but what is granted.
        links: links the grants were spelled through, each as its place and its text.
        withheld: linked packages that are not opened, each with what it lacks.
        asked: directories a linked environment's interpreter looks for at every start; a look there is no denial.
        reported: directories outside the project whose denials count as if they were in it.
        keyed: directories of the projects the task's cache key answers for; `None` when it has no cache.
        workspace: the facts of the workspace the request was built from.
    """

    judged: JudgedConfig
    workspace_root: str
    facts: HostFacts
    reads: tuple[Implied, ...] = ()
    walls: tuple[Wall, ...] = ()
    stores: tuple[Wall, ...] = ()
    around: tuple[Wall, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    withheld: tuple[Withheld, ...] = ()
    asked: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    keyed: frozenset[str] | None = None
    workspace: WorkspaceFacts

    @property
    def config(self) -> ResolvedSandboxConfig:
        """The config of the task."""
        return self.judged.config

    def writes_now(self, files: Files) -> tuple[tuple[WriteGrant, ...], tuple[Refusal, ...]]:
        """The write grants as the file system is now.

        The file system decides about links, files in the way and what exists: those are looked at again. Everything
        else was judged when the request was built.

        Args:
            files: the host's file system, as it is now.

        Returns:
            The grants that can still be given, and why the others cannot, both in the order of the config.
        """
        context = WriteGrantContext(
            config=self.config, facts=self.facts, files=files, walls=self.walls, stores=self.stores
        )
        return look_again(context, self.judged.writes)
