"""The files that the tasks a task depends on have made for it. Pure.

Only files that an output pattern takes are opened. No cache key answers for a file beside the outputs, so a refused
read of it is reported. A directory is opened whole where every file in it is an output. A link is opened only as part
of such a directory, since alone its target would be opened.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sandbox.base.host_facts import Files


class Outputs(NamedTuple):
    """The outputs of other tasks that may be read.

    Attributes:
        reads: files, and directories that hold nothing else.
        reported: the directories they were looked for in.
    """

    reads: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()


class Declared(NamedTuple):
    """The outputs and inputs that tasks declare, by which denials are explained; they open nothing.

    Attributes:
        own: the task's own output patterns, absolute.
        upstream: for each task it depends on the task's name and its output patterns, absolute.
        inputs: the patterns of the files in the task's own cache key, absolute.
    """

    own: tuple[str, ...] = ()
    upstream: tuple[tuple[str, tuple[str, ...]], ...] = ()
    inputs: tuple[str, ...] = ()

    def maker(self, path: str) -> str | None:
        """The task that makes a path; `None` when no other task says so."""
        index = _index(self.upstream)
        if not index:
            return None
        found = (one for place in (path, *paths.parents(path)) for one in index.get(place, ()))
        return next((task for task, taken, back in found if taken(path) and not back(path)), None)

    def makes(self, path: str) -> bool:
        """Whether the task itself says that it makes a path."""
        return _takes(self.own, path)

    def keys(self, path: str, *, directory: bool = False) -> bool:
        """Whether the task's own cache key holds a file, or every file in a directory, as far as patterns tell."""
        # A pattern that takes names no file has, at two depths, takes every name there.
        asked = tuple(paths.join(path, below) for below in _ANY_BELOW) if directory else (path,)
        return all(_takes(self.inputs, one) for one in asked)


#: Names that no pattern is written for.
_ANY_BELOW = ("\N{SNOWMAN}", "\N{SNOWMAN}/\N{SNOWMAN}")


def anchored(project: str, patterns: Iterable[str]) -> tuple[str, ...]:
    """Patterns of outputs or inputs made absolute; a pattern that takes files back keeps its `!`.

    Args:
        project: canonical directory, for inputs of the workspace its root.
        patterns: relative to it.
    """
    spelled = (grant for pattern in patterns for grant in globs.expand_braces(pattern))
    return tuple(
        f"!{_anchored(project, grant[1:])}" if grant.startswith("!") else _anchored(project, grant) for grant in spelled
    )


def _takes(patterns: tuple[str, ...], path: str) -> bool:
    taken, back = _matchers(patterns)
    return taken(path) and not back(path)


@lru_cache(maxsize=64)
def _index(
    upstream: tuple[tuple[str, tuple[str, ...]], ...],
) -> dict[str, list[tuple[str, Callable[[str], bool], Callable[[str], bool]]]]:
    """Tasks by the places their outputs lie in: a workspace has hundreds, and each is asked for every denial."""
    found: dict[str, list[tuple[str, Callable[[str], bool], Callable[[str], bool]]]] = {}
    for task, patterns in upstream:
        for place in dict.fromkeys(head(pattern) for pattern in patterns if not pattern.startswith("!")):
            found.setdefault(place, []).append((task, *_matchers(patterns)))
    return found


@lru_cache(maxsize=1024)
def _matchers(patterns: tuple[str, ...]) -> tuple[Callable[[str], bool], Callable[[str], bool]]:
    """Two tests, for the paths that patterns take and for those they take back; both are asked for every denial."""
    taken = [pattern for pattern in patterns if not pattern.startswith("!")]
    back = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    return globs.matcher(_with_trees(taken)), globs.matcher(_with_trees(back))


def find(made: Iterable[tuple[str, tuple[str, ...]]], files: Files) -> Outputs:
    """The outputs of other tasks that exist now.

    Args:
        made: for each task the canonical directory of its project and its output patterns, relative to it; one
            that begins with `!` takes files back.
        files: the host's file system.

    Raises:
        Refusal: a pattern looks at more than `globs.MAX_ENTRIES` names.
    """
    reads: list[str] = []
    reported: list[str] = []
    for project, patterns in made:
        _find(project, patterns, files, reads, reported)
    distinct = dict.fromkeys(reads)
    return Outputs(
        reads=tuple(path for path in distinct if not any(above in distinct for above in paths.parents(path))),
        reported=tuple(dict.fromkeys(reported)),
    )


def _find(project: str, patterns: tuple[str, ...], files: Files, reads: list[str], reported: list[str]) -> None:
    """Add the outputs of one task, and the directories they were looked for in."""
    spelled = anchored(project, patterns)
    walk = _Walk(files, *_matchers(spelled))
    for pattern in spelled:
        start = head(pattern)
        if pattern.startswith("!") or not paths.at_or_under(start, project) or paths.canonical(start, files) != start:
            # A start behind a link, or outside the project, is another's to give.
            continue
        if start != project and files.kind(start) is Kind.DIRECTORY:
            reported.append(start)
        reads += walk.outputs(start, whole=start != project)


def _anchored(project: str, grant: str) -> str:
    text = grant
    while text.startswith("./"):
        text = text[2:]
    return globs.collapse(paths.join(globs.escape(project), text or "."))


def head(grant: str) -> str:
    """The directory, or the one file, below which the matches of an absolute output pattern lie."""
    return globs.literal_base(grant) if globs.has_wildcard(grant) else paths.normal(globs.unescape(grant))


def _with_trees(grants: Iterable[str]) -> Iterable[str]:
    """Each pattern; of a pattern that names a path, also everything in it."""
    for grant in grants:
        if globs.has_wildcard(grant):
            yield grant
        else:
            path = globs.escape(paths.normal(globs.unescape(grant)))
            yield path
            yield f"{path.rstrip('/')}/"


class _Walk:
    """A search below the heads of one task's patterns for outputs."""

    def __init__(self, files: Files, taken: Callable[[str], bool], back: Callable[[str], bool]) -> None:
        self._files = files
        self._taken = taken
        self._back = back
        self._looked = 0

    def outputs(self, head: str, *, whole: bool) -> list[str]:
        """The outputs at or below a head.

        Args:
            head: an existing path, or none.
            whole: whether directories may be opened whole; not where a pattern has no head, which would open any
                part of the project.
        """
        kind = self._files.kind(head)
        if kind is Kind.FILE:
            return [head] if self._is(head) else []
        if kind is not Kind.DIRECTORY:
            return []
        found: dict[str, list[str]] = {}
        complete: dict[str, bool] = {}
        # Directories come after their contents. There is no recursion, since paths are deeper than Python's stack.
        order = self._directories(head)
        for directory in reversed(order):
            inside: list[str] = []
            every = True
            for name in self._files.entries(directory):
                path = paths.join(directory, name)
                what = self._files.kind(path)
                if what is Kind.DIRECTORY:
                    every = complete[path] and every
                    inside += found.pop(path)
                elif self._is(path):
                    inside += [path] if what is Kind.FILE else []
                else:
                    every = False
            # An empty directory is whole as part of another; it is an output of its own only where it was named.
            complete[directory] = every
            if every and whole and (inside or (directory == head and self._is(head))):
                inside = [directory]
            found[directory] = inside
        return found[head]

    def _is(self, path: str) -> bool:
        return self._taken(path) and not self._back(path)

    def _directories(self, head: str) -> list[str]:
        order, todo = [], [head]
        while todo:
            directory = todo.pop()
            order.append(directory)
            names = self._files.entries(directory)
            self._looked += len(names)
            if self._looked > globs.MAX_ENTRIES:
                raise Refusal(
                    f"the outputs in {head} are among more than {globs.MAX_ENTRIES} names",
                    code=refusal_codes.TOO_MUCH,
                    hint="declare the outputs of that task in a directory of their own",
                )
            todo += [
                path
                for path in (paths.join(directory, name) for name in names)
                if self._files.kind(path) is Kind.DIRECTORY
            ]
        return order
