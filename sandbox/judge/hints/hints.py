"""Notes beside a failed attempt: never counted, so they may guess."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from sandbox.judge.hints import machine_hints as notes_machine
from sandbox.judge.hints import output_hints as notes_output
from sandbox.judge.hints import outside_hints as notes_outside
from sandbox.judge.hints import package_hints as notes_packages
from sandbox.judge.hints import project_hints as notes_inside

if TYPE_CHECKING:
    from sandbox.contract.results import Hint
    from sandbox.judge.aftermath import Aftermath
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.judge import Collected


def hints(seen: Collected, boundary: Boundary, after: Aftermath) -> tuple[Hint, ...]:
    """Notes for an attempt that failed, in the order they help."""
    notes = (
        *notes_packages.withheld(seen.counted, boundary),
        *notes_packages.not_installed(seen.counted, seen.walled, boundary),
        *notes_inside.credentials(seen.counted, boundary),
        *notes_inside.made_upstream((*seen.counted, *seen.outside), boundary),
        *notes_inside.made_anew(seen.counted, boundary),
        *notes_inside.misrooted((*seen.counted, *seen.outside), boundary),
        *notes_outside.interpreter((*seen.outside, *seen.looked), boundary),
        *notes_outside.hidden(seen.outside, boundary),
        *notes_outside.refused(seen.outside, boundary),
        *notes_inside.removed(seen.removed, boundary),
        *notes_output.repository(boundary, after),
        *notes_inside.walls(seen.walled, boundary, after),
        *notes_output.unreachable(boundary, after),
        *notes_output.said_missing(seen, boundary, after),
        *notes_output.across(after),
        *notes_machine.exhausted(after),
    )
    if not seen.counted and not seen.connections and not after.explained:
        notes = (*notes, *notes_inside.unreadable(after.cwd, boundary))
    return tuple(dataclasses.replace(note, line=boundary.mask(note.line)) for note in dict.fromkeys(notes))
