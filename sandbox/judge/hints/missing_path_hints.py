"""Notes on a path that the command called missing, where the sandbox hides it. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.config import Reach
from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry
from sandbox.judge.boundary import never_counts
from sandbox.judge.hints.upstream_output_hints import not_made
from sandbox.judge.remedies.never_granted import never_granted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.judge.attempt_denials import AttemptDenials
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.failure_facts import Aftermath

_MISSING = re.compile(
    r"no such file|ENOENT|does ?n.t exist|does not exist|not found|can ?not find|can.t find"
    r"|could not (?:find|open|read)|can.t open|cannot open|unable to (?:find|open|read)",
    re.IGNORECASE,
)
_WORD = re.compile(r"""'([^'\n]+)'|"([^"\n]+)"|`([^`\n]+)`|([^\s'"`(),;<>|]+)""")

#: The most words of the output that are looked at, and the most characters of one.
_WORDS = 400
_LONGEST = 4096


def said_missing(seen: AttemptDenials, boundary: Boundary, after: Aftermath) -> list[Hint]:
    """A note on a path the command called missing, where the sandbox hides it and nothing else tells of it."""
    told = {access.path for access, _ in (*seen.counted, *seen.outside)}
    for word in _missing_words(after):
        for base in dict.fromkeys((after.cwd, boundary.project)):
            path = boundary.canonical(paths.normal(word if word.startswith("/") else f"{base}/{word}"))
            if path in told or never_counts(path, boundary):
                continue
            task = boundary.declared.maker(path)
            if task is not None and not after.exists(path):
                return [not_made(path, task)]
            if boundary.plan.reach(path) is not Reach.HIDDEN:
                continue
            if not after.exists(path) or any(paths.at_or_under(place, path) for place in (base, boundary.workspace)):
                continue
            what = f"the command called {path_as_entry.shown(word)} missing: it exists and is hidden from the task"
            if boundary.store(path) is not None:
                return [Hint(line=f"{what}, for it holds credentials", class_="credential")]
            why = never_granted(path, "read", boundary)
            if why is not None:
                return [Hint(line=f"{what}, and it {why.reason}: {why.remedy}", class_="grant")]
            return [Hint(line=f"{what}; {path_as_entry.readable(path, boundary)} opens it", class_="grant")]
    return []


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
