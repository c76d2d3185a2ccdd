"""Notes on grants as mount points: they stay, and no rename or hard link leads across them. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox.judge.boundary import Boundary
    from sandbox.judge.failure_facts import Aftermath

_ACROSS = re.compile(r"cross-device link|\bEXDEV\b", re.IGNORECASE)


def removed(found: Sequence[str], boundary: Boundary) -> list[Hint]:
    """Notes on granted directories the task tried to remove or rename, which are mounts and stay."""
    notes = []
    for path in dict.fromkeys(found):
        name, whole = path_as_entry.entry(path, boundary), path_as_entry.entry(path, boundary, directory=True)
        line = f"the granted directory {path_as_entry.quoted(whole)} is mounted: what is in it can be removed, as by"
        line += f" rm -rf {path_as_entry.shown(name)}/*, and it stays"
        if boundary.served:
            line += f"; allow.write = [{path_as_entry.quoted(name)}] grants the name, which may go and be made again"
        notes.append(Hint(line=line, class_="grant"))
    return notes


def across(after: Aftermath) -> list[Hint]:
    """A note on a hard link or a rename from one grant into another."""
    if not any(_ACROSS.search(line) for line in after.last_lines):
        return []
    line = "no hard link or rename leads from one grant into another: copy, or grant one directory that holds both"
    return [Hint(line=line, class_="tool-fault")]
