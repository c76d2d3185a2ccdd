"""The notes beside a failed attempt, which are never counted, so that they may guess. Pure."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from sandbox.judge.hints import (
    credential_hints,
    exhaustion_hints,
    git_repository_hints,
    linked_package_hints,
    loopback_port_hints,
    missing_path_hints,
    mount_point_hints,
    outside_project_hints,
    per_run_name_hints,
    upstream_output_hints,
    wall_hints,
    working_directory_hints,
    workspace_root_hints,
)

if TYPE_CHECKING:
    from sandbox.contract.results import Hint
    from sandbox.judge.attempt_denials import AttemptDenials
    from sandbox.judge.beside_failure import BesideFailure
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.failure_facts import Aftermath


def hints(seen: AttemptDenials, boundary: Boundary, after: Aftermath, beside: BesideFailure) -> tuple[Hint, ...]:
    """Notes for an attempt that failed, in the order they help."""
    notes = (
        *linked_package_hints.withheld(seen.counted, boundary),
        *linked_package_hints.not_installed(seen.counted, seen.walled, boundary),
        *credential_hints.counted_credentials(seen.counted, boundary),
        *upstream_output_hints.made_upstream((*seen.counted, *seen.outside), boundary),
        *per_run_name_hints.made_anew(seen.counted, boundary, after),
        *workspace_root_hints.misrooted((*seen.counted, *seen.outside), boundary),
        *outside_project_hints.interpreter(beside.programs, boundary),
        *outside_project_hints.hidden(beside.reads, boundary),
        *outside_project_hints.refused(seen.outside, boundary),
        *mount_point_hints.removed(seen.removed, boundary),
        *git_repository_hints.repository(boundary, after),
        *wall_hints.walls(beside.walls, boundary),
        *loopback_port_hints.unreachable(boundary, after),
        *missing_path_hints.said_missing(beside.missing, boundary),
        *mount_point_hints.across(after),
        *exhaustion_hints.exhausted(after),
    )
    if not notes and not seen.counted and not seen.connections and not after.explained:
        notes = (*notes, *working_directory_hints.unreadable(after, boundary))
    return tuple(dataclasses.replace(note, line=boundary.mask(note.line)) for note in dict.fromkeys(notes))
