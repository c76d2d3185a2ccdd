"""Notes on what a command said before it failed. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.config import Reach
from sandbox.contract.results import Hint
from sandbox.judge import grant_spelling
from sandbox.judge.hints import project_hints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.judge.attempt_denials import AttemptDenials
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.failure_facts import Aftermath

_NO_REPOSITORY = "not a git repository"
_REFUSED = re.compile(
    r"ECONNREFUSED|ERR_CONNECTION_REFUSED|connection refused|could(?:n.t| not) connect|failed to connect", re.IGNORECASE
)
_PORT = re.compile(r"(?:localhost|127\.0\.0\.1|\[?::1\]?)(?:[^\n]{0,24}?\bport |:)(\d{1,5})\b", re.IGNORECASE)
_MISSING = re.compile(
    r"no such file|ENOENT|does ?n.t exist|does not exist|not found|can ?not find|can.t find"
    r"|could not (?:find|open|read)|can.t open|cannot open|unable to (?:find|open|read)",
    re.IGNORECASE,
)
_WORD = re.compile(r"""'([^'\n]+)'|"([^"\n]+)"|`([^`\n]+)`|([^\s'"`(),;<>|]+)""")
_ACROSS = re.compile(r"cross-device link|\bEXDEV\b", re.IGNORECASE)

#: The most lines and words of the output that are looked at, from its end: the error is told last.
_LINES, _WORDS = 200, 400
_LONGEST = 4096


def repository(boundary: Boundary, after: Aftermath) -> list[Hint]:
    """A note that git found no repository because it is hidden."""
    if _NO_REPOSITORY not in after.printed:
        return []
    above = (paths.join(place, ".git") for place in (after.cwd, *paths.parents(after.cwd)))
    found = next((path for path in above if after.exists(path)), None)
    if found is None or boundary.plan.reach(found) is not Reach.HIDDEN:
        return []
    what = f"git finds no repository, since {grant_spelling.shown(found)} is hidden from the task"
    if paths.under(found, boundary.workspace) and boundary.directory(found):
        grant = grant_spelling.quoted(grant_spelling.entry(found, boundary))
        return [Hint(line=f"{what}: allow.read = [{grant}] opens it", class_="grant")]
    line = f"{what} on purpose: its data lies outside the workspace, where no cache key answers for it"
    return [Hint(line=line, class_="tool-fault")]


def unreachable(boundary: Boundary, after: Aftermath) -> list[Hint]:
    """Notes on ports of loopback that refused the task, and on which the host listens."""
    ports: dict[int, None] = {}
    for line in _last_lines(after.printed):
        if _REFUSED.search(line):
            ports.update((int(found[1]), None) for found in _PORT.finditer(line))
    wanted = [port for port in ports if port not in boundary.ports and 0 < port < 1 << 16 and after.listens(port)]
    return [
        Hint(
            line=f"the host listens on port {port}, and the task has a loopback of its own:"
            f' allow.network = ["localhost:{port}"] lets it reach the host\'s',
            class_="grant",
        )
        for port in wanted[: grant_spelling.NAMED]
    ]


def said_missing(seen: AttemptDenials, boundary: Boundary, after: Aftermath) -> list[Hint]:
    """A note on a path the command called missing, where the sandbox hides it and nothing else tells of it."""
    told = {access.path for access, _ in (*seen.counted, *seen.outside)}
    for word in _missing_words(after.printed):
        for base in dict.fromkeys((after.cwd, boundary.project)):
            path = boundary.canonical(paths.normal(word if word.startswith("/") else f"{base}/{word}"))
            if path in told or boundary.unjudged(path):
                continue
            task = boundary.declared.maker(path)
            if task is not None and not after.exists(path):
                return [project_hints.not_made(path, task)]
            if boundary.plan.reach(path) is not Reach.HIDDEN:
                continue
            if not after.exists(path) or any(paths.at_or_under(place, path) for place in (base, boundary.workspace)):
                continue
            what = f"the command called {grant_spelling.shown(word)} missing: it exists and is hidden from the task"
            if boundary.store(path) is not None:
                return [Hint(line=f"{what}, for it holds credentials", class_="credential")]
            return [Hint(line=f"{what}; {grant_spelling.readable(path, boundary)} opens it", class_="grant")]
    return []


def across(after: Aftermath) -> list[Hint]:
    """A note on a hard link or a rename from one grant into another."""
    if not any(_ACROSS.search(line) for line in _last_lines(after.printed)):
        return []
    line = "no hard link or rename leads from one grant into another: copy, or grant one directory that holds both"
    return [Hint(line=line, class_="tool-fault")]


def _missing_words(printed: str) -> Iterator[str]:
    left = _WORDS
    for line in _last_lines(printed):
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


def _last_lines(printed: str) -> list[str]:
    return printed.splitlines()[-_LINES:]
