"""The accesses a judge has met in one attempt, kept for the fix and for notes beside a failure. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sandbox.contract.results import Access, Violation
    from sandbox.judge.is_it_a_denial import Denial


class Denied(NamedTuple):
    """An access the sandbox refused, and the kind of its refusal."""

    access: Access
    kind: Denial


@dataclass(slots=True)
class AttemptDenials:
    """The denials and looks of one attempt, each kind in the order they came.

    Attributes:
        counted: the denials that became violations.
        outside: denials past the report boundary.
        walled: looks at walls that exist.
        looked: looks past the report boundary at files that exist.
        removed: granted directories that were to be removed or renamed.
        connections: the violations that are refused connections.
    """

    counted: list[Denied] = field(default_factory=list)
    outside: list[Denied] = field(default_factory=list)
    walled: list[Denied] = field(default_factory=list)
    looked: list[Denied] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    connections: list[Violation] = field(default_factory=list)
