"""Notes on a path that the command called missing, where the sandbox hides it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry
from sandbox.judge.hints.upstream_output_hints import not_made
from sandbox.judge.remedies.never_granted import never_granted

if TYPE_CHECKING:
    from sandbox.judge.beside_failure import CalledMissing
    from sandbox.judge.boundary import Boundary


def said_missing(missing: CalledMissing | None, boundary: Boundary) -> list[Hint]:
    """A note on a path the command called missing, where the sandbox hides it and nothing else tells of it."""
    if missing is None:
        return []
    if missing.task:
        return [not_made(missing.path, missing.task)]
    path = missing.path
    what = f"the command called {path_as_entry.shown(missing.word)} missing: it exists and is hidden from the task"
    if boundary.store(path) is not None:
        return [Hint(line=f"{what}, for it holds credentials", class_="credential")]
    why = never_granted(path, "read", boundary)
    if why is not None:
        return [Hint(line=f"{what}, and it {why.reason}: {why.remedy}", class_="grant")]
    return [Hint(line=f"{what}; {path_as_entry.readable(path, boundary)} opens it", class_="grant")]
