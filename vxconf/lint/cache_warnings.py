"""Warnings about a task's cache that probably does not hold what its author meant; pure.

What is compared are the places where patterns begin, so a warning stands only where no file could make it wrong.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract.errors import Refusal
from vxconf.diagnostics.diagnostic import quoted
from vxconf.validate.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.base.host_facts import Files
    from vxconf.diagnostics.diagnostic import FieldPath
    from vxconf.resolve.judge_block import JudgedBlock
    from vxconf.resolve.task_model import TaskModel

#: The most names that are looked at for a pattern; a pattern that takes none of them may take another one.
_LOOKED = 500


class CacheSetting(NamedTuple):
    """The setting that the warnings about a cache are judged against.

    Attributes:
        workspace, project: canonical directories.
        files: the file system.
        is_made: whether a task of the workspace makes a path; such a path may well be missing now.
        is_keyed: whether the task's key answers for a path by other tasks.
    """

    workspace: str
    project: str
    files: Files
    is_made: Callable[[str], bool]
    is_keyed: Callable[[str], bool]


def warnings_of_cache(task: TaskModel, judged: JudgedBlock | None, where: CacheSetting) -> Iterator[Finding]:
    """The warnings about the cache of a task; without a block there are those about its inputs alone."""
    if task.cache is None:
        return
    yield from _unmatched(task, where)
    if judged is not None and judged.bare is not None:
        yield from _made_by_no_grant(task, judged, where)
        yield from _outside_the_key(task, judged, where)


def _unmatched(task: TaskModel, where: CacheSetting) -> Iterator[Finding]:
    """Inputs that take no file now, and that no task makes (VX420)."""
    for path, entry, patterns in _inputs(task, where):
        if patterns and not entry.startswith("!") and not any(_takes_something(one, where) for one in patterns):
            yield Finding(
                code="VX420",
                path=path,
                message=f"{path[-3]}.{path[-2]} {quoted(entry)} takes no file now",
                help="check the spelling: a path begins in the "
                + ("project's directory" if path[-2] == "files" else "workspace's root"),
            )


def _inputs(task: TaskModel, where: CacheSetting) -> Iterator[tuple[FieldPath, str, tuple[str, ...]]]:
    """Each input with its path in the file and its absolute patterns; none where they are too many."""
    cache = task.cache
    if cache is None:
        return
    lists = (
        ("files", cache.input_files, where.project),
        ("workspaceFiles", cache.input_workspace_files, where.workspace),
    )
    for key, entries, base in lists:
        for index, entry in enumerate(entries):
            yield (*task.path, "cache", "inputs", key, index), entry, _absolute(entry, base)


def _absolute(entry: str, base: str) -> tuple[str, ...]:
    try:
        spelled = globs.expand_braces(entry.removeprefix("!"))
        return tuple(globs.collapse(paths.join(globs.escape(base), one)) for one in spelled)
    except Refusal:
        return ()


def _takes_something(pattern: str, where: CacheSetting) -> bool:
    start = globs.head(pattern)
    kind = where.files.kind(start)
    if kind is None:
        return where.is_made(start)
    if not globs.has_wildcard(pattern):
        return True
    if kind is not Kind.DIRECTORY:
        return kind is Kind.LINK
    if pattern == f"{globs.escape(start)}/**" and where.files.entries(start):
        return True
    base = globs.escape(where.project)
    own = pattern.startswith(f"{base}/")
    # projects of one workspace have the same patterns: a pattern from the project on is compiled once for all of them
    takes = _matcher(pattern[len(base) :] if own else pattern)
    cut = len(where.project) if own else 0
    return _found(lambda path: takes(path[cut:]), start, where) or where.is_made(start)


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> Callable[[str], bool]:
    return globs.matcher((pattern,))


def _found(takes: Callable[[str], bool], start: str, where: CacheSetting) -> bool:
    """Whether a pattern takes a path below a directory, or there are too many to tell."""
    todo, looked = [start], 0
    while todo:
        here = todo.pop()
        for name in where.files.entries(here):
            looked += 1
            path = paths.join(here, name)
            if looked > _LOOKED or takes(path):
                return True
            if where.files.kind(path) is Kind.DIRECTORY:
                todo.append(path)
    return False


def _made_by_no_grant(task: TaskModel, judged: JudgedBlock, where: CacheSetting) -> Iterator[Finding]:
    """Outputs that no grant lets the task write (VX421)."""
    if task.cache is None or not task.cache.output_files:
        return
    written = [globs.head(grant) for grant in judged.resolution.config.allow_write]
    for index, entry in enumerate(task.cache.output_files):
        if entry.startswith("!"):
            continue
        heads = [paths.canonical(globs.head(one), where.files) for one in _absolute(entry, where.project)]
        if heads and not any(_meet(head, place) for head in heads for place in written):
            yield Finding(
                code="VX421",
                path=(*task.path, "cache", "outputs", "files", index),
                message=f"outputs.files {quoted(entry)} is made by no write grant: the task cannot make it",
                help=f"add allow.write = [{quoted(_grant_for(entry))}], or take the output out",
            )


def _grant_for(entry: str) -> str:
    """The write grant that lets a task make an output."""
    return entry.removesuffix("**") if entry.endswith("/**") and not globs.has_wildcard(entry[:-3]) else entry


def _outside_the_key(task: TaskModel, judged: JudgedBlock, where: CacheSetting) -> Iterator[Finding]:
    """Grants to read in the workspace that no input meets: a result is kept although such a file changed (VX422)."""
    keyed = [one for _, entry, patterns in _inputs(task, where) if not entry.startswith("!") for one in patterns]
    if not keyed or (task.exec is not None and task.exec.persistent is not None):
        return
    for index, grant in enumerate(judged.resolution.config.allow_read):
        place = globs.head(grant)
        inside = paths.under(place, where.workspace) and not paths.under(where.project, place)
        own = paths.at_or_under(place, where.project)
        if not inside or any(_reaches(one, place) for one in keyed) or where.is_made(place):
            continue
        # the tasks before a task are looked up last: there may be hundreds
        if not own and where.is_keyed(place):
            continue
        entry = judged.resolution.origin(f"allowRead[{index}]")[0]
        name = paths.relative(place, where.project if own else where.workspace) if place != where.project else ""
        pattern = globs.escape(name) + ("/**" if where.files.kind(place) is Kind.DIRECTORY else "")
        yield Finding(
            code="VX422",
            path=entry.path,
            message=f"allow.read {quoted(entry.text)} opens what the task's cache key does not hold",
            help=f"add {quoted(pattern.lstrip('/'))} to cache.inputs.{'files' if own else 'workspaceFiles'}: "
            "a result is kept although the file has changed",
        )


def _meet(one: str, other: str) -> bool:
    return paths.at_or_under(one, other) or paths.at_or_under(other, one)


def _reaches(pattern: str, place: str) -> bool:
    """Whether a pattern can take a place, or something in it."""
    start = globs.head(pattern)
    if paths.at_or_under(start, place):
        return True
    if not paths.under(place, start):
        return False
    if not globs.has_wildcard(pattern) or "**" in pattern:
        return True  # a directory as a whole, or any depth
    parts, depth = pattern.split("/"), place.count("/") + 1
    return len(parts) >= depth and globs.matcher(("/".join(parts[:depth]),))(place)
