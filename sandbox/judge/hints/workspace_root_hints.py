"""Notes on writes at the workspace root that were meant for the project. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry
from sandbox.judge.remedies.remedy_class import meant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.judge.attempt_denials import Denied
    from sandbox.judge.boundary import Boundary


def misrooted(found: Iterable[Denied], boundary: Boundary) -> list[Hint]:
    """Notes on writes at the workspace root that the project's grants would have taken below the project."""
    for access, kind in found:
        there = meant(access.path, boundary) if kind == "write" else None
        if there is None or boundary.declared.maker(access.path) is not None:
            continue
        line = f"{path_as_entry.shown(access.path)} lies at the workspace root, and the task may write"
        line += f" {path_as_entry.quoted(path_as_entry.entry(there, boundary))} of its project: have it written there"
        return [Hint(line=line, class_="tool-fault")]
    return []
