"""The notes beside a failed attempt, which are never counted, so that they may guess. Pure."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from sandbox.judge.hints import machine_hints, outside_hints, package_hints, printed_text_hints, project_hints

if TYPE_CHECKING:
    from sandbox.contract.results import Hint
    from sandbox.judge.attempt_denials import AttemptDenials
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.failure_facts import Aftermath


def hints(seen: AttemptDenials, boundary: Boundary, after: Aftermath) -> tuple[Hint, ...]:
    """Notes for an attempt that failed, in the order they help."""
    notes = (
        *package_hints.withheld(seen.counted, boundary),
        *package_hints.not_installed(seen.counted, seen.walled, boundary),
        *project_hints.credentials(seen.counted, boundary),
        *project_hints.made_upstream((*seen.counted, *seen.outside), boundary),
        *project_hints.made_anew(seen.counted, boundary),
        *project_hints.misrooted((*seen.counted, *seen.outside), boundary),
        *outside_hints.interpreter((*seen.outside, *seen.looked), boundary),
        *outside_hints.hidden(seen.outside, boundary),
        *outside_hints.refused(seen.outside, boundary),
        *project_hints.removed(seen.removed, boundary),
        *printed_text_hints.repository(boundary, after),
        *project_hints.walls(seen.walled, boundary, after),
        *printed_text_hints.unreachable(boundary, after),
        *printed_text_hints.said_missing(seen, boundary, after),
        *printed_text_hints.across(after),
        *machine_hints.exhausted(after),
    )
    if not seen.counted and not seen.connections and not after.explained:
        notes = (*notes, *project_hints.unreadable(after.cwd, boundary))
    return tuple(dataclasses.replace(note, line=boundary.mask(note.line)) for note in dict.fromkeys(notes))
