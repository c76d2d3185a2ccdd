"""The grant for a file that has another name in each run: a pattern of the name, where it opens nothing else. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import globs, paths
from sandbox.contract.intents import Intent
from sandbox.judge import path_as_entry
from sandbox.judge.remedies import per_run_names
from sandbox.judge.remedies.never_granted import NeverGranted

if TYPE_CHECKING:
    from sandbox.contract.results import Access
    from sandbox.judge.boundary import Boundary


class OneTimeName(NamedTuple):
    """The names a file has, one in each run.

    Attributes:
        pattern: of all of them, absolute, in grant syntax.
        taken: a name in the same directory that the pattern matches and that is none of them; empty for none.
    """

    pattern: str
    taken: str = ""


def makes_anew(access: Access, boundary: Boundary) -> OneTimeName | None:
    """The names of a file that each run makes under another one, `None` for a file that stays."""
    if access.exists and access.intent is not Intent.RENAME:
        return None
    found = per_run_names.pattern(paths.name(access.path))
    if found is None or boundary.declared.makes(access.path):
        return None
    directory = paths.parent(access.path)
    matches = globs.matcher((f"/{found}",))
    taken = (name for name in boundary.names(directory) if matches(f"/{name}") and per_run_names.pattern(name) != found)
    return OneTimeName(paths.join(globs.escape(directory), found), next(taken, ""))


def no_pattern(found: OneTimeName, boundary: Boundary) -> NeverGranted:
    """Why no grant is written for a file with another name in each run, whose pattern would open what stays."""
    spelled = path_as_entry.quoted(path_as_entry.pattern(found.pattern, boundary))
    return NeverGranted(
        f"has another name in each run, and {spelled} would open {path_as_entry.shown(found.taken)} as well",
        f"have it made in $TMPDIR, or add allow.write = [{spelled}] by hand",
    )
