"""Notes on files that have another name in each run, which no grant of the name fits. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry
from sandbox.judge.remedies.one_time_names import makes_anew, no_pattern
from sandbox.judge.remedies.remedy_class import classify, nameable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.judge.attempt_denials import Denied
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.failure_facts import Aftermath


def made_anew(counted: Iterable[Denied], boundary: Boundary, after: Aftermath) -> list[Hint]:
    """Notes on files that have another name in each run, which a grant of the name would not fit."""
    notes: dict[str, Hint] = {}
    for access, kind in counted:
        names = makes_anew(access, boundary) if kind == "write" else None
        if names is None or classify(access, kind, boundary) != "ignore":
            continue
        spelled = path_as_entry.quoted(path_as_entry.pattern(names.pattern, boundary))
        line = f"{path_as_entry.shown(access.path)} has another name in each run: "
        if names.taken:
            why = no_pattern(names, boundary)
            line = f"{path_as_entry.shown(access.path)} {why.reason}: {why.remedy}"
        elif after.survived or not nameable(access.path, boundary):
            line += f"ignore.write = [{spelled}] if the task does without it, else have it made in $TMPDIR"
        else:
            line += f"allow.write = [{spelled}] grants every such name, and in $TMPDIR it needs no grant"
        notes.setdefault(names.pattern, Hint(line=line, class_="ignore"))
    return list(notes.values())
