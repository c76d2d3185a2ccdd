"""Notes on walls that the task looked at, as many tools do. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.judge.attempt_denials import Denied
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.failure_facts import Aftermath


def walls(walled: Iterable[Denied], boundary: Boundary, after: Aftermath) -> list[Hint]:
    """Notes on walls the task looked at, as many tools do; git's complaint of one has a note of its own."""
    met = {wall.path: wall.reason for a, _ in walled if (wall := boundary.wall(a.path)) is not None}
    said = "not a git repository" in after.printed
    return [
        Hint(
            line=f"{path_as_entry.shown(path)} is walled off ({reason}):"
            f" allow.read = [{path_as_entry.quoted(path_as_entry.entry(path, boundary))}] opens it",
            class_="grant",
        )
        for path, reason in met.items()
        if not (said and paths.name(path) == ".git")
    ]
