"""Notes on a repository that git did not find, because it is hidden. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.config import Reach
from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry
from sandbox.judge.beside_failure import NO_REPOSITORY

if TYPE_CHECKING:
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.failure_facts import Aftermath


def repository(boundary: Boundary, after: Aftermath) -> list[Hint]:
    """A note that git found no repository because it is hidden."""
    if NO_REPOSITORY not in after.printed:
        return []
    above = (paths.join(place, ".git") for place in (after.cwd, *paths.parents(after.cwd)))
    found = next((path for path in above if after.exists(path)), None)
    if found is None or boundary.plan.reach(found) is not Reach.HIDDEN:
        return []
    what = f"git finds no repository, since {path_as_entry.shown(found)} is hidden from the task"
    if paths.under(found, boundary.workspace) and boundary.directory(found):
        grant = path_as_entry.quoted(path_as_entry.entry(found, boundary))
        return [Hint(line=f"{what}: allow.read = [{grant}] opens it", class_="grant")]
    line = f"{what} on purpose: its data lies outside the workspace, where no cache key answers for it"
    return [Hint(line=line, class_="tool-fault")]
