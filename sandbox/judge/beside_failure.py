"""The denials that fail no task and that a failed one is told of: one list, for the notes and the fix alike. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import paths
from sandbox.contract.config import Reach
from sandbox.contract.intents import Intent
from sandbox.judge.boundary import never_counts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.contract.results import Access
    from sandbox.judge.attempt_denials import AttemptDenials
    from sandbox.judge.boundary import Boundary, Walled
    from sandbox.judge.failure_facts import Aftermath

#: The words of git where it finds no repository.
NO_REPOSITORY = "not a git repository"
_MISSING = re.compile(
    r"no such file|ENOENT|does ?n.t exist|does not exist|not found|can ?not find|can.t find"
    r"|could not (?:find|open|read)|can.t open|cannot open|unable to (?:find|open|read)",
    re.IGNORECASE,
)
_WORD = re.compile(r"""'([^'\n]+)'|"([^"\n]+)"|`([^`\n]+)`|([^\s'"`(),;<>|]+)""")

#: The most words of the output that are looked at, and the most characters of one.
_WORDS = 400
_LONGEST = 4096


class CalledMissing(NamedTuple):
    """A path that the command called missing.

    Attributes:
        word: as the command spelled it.
        path: canonical.
        task: the name of the task that makes it and has not; empty for a path that exists and is hidden.
    """

    word: str
    path: str
    task: str = ""


class BesideFailure(NamedTuple):
    """The denials a failed task is told of besides its violations; none where the command itself passed.

    Attributes:
        reads: existing paths outside the project that it looked for in vain, files first.
        programs: programs below home that a hermetic task looked for.
        missing: a hidden path that only its output tells of.
        writes: refused writes outside the project.
        walls: those it looked at, where its output names them or there is none; git's complaint has a note of its own.
    """

    reads: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    missing: CalledMissing | None = None
    walls: tuple[Walled, ...] = ()
    writes: tuple[Access, ...] = ()


def beside_failure(seen: AttemptDenials, boundary: Boundary, after: Aftermath) -> BesideFailure:
    """The denials a failed task is told of besides its violations."""
    if after.survived:
        return BesideFailure()
    programs = dict.fromkeys(
        access.path
        for access, _ in (*seen.outside, *seen.looked)
        if _installed(access, boundary) and boundary.store(access.path) is None
    )
    return BesideFailure(
        reads=tuple(_reads(seen, boundary)),
        programs=tuple(programs),
        missing=called_missing(seen, boundary, after),
        walls=tuple(_walls(seen, boundary, after)),
        writes=tuple(access for access, kind in seen.outside if kind == "write"),
    )


def _walls(seen: AttemptDenials, boundary: Boundary, after: Aftermath) -> list[Walled]:
    """The walls that may be why a command failed.

    Most tools look for a repository or a project around them, and go on without: the output tells where one did not.
    """
    met = {wall.path: wall for a, _ in seen.walled if (wall := boundary.wall(a.path)) is not None}
    printed = "\n".join(after.last_lines).strip()
    said = NO_REPOSITORY in printed
    return [
        wall
        for path, wall in met.items()
        if (not printed or paths.name(path).lstrip(".") in printed) and not (said and paths.name(path) == ".git")
    ]


def _reads(seen: AttemptDenials, boundary: Boundary) -> list[str]:
    """Existing paths outside the project that were read in vain, files first.

    A look counts as an opening: the kernel keeps the mask's answer to it, so that an opening that follows may not be
    seen. Directories are looked at by every tool on its way up, and files outside the workspace by their way in.
    """
    opened = [a.path for a, kind in seen.outside if kind == "read" and a.exists and not _installed(a, boundary)]
    looked = [
        a.path
        for a, _ in seen.looked
        if not boundary.directory(a.path)
        and not _installed(a, boundary)
        and (paths.under(a.path, boundary.workspace) or boundary.store(a.path) is not None)
    ]
    return sorted(dict.fromkeys((*opened, *looked)), key=boundary.directory)


def _installed(access: Access, boundary: Boundary) -> bool:
    """Whether a hermetic task looked for a program below home."""
    path = access.path
    if not boundary.hermetic or not paths.under(path, boundary.home) or paths.under(path, boundary.workspace):
        return False
    return access.intent is Intent.EXEC or paths.name(paths.parent(path)) == "bin"


def called_missing(seen: AttemptDenials, boundary: Boundary, after: Aftermath) -> CalledMissing | None:
    """A path the command called missing, where the sandbox hides it and nothing else tells of it."""
    told = {access.path for access, _ in (*seen.counted, *seen.outside, *seen.looked)}
    for word in _missing_words(after):
        for base in dict.fromkeys((after.cwd, boundary.project)):
            path = boundary.canonical(paths.normal(word if word.startswith("/") else f"{base}/{word}"))
            if path in told or never_counts(path, boundary):
                continue
            task = boundary.declared.maker(path)
            if task is not None and not after.exists(path):
                return CalledMissing(word, path, task)
            if boundary.plan.reach(path) is not Reach.HIDDEN:
                continue
            if not after.exists(path) or any(paths.at_or_under(place, path) for place in (base, boundary.workspace)):
                continue
            return CalledMissing(word, path)
    return None


def _missing_words(after: Aftermath) -> Iterator[str]:
    left = _WORDS
    for line in after.last_lines:
        if not _MISSING.search(line):
            continue
        for found in _WORD.finditer(line[:_LONGEST]):
            word = next(group for group in found.groups() if group is not None).rstrip(":.")
            if not ("/" in word or "." in word) or len(word) > _LONGEST or "\0" in word:
                continue
            left -= 1
            if left < 0:
                return
            yield word
