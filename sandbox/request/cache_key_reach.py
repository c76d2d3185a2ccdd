"""The meaning of a task's grants for cache keys: where it may write, and which files its own key holds unseen. Pure.

Nothing here changes a run. A program that keeps a cache asks before it trusts a key. It asks for writes that no
declaration names. It asks whether a key holds a file that the task cannot read, for that is a key for something else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sandbox.base import globs, paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.base.host_facts import Files
    from sandbox.contract.config import ResolvedSandboxConfig
    from sandbox.request.request import Request

#: The places a task may have written files in that nothing declares.
WriteReach = Literal["none", "project", "workspace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedTask:
    """One task, as far as cache keys depend on it.

    Attributes:
        workspace, project: canonical directories.
        config: the task's resolved config; `None` for a task without a sandbox block.
        group: whether the task has no command at all.
        cached: whether the task has a cache.
    """

    workspace: str
    project: str
    config: ResolvedSandboxConfig | None = None
    group: bool = False
    cached: bool = False


def undeclared_write_reach(task: KeyedTask) -> WriteReach:
    """Where a task may have written files that no declaration names.

    That is nowhere for a task with a cache, which holds the task to its declared outputs.
    """
    return "none" if task.cached else command_write_reach(task)


def command_write_reach(task: KeyedTask) -> WriteReach:
    """Where a task's command may write at all, whatever its cache says.

    A grant outside the workspace counts as none, since no task has inputs there.
    """
    if task.group:
        return "none"
    if task.config is None:
        return "project"
    heads = [globs.head(grant) for grant in _alternatives(task.config.allow_write)]
    found: WriteReach = "none"
    for head in heads:
        if paths.at_or_under(head, task.project):
            found = "project"
        elif paths.at_or_under(head, task.workspace) or paths.at_or_under(task.workspace, head):
            return "workspace"
    return found


def granted_write_globs(task: KeyedTask) -> tuple[str, ...]:
    """Where a sandboxed task's write grants reach in its own project, as patterns relative to the project.

    A directory is `dir/**` and the project itself `**`. A name is two patterns: the name, and all below it should it
    become a directory.
    """
    found: list[str] = []
    for grant in _alternatives(task.config.allow_write if task.config is not None else ()):
        # A grant around the project reaches all of the project.
        if paths.at_or_under(task.project, globs.head(grant)) and grant.endswith("/"):
            found.append("**")
        elif paths.at_or_under(globs.head(grant), task.project):
            start = len(globs.escape(task.project).rstrip("/")) + 1
            relative = grant[start:]
            found += [f"{relative}**"] if relative.endswith("/") else [relative, f"{relative}/**"]
    return tuple(dict.fromkeys(found))


def may_write_fingerprint(task: KeyedTask, claimed: Iterable[str]) -> bool:
    """Whether a task may rewrite a file of the workspace root that others read as a fingerprint, such as a lock file.

    Args:
        task: the task.
        claimed: the files that are read as fingerprints, relative to the workspace root.
    """
    files = [paths.join(task.workspace, name) for name in claimed]
    if not files or task.group:
        return False
    if task.config is None:
        # Elsewhere an unsandboxed task that writes at the root leaves its project, and nothing promises that it does
        # not.
        return task.project == task.workspace
    written = globs.matcher(task.config.allow_write)
    return any(map(written, files))


def keyed_outside_grants(request: Request, keyed: Iterable[str], files: Files) -> tuple[str, ...]:
    """The files outside the project that a cache key holds and no grant reaches, so that the task never sees them.

    A pattern counts as reaching everything below its literal head. A file that `ignore.read` names is left out.

    Args:
        request: the task's request.
        keyed: existing files the key holds, relative to the workspace root.
        files: the host's file system.

    Returns:
        Those among `keyed`, in their order.
    """
    config, root = request.config, request.workspace_root
    grants = _alternatives((*config.allow_read, *config.allow_write))
    heads = frozenset((*map(globs.head, grants), *(read.path for read in request.reads)))
    ignored = globs.matcher(_absolute(entry, config.project) for entry in config.ignore.read)
    found = []
    for name in keyed:
        asked = paths.join(root, name)
        path = paths.canonical(asked, files)
        if paths.at_or_under(path, config.project) or not (paths.at_or_under(path, root) or config.hermetic):
            continue
        reached = path in heads or any(above in heads for above in paths.parents(path))
        if not reached and not ignored(path) and not ignored(asked):
            found.append(name)
    return tuple(found)


def _absolute(entry: str, project: str) -> str:
    return entry if entry.startswith("/") else paths.join(globs.escape(project), entry)


def _alternatives(grants: Iterable[str]) -> Iterator[str]:
    for grant in grants:
        yield from map(globs.collapse, globs.expand_braces(grant))
