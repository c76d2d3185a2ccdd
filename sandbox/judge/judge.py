"""The judge of one attempt: accesses in, one at a time, violations out. Each distinct call is judged once. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.contract.config import Ignore, Reach
from sandbox.contract.intents import Intent
from sandbox.contract.results import Access, Violation
from sandbox.judge.attempt_denials import AttemptDenials, Denied
from sandbox.judge.beside_failure import beside_failure
from sandbox.judge.boundary import never_counts
from sandbox.judge.fix import fix
from sandbox.judge.hints.all_hints import hints
from sandbox.judge.ignore_lists import IgnoreLists
from sandbox.judge.is_it_a_denial import Denial, answer, denied
from sandbox.judge.made_beside_names import MadeBesideNames
from sandbox.judge.network_denials import NetworkDenials
from sandbox.judge.path_as_entry import shown
from sandbox.judge.remedies.remedy_class import classify
from sandbox.judge.which_denials_count import WhichDenialsCount
from sandbox.planning.operations import Bind, Empty
from sandbox.request.protected_names import remedy

if TYPE_CHECKING:
    from sandbox.contract.results import Fix, Hint
    from sandbox.judge.beside_failure import BesideFailure
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.failure_facts import Aftermath


class Judge:
    """The judge of one attempt's accesses.

    Attributes:
        seen: the denials and looks met so far.
        silence: the lists of denials that nobody wants to hear of.
    """

    def __init__(self, boundary: Boundary, *, ignore: Ignore | None = None) -> None:
        self._boundary = boundary
        self.silence = IgnoreLists(ignore or Ignore(), boundary)
        self._connections = NetworkDenials(boundary, self.silence)
        self._judged: set[tuple[str, Intent, str, bool]] = set()
        self._reported: set[tuple[str, Denial, str]] = set()
        self._left: list[str] = []
        self._mounted = frozenset(
            o.path for o in boundary.plan.operations if isinstance(o, Bind) and o.writable and o.directory
        )
        self._emptied = frozenset(o.path for o in boundary.plan.operations if isinstance(o, Empty))
        self.seen = AttemptDenials()
        self._beside = MadeBesideNames(boundary.plan)
        self._which = WhichDenialsCount(boundary, self.silence, self._beside, self.seen)

    @property
    def counted(self) -> list[Denied]:
        """The denials that became violations, in the order they came."""
        return self.seen.counted

    def take(self, access: Access) -> Violation | None:
        """The violation an access is, `None` when it is none or was reported before."""
        if access.intent is Intent.CONNECT:
            refused = self._connections.take(access)
            self.seen.connections += (refused,) if refused is not None else ()
            return refused
        self._beside.note_source(access)
        # The intent of a call is part of what makes the call distinct: an innocent open must not excuse the next one.
        call = (access.operation, access.intent, access.path, access.exists)
        if call in self._judged:
            return None
        self._judged.add(call)
        boundary = self._boundary
        if not access.path or never_counts(access.path, boundary):
            return None
        if access.intent is Intent.REMOVE and access.path in self._mounted:
            self.seen.removed.append(access.path)
        kind = denied(access, self._reach(access))
        # A call that the observer itself refused counts, whatever the mounts would have answered.
        if access.refused or (kind == "write" and boundary.executed(access.path)):
            found = Denied(access, "write")
            counts = self._which.counts_wherever(found)
        elif kind is None:
            return None
        else:
            found = Denied(access, kind)
            counts = self._which.counts(found)
        return self._reported_once(found) if counts else None

    def _reported_once(self, found: Denied) -> Violation | None:
        """The violation a denial is, `None` when the same one was reported before."""
        access, kind = found
        report = (access.operation, kind, access.path)
        if report in self._reported:
            return None
        self._reported.add(report)
        self.seen.counted.append(found)
        return self._violation(access, kind)

    def _reach(self, access: Access) -> Reach:
        """The most the task can do with an access's path, or could if something were there."""
        plan = self._boundary.plan
        if access.intent is Intent.OPEN and access.path in self._emptied:
            return Reach.HIDDEN  # who opens a directory wants what is in it, and is shown nothing
        found = plan.reach(access.path)
        missing = found is Reach.HIDDEN and not access.exists and plan.could_be_read(access.path)
        return Reach.READ if missing else found

    def left(self, path: str, *, fate: str = "went with the run") -> Violation | None:
        """The violation of a file the task left beside a granted name; `None` when nobody asks for it."""
        boundary = self._boundary
        if never_counts(path, boundary) or self.silence.covers("write", path):
            return None
        access = Access(pid=0, operation="create", intent=Intent.CREATE, asked=path, path=path, exists=False)
        self.seen.counted.append(Denied(access, "write"))
        self._left.append(path)
        line = (
            f"{shown(path)} was made beside a granted name, where no write grant covers it, and {fate}:"
            " grant it by name, ignore it, or have it made in $TMPDIR"
        )
        asked, line = boundary.mask(path), boundary.mask(line)
        told = classify(access, "write", boundary)
        return Violation(kind="write", operation="create", target=asked, path=asked, errno="", line=line, class_=told)

    def _violation(self, access: Access, kind: Denial) -> Violation:
        boundary = self._boundary
        errno = answer(access, kind, boundary)
        wall = boundary.wall(access.path) if boundary.plan.reach(access.path) is Reach.HIDDEN else None
        if wall is not None:
            reason = f"is walled off ({wall.reason})"
        elif access.refused or (kind == "write" and boundary.obeyed(access.path)):
            policy = boundary.says_grants(access.path)
            reason = "says what tasks are granted" if policy else "is a name other programs execute"
            advice = remedy(access.path, git_config=boundary.git_config)
            reason += f"; {advice}" if advice else ""
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
            class_=classify(access, kind, boundary),
        )

    def beside(self, after: Aftermath) -> BesideFailure:
        """The denials a failed task is told of besides its violations, by notes and by the fix alike."""
        return beside_failure(self.seen, self._boundary, after)

    def fix(self, *, survived: bool = True, beside: BesideFailure | None = None) -> Fix | None:
        """The fewest entries that would have let every violation pass; `None` when there are none to give.

        Args:
            survived: whether the command itself passed.
            beside: what the notes tell of besides the violations.
        """
        told = fix(self.counted, self._boundary, names=self._left, survived=survived, beside=beside)
        return self._connections.completed(told)

    def hints(self, after: Aftermath, beside: BesideFailure | None = None) -> tuple[Hint, ...]:
        """Notes for an attempt that failed, by its command or by a violation; a pass asks for none."""
        notes = hints(self.seen, self._boundary, after, beside or self.beside(after))
        return (*notes, *self._connections.hints(notes))
