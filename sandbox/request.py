"""What one attempt may read and write: the config, what it implies, and the walls around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox import paths, refusals, stores
from sandbox.errors import Refusal, RequestRefused
from sandbox.facts import Kind
from sandbox.writes import Judge, Wall, unusable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.contract import ResolvedSandboxConfig
    from sandbox.facts import Files, HostFacts

#: Fields nothing enforces yet, by attribute: the JSON key and the code. A config that sets one is
#: refused, never half obeyed.
NOT_BUILT_YET = {
    "network": ("network", "VX501"),
    "deny_network": ("denyNetwork", "VX501"),
    "unix_sockets": ("unixSockets", "VX503"),
    "local_binding": ("localBinding", "VX502"),
    "pty": ("pty", "VX504"),
    "git_config": ("gitConfig", "VX505"),
    "weaker_when_nested": ("weakerWhenNested", "VX507"),
    "hermetic": ("hermetic", "VX506"),
}


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
class Request:
    """One attempt, ready to be planned.

    Attributes:
        config: what the task was granted.
        workspace_root: canonical.
        facts: what is known of the machine.
        reads: implied read grants.
        walls: places a grant above them does not open, existing or not.
        stores: credential stores that exist.
        links: links the grants were spelled through, each as its place and its text.
        keyed: directories of the projects the task's cache key answers for; `None` when it has no cache.
    """

    config: ResolvedSandboxConfig
    workspace_root: str
    facts: HostFacts
    reads: tuple[Implied, ...] = ()
    walls: tuple[Wall, ...] = ()
    stores: tuple[Wall, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    keyed: frozenset[str] | None = None


def build(
    config: ResolvedSandboxConfig,
    *,
    workspace_root: str,
    files: Files,
    facts: HostFacts,
    keyed: Iterable[str] | None = None,
    nested: Iterable[str] = (),
    dependency_outputs: Iterable[str] = (),
    cache_dir: str | None = None,
    links: Iterable[tuple[str, str]] = (),
) -> Request:
    """Judge a config against the file system; nothing is created.

    Args:
        config: the grants, absolute and canonical.
        workspace_root: the directory around which everything is hidden.
        files: the host's file system.
        facts: the rest of what is known of the machine.
        keyed: directories of the projects the task's cache key answers for; `None` when it has no cache.
        nested: directories of the workspace's projects; those inside this task's project become walls.
        dependency_outputs: files and directories other tasks made for this one.
        cache_dir: where the run keeps its cache, when that is not `.vx/cache`.
        links: links the grants were spelled through, so that both names work.

    Raises:
        RequestRefused: with every reason found, in the order of the config.
    """
    root = paths.canonical(workspace_root, files)
    walls = tuple(_walls(root, config.project, nested, cache_dir, files))
    found = tuple(
        Wall(path=path, reason=f"the credential store ~/{name}")
        for path, name in stores.existing(facts.home, root, files)
    )
    judge = Judge(config=config, facts=facts, files=files, walls=walls, stores=found)
    refused = (*_misplaced(config, root, facts, files), *_unreadable(config), *judge.judge()[1], *_not_built(config))
    if refused:
        raise RequestRefused(refused)
    dependencies = tuple(_dependencies(config.project, root, walls, files))
    through = [link for place, _ in dependencies for link in paths.links_on(place, files)]
    reads = (*(read for _, read in dependencies), *_outputs(dependency_outputs, files))
    return Request(
        config=config,
        workspace_root=root,
        facts=facts,
        # of several reasons for one path the first counts
        reads=tuple({read.path: read for read in reversed(reads)}.values())[::-1],
        walls=walls,
        stores=found,
        links=tuple(dict.fromkeys((*links, *through))),
        keyed=None if keyed is None else frozenset(paths.canonical(path, files) for path in keyed),
    )


def _walls(root: str, project: str, nested: Iterable[str], cache_dir: str | None, files: Files) -> Iterator[Wall]:
    seen: set[str] = set()
    found = [
        (paths.join(root, ".git"), "the repository's data", False),
        (paths.join(root, ".vx", "cache"), "the cache", True),
    ]
    if cache_dir is not None:
        found.append((paths.canonical(cache_dir, files), "the cache directory of the run", True))
    inside = (paths.canonical(path, files) for path in nested)
    found += [(path, "the nested project", False) for path in sorted(inside) if paths.under(path, project)]
    for path, reason, closed in found:
        # a wall that is a link hides its name and, in the workspace, what it leads to
        for place in (path, paths.canonical(path, files)):
            if place not in seen and paths.under(place, root):
                seen.add(place)
                yield Wall(path=place, reason=reason, closed=closed)


def _misplaced(config: ResolvedSandboxConfig, root: str, facts: HostFacts, files: Files) -> Iterator[Refusal]:
    if config.platform != facts.platform:
        yield Refusal(
            f"the config was resolved for {config.platform} and this machine is {facts.platform}",
            field="platform",
            code=refusals.PLATFORM,
            hint="resolve the config on this machine",
        )
    if config.workspace != root:
        yield Refusal(
            f"the config was resolved in the workspace {config.workspace} and is run in {root}",
            field="workspace",
            code=refusals.MOVED,
            hint="resolve the config again",
        )
    for place, what in (("/", "the file system's root"), (facts.home, "the home directory")):
        if paths.at_or_under(place, root):
            yield Refusal(
                f"the workspace root {root} {'is' if root == place else 'holds'} {what}",
                field="workspace",
                code=refusals.WORKSPACE_TOO_WIDE,
                hint="mark a directory below it as the workspace with .vx/workspace.toml",
            )
            break
    if "\0" in config.project:
        yield Refusal(
            f"the project directory {config.project!r} holds a NUL character",
            field="project",
            code=refusals.UNUSABLE,
            hint="remove the character",
        )
        return
    if not paths.at_or_under(config.project, root):
        yield Refusal(
            f"the project {config.project} is outside the workspace {root}",
            field="project",
            code=refusals.MOVED,
            hint="run the task from the workspace its project is in",
        )
    if config.platform == "linux" and paths.at_or_under(config.project, "/dev"):
        yield Refusal(
            f"the project {config.project} is under /dev, which every sandbox has its own of",
            field="project",
            code=refusals.UNDER_DEV,
            hint="move the project to another directory",
        )
    if paths.canonical(config.project, files) != config.project or files.kind(config.project) is not Kind.DIRECTORY:
        yield Refusal(
            f"the project {config.project} is no longer a directory",
            field="project",
            code=refusals.MOVED,
            hint="resolve the config again",
        )


def _unreadable(config: ResolvedSandboxConfig) -> Iterator[Refusal]:
    for index, grant in enumerate(config.allow_read):
        refusal = unusable(grant, f"allowRead[{index}]")
        if refusal is not None:
            yield refusal


def _not_built(config: ResolvedSandboxConfig) -> Iterator[Refusal]:
    for attribute, (field, code) in NOT_BUILT_YET.items():
        if getattr(config, attribute):
            yield Refusal(
                f"{field} is not enforced yet, so a task that sets it is not run",
                field=field,
                code=code,
                hint=f"remove {field} from the sandbox block",
            )


def _dependencies(project: str, root: str, walls: tuple[Wall, ...], files: Files) -> Iterator[tuple[str, Implied]]:
    """Each place dependencies are looked for, with what may be read for it."""
    for place in dict.fromkeys((paths.join(project, "node_modules"), paths.join(root, "node_modules"))):
        real = paths.canonical(place, files)
        if files.kind(real) is not Kind.DIRECTORY:
            continue
        if real == place or _may_stand_for_dependencies(real, project, root, walls):
            yield place, Implied(path=real, reason=f"the dependencies in {place}")


def _may_stand_for_dependencies(real: str, project: str, root: str, walls: tuple[Wall, ...]) -> bool:
    """Whether a `node_modules` that is a link may open what it leads to: never a way around a wall."""
    if paths.at_or_under(project, real) or paths.at_or_under(root, real):
        return False
    return not any(paths.at_or_under(real, wall.path) or paths.at_or_under(wall.path, real) for wall in walls)


def _outputs(dependency_outputs: Iterable[str], files: Files) -> Iterator[Implied]:
    for path in dependency_outputs:
        yield Implied(path=paths.canonical(path, files), reason="an output of a task this one depends on")
