"""Notes on credential stores, which are named and never suggested. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.judge.attempt_denials import Denied
    from sandbox.judge.boundary import Boundary


def counted_credentials(counted: Iterable[Denied], boundary: Boundary) -> list[Hint]:
    """A note on credential stores that violations lie in."""
    return credentials(a.path for a, _ in counted if boundary.store(a.path) is not None)


def credentials(found: Iterable[str]) -> list[Hint]:
    """A note on paths in credential stores, which are named and never suggested."""
    named = list(dict.fromkeys(found))
    if not named:
        return []
    note = f"{path_as_entry.listed(named)} holds credentials, so no grant is suggested:"
    return [Hint(line=f"{note} pass what the task needs in a variable, by exec.env.passThrough", class_="credential")]
