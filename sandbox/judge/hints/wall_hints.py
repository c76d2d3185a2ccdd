"""Notes on walls that the task looked at, as many tools do. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.judge.boundary import Boundary, Walled


def walls(met: Iterable[Walled], boundary: Boundary) -> list[Hint]:
    """Notes on walls that may be why a command failed."""
    return [
        Hint(
            line=f"{path_as_entry.shown(wall.path)} is walled off ({wall.reason}):"
            f" allow.read = [{path_as_entry.quoted(path_as_entry.entry(wall.path, boundary))}] opens it",
            class_="grant",
        )
        for wall in met
    ]
