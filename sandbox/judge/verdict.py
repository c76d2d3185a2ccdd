"""The judge of one attempt: accesses in, one at a time, violations out; each distinct call judged once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sandbox.contract import Ignore, Intent, Reach, Violation
from sandbox.judge.fix import fix
from sandbox.judge.hints import hints
from sandbox.judge.ignore import Silence
from sandbox.judge.rules import Denial, answer, denied, looked_past_a_wall
from sandbox.judge.spelling import shown

if TYPE_CHECKING:
    from sandbox.contract import Access, Fix, Hint
    from sandbox.judge.boundary import Boundary

_OPENS = frozenset({Intent.OPEN, Intent.EXEC})


class Denied(NamedTuple):
    """An access the sandbox refused, and of which kind the refusal was."""

    access: Access
    kind: Denial


class Judge:
    """Judges the accesses of one attempt.

    Attributes:
        counted: the denials that became violations, in the order they came.
        outside: denials past the report boundary, which are told only beside a failure.
        walled: looks at walls that exist, told only beside a failure.
    """

    def __init__(self, boundary: Boundary, *, ignore: Ignore | None = None) -> None:
        self._boundary = boundary
        self._silence = Silence(ignore or Ignore(), boundary)
        self._judged: set[tuple[str, Intent, str, bool]] = set()
        self._reported: set[tuple[str, Denial, str]] = set()
        self.counted: list[Denied] = []
        self.outside: list[Denied] = []
        self.walled: list[Denied] = []

    def take(self, access: Access) -> Violation | None:
        """The violation an access is, `None` when it is none or was reported before."""
        # what a call meant is part of what makes it distinct: an innocent open must not excuse the next one
        call = (access.operation, access.intent, access.path, access.exists)
        if call in self._judged:
            return None
        self._judged.add(call)
        boundary = self._boundary
        if not access.path or boundary.unjudged(access.path):
            return None
        kind = denied(access, boundary.plan.reach(access.path))
        # a call the observer itself refused, whatever the mounts would have answered
        executed = access.refused or (kind == "write" and boundary.executed(access.path))
        kind = "write" if executed else kind
        if kind is None or self._silence.covers(kind, access.path):
            return None
        if access.intent is Intent.PROBE and access.path in boundary.asked:
            self.walled.append(Denied(access, kind))
            return None
        if looked_past_a_wall(access, boundary):
            self.walled.append(Denied(access, kind))
            return None
        if not executed and not boundary.reports(access.path):
            if kind == "write" or (access.intent in _OPENS and access.exists):
                self.outside.append(Denied(access, kind))
            return None
        report = (access.operation, kind, access.path)
        if report in self._reported:
            return None
        self._reported.add(report)
        self.counted.append(Denied(access, kind))
        return self._violation(access, kind)

    def _violation(self, access: Access, kind: Denial) -> Violation:
        boundary = self._boundary
        errno = answer(access, kind, boundary)
        wall = boundary.wall(access.path) if boundary.plan.reach(access.path) is Reach.HIDDEN else None
        if wall is not None:
            reason = f"is walled off ({wall.reason})"
        elif access.refused or (kind == "write" and boundary.executed(access.path)):
            reason = "is a name other programs execute"
        else:
            reason = "is covered by no write grant" if kind == "write" else "is covered by no grant"
        line = f"{access.operation} {shown(access.asked)}: {errno}, {shown(access.path)} {reason}"
        return Violation(
            kind=kind,
            operation=access.operation,
            target=boundary.mask(access.asked),
            path=boundary.mask(access.path),
            errno=errno,
            line=boundary.mask(line),
        )

    def fix(self) -> Fix | None:
        """The fewest entries that would have let every violation pass; `None` when there are none to give."""
        return fix(self.counted, self._boundary)

    def hints(self, *, cwd: str) -> tuple[Hint, ...]:
        """Notes for an attempt that failed, by its command or by a violation; a pass asks for none."""
        return hints(self.counted, self.outside, self.walled, self._boundary, cwd=cwd)
