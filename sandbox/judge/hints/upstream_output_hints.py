"""Notes on files that another task makes: that task is to be run. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry
from sandbox.judge.remedies.remedy_class import classify

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.judge.attempt_denials import Denied
    from sandbox.judge.boundary import Boundary


def made_upstream(found: Iterable[Denied], boundary: Boundary) -> list[Hint]:
    """Notes on files that another task makes: it is to be run, whether they are missing or were to be written."""
    notes: dict[str, Hint] = {}
    for access, kind in found:
        if classify(access, kind, boundary) != "run-upstream":
            continue
        task = boundary.declared.maker(access.path) or ""
        if kind == "read":
            note = not_made(access.path, task)
        else:
            what = f"{path_as_entry.shown(access.path)} is an output of {path_as_entry.shown(task)}"
            note = Hint(line=f"{what}: run that task, which alone writes it", class_="run-upstream")
        notes.setdefault(task, note)
    return list(notes.values())


def not_made(path: str, task: str) -> Hint:
    """A note on a file that another task makes, and has not made."""
    line = f"{path_as_entry.shown(path)} is an output of {path_as_entry.shown(task)}, which has not made it: run it"
    return Hint(line=line, class_="run-upstream")
