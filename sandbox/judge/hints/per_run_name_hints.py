"""Notes on files that have another name in each run, which no grant of the name fits. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import globs, paths
from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry
from sandbox.judge.remedies.remedy_class import classify, makes_anew

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.judge.attempt_denials import Denied
    from sandbox.judge.boundary import Boundary


def made_anew(counted: Iterable[Denied], boundary: Boundary) -> list[Hint]:
    """Notes on files that have another name in each run, which a grant of the name would not fit."""
    notes: dict[str, Hint] = {}
    for access, kind in counted:
        if kind != "write" or classify(access, kind, boundary) != "ignore":
            continue
        grant = paths.join(globs.escape(paths.parent(access.path)), makes_anew(access, boundary) or "")
        spelled = path_as_entry.quoted(path_as_entry.pattern(grant, boundary))
        line = f"{path_as_entry.shown(access.path)} has another name in each run: ignore.write = [{spelled}]"
        line += " if the task does without it, else have it made in $TMPDIR"
        notes.setdefault(grant, Hint(line=line, class_="ignore"))
    return list(notes.values())
