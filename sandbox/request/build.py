"""What one attempt may read and write: the config, what it implies, and the walls around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.base.host_facts import Kind, remembered
from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal, RequestRefused
from sandbox.request import credentials as stores
from sandbox.request import network_grants, walls
from sandbox.request.linked_packages import Limits, ListedProjects, Search, Withheld
from sandbox.request.task_outputs import Declared
from sandbox.request.walls import Wall
from sandbox.request.write_grants import GrantContext, unusable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.base.host_facts import Files, HostFacts
    from sandbox.contract.config import ResolvedSandboxConfig
    from sandbox.request.linked_packages import LinkedDirectory, LinkedProjects


@dataclass(frozen=True, slots=True, kw_only=True)
class Implied:
    """A path that may be read though no grant names it.

    Attributes:
        path: canonical.
        reason: a clause for people.
    """

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What `build` was told of the workspace, so that the request can be built again elsewhere.

    Attributes:
        nested: the directories it was told, or learned by asking, are projects.
    """

    keyed: tuple[str, ...] | None = None
    nested: tuple[str, ...] = ()
    dependency_outputs: tuple[str, ...] = ()
    dependency_reported: tuple[str, ...] = ()
    cache_dir: str | None = None
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One attempt, ready to be planned.

    Attributes:
        config: what the task was granted.
        workspace_root: canonical.
        facts: what is known of the machine.
        reads: implied read grants.
        walls: places a grant above them does not open, existing or not.
        stores: credential stores that exist.
        around: checkouts that hold the workspace or share its repository; they show nothing but what is granted.
        links: links the grants were spelled through, each as its place and its text.
        withheld: linked packages the task's cache key does not answer for.
        asked: directories a linked environment's interpreter looks for at every start: that alone is no denial.
        reported: directories outside the project whose denials count as if they were in it.
        keyed: directories of the projects the task's cache key answers for; `None` when it has no cache.
        declared: what the task and those it depends on say they make.
        given: what it was built from, besides the config and the machine.
    """

    config: ResolvedSandboxConfig
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
    declared: Declared = field(default_factory=Declared)
    given: Given = field(default_factory=Given)


def build(
    config: ResolvedSandboxConfig,
    *,
    workspace_root: str,
    files: Files,
    facts: HostFacts,
    keyed: Iterable[str] | None = None,
    nested: Iterable[str] = (),
    projects: LinkedProjects | None = None,
    dependency_outputs: Iterable[str] = (),
    dependency_reported: Iterable[str] = (),
    cache_dir: str | None = None,
    links: Iterable[tuple[str, str]] = (),
    linked: bool = True,
    declared: Declared | None = None,
) -> Request:
    """Judge a config against the file system; nothing is created.

    Args:
        config: the grants, absolute and canonical.
        workspace_root: the directory around which everything is hidden.
        files: the host's file system.
        facts: the rest of what is known of the machine.
        keyed: directories of the projects the task's cache key answers for; `None` when it has no cache.
        nested: directories of the workspace's projects; those inside this task's project become walls.
        projects: the same as something to ask, for a workspace too large to be listed; `nested` is then not looked at.
        dependency_outputs: files and directories other tasks made for this one.
        dependency_reported: directories those are in, whose denials are this task's matter.
        cache_dir: where the run keeps its cache, when that is not `.vx/cache`.
        links: links the grants were spelled through, so that both names work.
        declared: what the task and those it depends on say they make, for what a denial is told to do about it.
        linked: whether dependencies are looked for; a config that is only judged needs none, and they refuse nothing.

    Raises:
        RequestRefused: with every reason found, in the order of the config.
    """
    root = paths.canonical(workspace_root, files)
    keyed = None if keyed is None else tuple(keyed)
    dependency_outputs, dependency_reported = tuple(dependency_outputs), tuple(dependency_reported)
    links = tuple(links)
    if projects is None:
        listed = tuple(dict.fromkeys(path for given in nested for path in (given, paths.canonical(given, files))))
        projects = ListedProjects(listed)
    projects = asked = _Asked(projects)
    fixed = walls.fixed(root, cache_dir=cache_dir, files=files)
    inside = walls.nested(config.project, projects.below(config.project), files)
    found = remembered(
        files, ("store walls", facts.home, root, *facts.secrets), lambda: tuple(_kept_closed(root, facts, files))
    )
    judge = GrantContext(config=config, facts=facts, files=files, walls=(*fixed, *inside), stores=found)
    refused = (
        *_misplaced(config, root, facts, files),
        *_unreadable(config),
        *judge.judge()[1],
        *network_grants.judge(config),
    )
    if refused:
        raise RequestRefused(refused)
    around = walls.around(root, facts.home, files)
    key = None if keyed is None else frozenset(paths.canonical(path, files) for path in keyed)
    search = Search(
        Limits(
            project=config.project,
            root=root,
            home=facts.home,
            temp_root=facts.temp_root,
            closed=tuple(wall.path for wall in fixed),
            stores=tuple(store.path for store in found),
            around=tuple(wall.path for wall in around),
            keyed=key,
        ),
        files,
        projects,
    )
    if linked:
        search.run()
    granted = tuple(search.granted.values())
    stopped = inside
    if granted:
        stopped = _stopped(inside, granted, key=key, projects=projects, project=config.project, files=files)
    reads = (*(Implied(path=one.path, reason=one.reason) for one in granted), *_outputs(dependency_outputs, files))
    return Request(
        config=config,
        workspace_root=root,
        facts=facts,
        # of several reasons for one path the first counts
        reads=tuple({read.path: read for read in reversed(reads)}.values())[::-1],
        walls=(*fixed, *stopped),
        stores=found,
        around=around,
        links=tuple(dict.fromkeys((*links, *_through(granted, files)))),
        withheld=tuple(search.withheld.values()),
        asked=tuple(dict.fromkeys(search.asked)),
        reported=tuple(
            dict.fromkeys(
                (
                    *search.withheld,
                    *(wall.path for wall in stopped if not paths.under(wall.path, config.project)),
                    *(paths.canonical(path, files) for path in dependency_reported),
                )
            )
        ),
        keyed=key,
        declared=declared or Declared(),
        given=Given(
            keyed=keyed,
            nested=tuple(sorted(asked.found)),
            dependency_outputs=dependency_outputs,
            dependency_reported=dependency_reported,
            cache_dir=cache_dir,
            links=links,
        ),
    )


def _kept_closed(root: str, facts: HostFacts, files: Files) -> Iterator[Wall]:
    """The credential stores of the user and the system's secrets, those that exist."""
    for path, name in stores.existing(facts.home, root, files):
        yield Wall(path=path, reason=f"the credential store ~/{name}")
    for path in facts.secrets:
        yield Wall(path=path, reason="the system's secret")


class _Asked:
    """Projects, and which of them were met."""

    def __init__(self, projects: LinkedProjects) -> None:
        self._projects = projects
        self.found: set[str] = set()

    def is_project(self, directory: str) -> bool:
        found = self._projects.is_project(directory)
        if found:
            self.found.add(directory)
        return found

    def below(self, directory: str) -> tuple[str, ...]:
        found = self._projects.below(directory)
        self.found.update(found)
        return found


def _stopped(
    inside: tuple[Wall, ...],
    granted: tuple[LinkedDirectory, ...],
    *,
    key: frozenset[str] | None,
    projects: LinkedProjects,
    project: str,
    files: Files,
) -> tuple[Wall, ...]:
    """The nested projects that are walls: this project's own, and those in granted packages no key answers for."""
    packages = [one.path for one in granted if projects.is_project(one.path)]
    kept = [
        wall
        for wall in inside
        if not any(paths.under(wall.path, package) for package in packages)
        or (key is not None and wall.path not in key)
    ]
    if key is not None:
        for package in packages:
            if not paths.at_or_under(package, project):
                kept += (w for w in walls.nested(package, projects.below(package), files) if w.path not in key)
    return tuple({wall.path: wall for wall in kept}.values())


def _through(granted: tuple[LinkedDirectory, ...], files: Files) -> Iterator[tuple[str, str]]:
    """The links that lead to what was granted, but for those a grant shows anyway."""
    shown = {one.path for one in granted}
    for one in granted:
        for place, target in paths.links_on(one.place, files):
            if shown.isdisjoint(paths.parents(place)):
                yield place, target


def _misplaced(config: ResolvedSandboxConfig, root: str, facts: HostFacts, files: Files) -> Iterator[Refusal]:
    if config.platform != facts.platform:
        yield Refusal(
            f"the config was resolved for {config.platform} and this machine is {facts.platform}",
            field="platform",
            code=refusal_codes.PLATFORM,
            hint="resolve the config on this machine",
        )
    if config.workspace != root:
        yield Refusal(
            f"the config was resolved in the workspace {config.workspace} and is run in {root}",
            field="workspace",
            code=refusal_codes.MOVED,
            hint="resolve the config again",
        )
    for place, what in (("/", "the file system's root"), (facts.home, "the home directory")):
        if paths.at_or_under(place, root):
            yield Refusal(
                f"the workspace root {root} {'is' if root == place else 'holds'} {what}",
                field="workspace",
                code=refusal_codes.WORKSPACE_TOO_WIDE,
                hint="mark a directory below it as the workspace with .vx/workspace.toml",
            )
            break
    if "\0" in config.project:
        yield Refusal(
            f"the project directory {config.project!r} holds a NUL character",
            field="project",
            code=refusal_codes.UNUSABLE,
            hint="remove the character",
        )
        return
    if not paths.at_or_under(config.project, root):
        yield Refusal(
            f"the project {config.project} is outside the workspace {root}",
            field="project",
            code=refusal_codes.MOVED,
            hint="run the task from the workspace its project is in",
        )
    if config.platform == "linux" and paths.at_or_under(config.project, "/dev"):
        yield Refusal(
            f"the project {config.project} is under /dev, which every sandbox has its own of",
            field="project",
            code=refusal_codes.UNDER_DEV,
            hint="move the project to another directory",
        )
    if paths.canonical(config.project, files) != config.project or files.kind(config.project) is not Kind.DIRECTORY:
        yield Refusal(
            f"the project {config.project} is no longer a directory",
            field="project",
            code=refusal_codes.MOVED,
            hint="resolve the config again",
        )


def _unreadable(config: ResolvedSandboxConfig) -> Iterator[Refusal]:
    for index, grant in enumerate(config.allow_read):
        refusal = unusable(grant, f"allowRead[{index}]")
        if refusal is not None:
            yield refusal


def _outputs(dependency_outputs: Iterable[str], files: Files) -> Iterator[Implied]:
    for path in dependency_outputs:
        yield Implied(path=paths.canonical(path, files), reason="an output of a task this one depends on")
