"""Notes on a task that may not read the directory it starts in. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry
from sandbox.planning.operations import Bind, Cover, Name, Names

if TYPE_CHECKING:
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.failure_facts import Aftermath

_MISSED = re.compile(
    r"no such file|ENOENT|not found|\bno\b[^\n]*\bfound\b|can ?not find|does not exist|getcwd|working directory",
    re.IGNORECASE,
)


def unreadable(after: Aftermath, boundary: Boundary) -> list[Hint]:
    """A note on the task's own directory, where no grant covers it or leads into it and something was missed."""
    cwd, operations = after.cwd, boundary.plan.operations
    if not _MISSED.search(after.printed):
        return []
    if not any(isinstance(o, Cover) and paths.at_or_under(cwd, o.path) for o in operations):
        return []
    for o in operations:
        granted = isinstance(o, (Bind, Name, Names)) and o.origin.field
        if granted and (paths.at_or_under(cwd, o.path) or paths.at_or_under(o.path, cwd)):
            return []
    here = path_as_entry.quoted(path_as_entry.entry(cwd, boundary))
    line = f"no grant lets the task read its own directory {path_as_entry.shown(cwd)}: allow.read = [{here}]"
    return [Hint(line=line, class_="grant")]
