"""From a config to a request: the config is judged once, then completed with what one attempt needs.

`judge` says whether a config can be granted at all. `complete` adds the packages that are linked and the outputs that
other tasks made, and reads again what the file system may have changed since. `build` does both at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import paths
from sandbox.base.host_facts import remembered
from sandbox.contract.errors import RequestRefused
from sandbox.request import (
    credential_stores,
    network_and_socket_refusals,
    walls,
    workspace_place_refusals,
    write_grant_shapes,
)
from sandbox.request.grant_refusals import unusable
from sandbox.request.request import Implied, JudgedConfig, Request
from sandbox.request.walls import Wall
from sandbox.request.write_grant_refusals import WriteGrantContext

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.base.host_facts import Files, HostFacts
    from sandbox.contract.config import ResolvedSandboxConfig
    from sandbox.contract.errors import Refusal
    from sandbox.request.linked_packages import LinkedDirectory, LinkedProjects, ListedProjects, Search
    from sandbox.request.request import WorkspaceFacts


def build(
    config: ResolvedSandboxConfig,
    workspace: WorkspaceFacts,
    *,
    files: Files,
    facts: HostFacts,
    projects: LinkedProjects | None = None,
) -> Request:
    """Judge a config against the file system and complete the request; nothing is created.

    Args:
        config: the grants, absolute and canonical.
        workspace: what is known of the workspace.
        files: the host's file system.
        facts: what is known of the machine.
        projects: the workspace's projects as something to ask, for a workspace too large to be listed;
            `workspace.nested` is then not looked at.

    Raises:
        RequestRefused: with every reason found, in the order of the config.
    """
    look = _look(config.project, workspace, files=files, facts=facts, projects=projects)
    return _completed(_bare(_judged(config, look), look), look)


def judge(
    config: ResolvedSandboxConfig,
    workspace: WorkspaceFacts,
    *,
    files: Files,
    facts: HostFacts,
    projects: LinkedProjects | None = None,
) -> Request:
    """Judge a config; the arguments are those of `build`.

    Returns:
        A request without linked packages and outputs of other tasks; neither refuses anything.

    Raises:
        RequestRefused: with every reason found, in the order of the config.
    """
    look = _look(config.project, workspace, files=files, facts=facts, projects=projects)
    return _bare(_judged(config, look), look)


def complete(
    bare: Request, workspace: WorkspaceFacts, *, files: Files, projects: LinkedProjects | None = None
) -> Request:
    """Complete a request that was judged, as the file system is now; the config is not judged again.

    Args:
        bare: from `judge`.
        workspace: what is known of the workspace now.
        files: the host's file system, as it is now.
        projects: see `build`.

    Raises:
        RequestRefused: the file system has changed so that a grant cannot be given any more.
    """
    look = _look(bare.config.project, workspace, files=files, facts=bare.facts, projects=projects)
    now = _bare(bare.judged, look)
    refused = (*workspace_place_refusals.moved(now.config, look.root, files), *now.writes_now(files)[1])
    if refused:
        raise RequestRefused(refused)
    return _completed(now, look)


class _Look(NamedTuple):
    """One look at the file system around one project.

    Attributes:
        root: the workspace root, canonical.
        fixed: the walls every task of the workspace has.
        nested: the projects inside this one, as walls.
        stores: credential stores and the system's secrets, those that exist.
    """

    workspace: WorkspaceFacts
    files: Files
    facts: HostFacts
    projects: _MetProjects
    root: str
    fixed: tuple[Wall, ...]
    nested: tuple[Wall, ...]
    stores: tuple[Wall, ...]


def _look(
    project: str, workspace: WorkspaceFacts, *, files: Files, facts: HostFacts, projects: LinkedProjects | None
) -> _Look:
    root = paths.canonical(workspace.root, files)
    met = _MetProjects(projects if projects is not None else _listed(workspace.nested, files))
    return _Look(
        workspace=workspace,
        files=files,
        facts=facts,
        projects=met,
        root=root,
        fixed=walls.fixed(root, cache_dir=workspace.cache_dir, files=files),
        nested=walls.nested(project, met.below(project), files),
        stores=remembered(
            files, ("store walls", root, *facts.homes, *facts.secrets), lambda: tuple(_kept_closed(root, facts, files))
        ),
    )


def _listed(directories: Iterable[str], files: Files) -> ListedProjects:
    """The projects a workspace lists, under the directories as they are spelled and under the canonical ones."""
    from sandbox.request.linked_packages import ListedProjects  # a config is often judged alone, as a check does

    both = (path for one in directories for path in (one, paths.canonical(one, files)))
    return ListedProjects(tuple(dict.fromkeys(both)))


def _kept_closed(root: str, facts: HostFacts, files: Files) -> Iterator[Wall]:
    """The credential stores of the user and the system's secrets, those that exist."""
    for path, spelled in credential_stores.existing(facts.homes, root, files):
        below = paths.under(spelled, facts.home)
        name = f"~/{paths.relative(spelled, facts.home)}" if below else spelled
        yield Wall(path=path, reason=f"the credential store {name}")
    for path in facts.secrets:
        yield Wall(path=path, reason="the system's secret")


class _MetProjects:
    """The projects of a workspace, with a record of those that were met."""

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


def _judged(config: ResolvedSandboxConfig, look: _Look) -> JudgedConfig:
    """The config with the result of judging each write grant.

    Raises:
        RequestRefused: with every reason found, in the order of the config.
    """
    context = WriteGrantContext(
        config=config, facts=look.facts, files=look.files, walls=(*look.fixed, *look.nested), stores=look.stores
    )
    writes, unwritable = write_grant_shapes.judge(context)
    refused = (
        *workspace_place_refusals.misplaced(config, look.root, look.facts, look.files),
        *_unreadable(config),
        *unwritable,
        *network_and_socket_refusals.judge(config),
    )
    if refused:
        raise RequestRefused(refused)
    return JudgedConfig(config=config, writes=writes)


def _unreadable(config: ResolvedSandboxConfig) -> Iterator[Refusal]:
    for index, grant in enumerate(config.allow_read):
        refusal = unusable(grant, f"allowRead[{index}]")
        if refusal is not None:
            yield refusal


def _bare(judged: JudgedConfig, look: _Look) -> Request:
    """The request without linked packages and outputs of other tasks."""
    if any(not paths.at_or_under(grant.path, judged.config.project) for grant in judged.writes):
        # A policy of any project may be a link to a file that this task may write.
        look.projects.below(look.root)
    return Request(
        judged=judged,
        workspace_root=look.root,
        facts=look.facts,
        walls=(*look.fixed, *look.nested),
        stores=look.stores,
        around=walls.around(look.root, look.facts.home, look.files),
        links=look.workspace.links,
        workspace=replace(look.workspace, nested=tuple(sorted(look.projects.found))),
    )


def _completed(bare: Request, look: _Look) -> Request:
    """The request with linked packages and outputs of other tasks."""
    workspace, files, project = look.workspace, look.files, bare.config.project
    keyed = workspace.keyed
    key = None if keyed is None else frozenset(paths.canonical(path, files) for path in keyed)
    search = _searched(bare, look, key)
    granted = tuple(search.granted.values())
    nested = _closed_projects(look, granted, key=key, project=project) if granted else look.nested
    outputs = (paths.canonical(path, files) for path in workspace.dependency_outputs)
    reads = (
        *(Implied(path=one.path, reason=one.reason) for one in granted),
        *(Implied(path=path, reason="an output of a task this one depends on") for path in outputs),
    )
    reported = (
        *search.withheld,
        *(wall.path for wall in nested if not paths.under(wall.path, project)),
        *(paths.canonical(path, files) for path in workspace.dependency_reported),
    )
    return replace(
        bare,
        # The first reason for a path counts.
        reads=tuple({read.path: read for read in reversed(reads)}.values())[::-1],
        walls=(*look.fixed, *nested),
        links=tuple(dict.fromkeys((*workspace.links, *_through(granted, files)))),
        withheld=tuple(search.withheld.values()),
        asked=tuple(dict.fromkeys(search.asked)),
        reported=tuple(dict.fromkeys(reported)),
        keyed=key,
        workspace=replace(workspace, nested=tuple(sorted(look.projects.found))),
    )


def _searched(bare: Request, look: _Look, key: frozenset[str] | None) -> Search:
    """The search through the project's and the workspace's installed packages, done."""
    from sandbox.request.linked_packages import Limits, Search  # a config is often judged alone, as a check does

    limits = Limits(
        project=bare.config.project,
        root=look.root,
        home=look.facts.home,
        temp_root=look.facts.temp_root,
        closed=tuple(wall.path for wall in look.fixed),
        stores=tuple(store.path for store in look.stores),
        around=tuple(wall.path for wall in bare.around),
        keyed=key,
    )
    search = Search(limits, look.files, look.projects)
    search.run()
    return search


def _closed_projects(
    look: _Look, granted: tuple[LinkedDirectory, ...], *, key: frozenset[str] | None, project: str
) -> tuple[Wall, ...]:
    """The nested projects that are walls: this project's own, and those in granted packages no key answers for."""
    packages = [one.path for one in granted if look.projects.is_project(one.path)]
    kept = [
        wall
        for wall in look.nested
        if not any(paths.under(wall.path, package) for package in packages)
        or (key is not None and wall.path not in key)
    ]
    if key is not None:
        for package in packages:
            if not paths.at_or_under(package, project):
                inside = walls.nested(package, look.projects.below(package), look.files)
                kept += (wall for wall in inside if wall.path not in key)
    return tuple({wall.path: wall for wall in kept}.values())


def _through(granted: tuple[LinkedDirectory, ...], files: Files) -> Iterator[tuple[str, str]]:
    """The links that lead to granted packages, but for those a grant shows anyway."""
    shown = {one.path for one in granted}
    for one in granted:
        for place, target in paths.links_on(one.place, files):
            if shown.isdisjoint(paths.parents(place)):
                yield place, target
