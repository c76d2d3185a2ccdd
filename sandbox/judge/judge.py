"""The judge of one attempt: accesses in, one at a time, violations out. Each distinct call is judged once. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.config import Ignore, Reach
from sandbox.contract.intents import WRITE_INTENTS, Intent
from sandbox.contract.results import Access, Violation
from sandbox.judge.attempt_denials import AttemptDenials, Denied
from sandbox.judge.denial_kind import Denial, answer, denied, looked_past_a_wall
from sandbox.judge.fix import fix
from sandbox.judge.hints.all_hints import hints
from sandbox.judge.ignore_lists import IgnoreLists
from sandbox.judge.network_denials import NetworkDenials
from sandbox.judge.path_as_entry import shown
from sandbox.judge.remedy_class import classify
from sandbox.planning.operations import Bind

if TYPE_CHECKING:
    from sandbox.contract.results import Fix, Hint
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.failure_facts import Aftermath

_OPENS = frozenset({Intent.OPEN, Intent.EXEC})
_LINKS = frozenset({"link", "linkat"})
_MAKES = frozenset({Intent.CREATE, Intent.MKDIR, Intent.LINK, Intent.RENAME})
#: Intents that a directory on the way to names of a pattern allows, whatever becomes of it.
_ON_THE_WAY = frozenset({Intent.PROBE, Intent.MKDIR, Intent.REMOVE, Intent.RENAME})


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
        self._staged: set[str] = set()
        self._linked: dict[int, str] = {}
        self._left: list[str] = []
        self._mounted = frozenset(
            o.path for o in boundary.plan.operations if isinstance(o, Bind) and o.writable and o.directory
        )
        self.seen = AttemptDenials()

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
        self._note_source(access)
        # The intent of a call is part of what makes the call distinct: an innocent open must not excuse the next one.
        call = (access.operation, access.intent, access.path, access.exists)
        if call in self._judged:
            return None
        self._judged.add(call)
        boundary = self._boundary
        if not access.path or boundary.unjudged(access.path):
            return None
        if access.intent is Intent.REMOVE and access.path in self._mounted:
            self.seen.removed.append(access.path)
        kind = denied(access, self._reach(access))
        # A call that the observer itself refused counts, whatever the mounts would have answered.
        if access.refused or (kind == "write" and boundary.executed(access.path)):
            found = Denied(access, "write")
            counts = not self.silence.covers("write", access.path) and not self._only_looked(found)
        elif kind is None:
            return None
        else:
            found = Denied(access, kind)
            counts = not self._excused(found)
        return self._reported_once(found) if counts else None

    def _excused(self, found: Denied) -> bool:
        """Whether a denial that only the mounts answered is no violation; it is kept where a note needs it."""
        access, kind = found
        if self._apart(access) or self.silence.covers(kind, access.path) or self._only_looked(found):
            return True
        if self._boundary.reports(access.path):
            return False
        self._past(found)
        return True

    def _only_looked(self, found: Denied) -> bool:
        """Whether an access asked for a walled place, or for one that an interpreter asks for whenever it starts."""
        access, boundary = found.access, self._boundary
        asked = access.intent is Intent.PROBE and access.path in boundary.asked
        if not asked and not looked_past_a_wall(access, boundary):
            return False
        self.seen.walled.append(found)
        return True

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
        found = plan.reach(access.path)
        missing = found is Reach.HIDDEN and not access.exists and plan.could_be_read(access.path)
        return Reach.READ if missing else found

    def _past(self, found: Denied) -> None:
        """Keep a denial outside the project for the notes."""
        access, kind = found
        missed = access.intent is Intent.OPEN and not access.exists and self._boundary.declared.maker(access.path)
        if kind == "write" or missed or (access.intent in _OPENS and access.exists):
            self.seen.outside.append(found)
        elif access.exists and self._boundary.hermetic:
            self.seen.looked.append(found)

    def _apart(self, access: Access) -> bool:
        """Whether names granted around a path make an access no denial; a file left there at the end is told then."""
        plan, path = self._boundary.plan, access.path
        if access.intent in _ON_THE_WAY and plan.leads(path):
            return True
        if access.intent is Intent.WRITE and plan.stages(path):
            return True  # a directory: it is a file without a name that is made in it
        if access.intent not in WRITE_INTENTS or not plan.beside(path):
            return False
        above = paths.parent(path)
        # A name the host has beside a granted one is hidden from the task: to the task an open makes it.
        makes = access.intent in _MAKES or (access.creates and not access.errno)
        if access.intent is Intent.LINK and not self._can_be_linked(self._linked.pop(access.pid, "")):
            return False
        if makes and (plan.reach(above) is not Reach.HIDDEN or plan.leads(above)):
            self._staged.add(path)
            return True
        # A file of the task's own making is apart, and so is one in a directory of its making. A name of the host's
        # that it does not see is not.
        return any(place in self._staged for place in (path, *paths.parents(path)))

    def _note_source(self, access: Access) -> None:
        """Remember the source of a hard link: a link comes as two accesses, its source and its new name."""
        if access.operation in _LINKS and access.intent is Intent.PROBE:
            self._linked[access.pid] = access.path

    def _can_be_linked(self, source: str) -> bool:
        """Whether a hard link beside granted names can be made of a source, which must not lie in another mount."""
        named = not source or self._boundary.plan.reach(source) is Reach.NAME
        return named or any(place in self._staged for place in (source, *paths.parents(source)))

    def left(self, path: str, *, fate: str = "went with the run") -> Violation | None:
        """The violation of a file the task left beside a granted name; `None` when nobody asks for it."""
        boundary = self._boundary
        if boundary.unjudged(path) or self.silence.covers("write", path):
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
            class_=classify(access, kind, boundary),
        )

    def fix(self, *, survived: bool = True) -> Fix | None:
        """The fewest entries that would have let every violation pass; `None` when there are none to give.

        Args:
            survived: whether the command itself passed.
        """
        return self._connections.completed(fix(self.counted, self._boundary, names=self._left, survived=survived))

    def hints(self, after: Aftermath) -> tuple[Hint, ...]:
        """Notes for an attempt that failed, by its command or by a violation; a pass asks for none."""
        notes = hints(self.seen, self._boundary, after)
        return (*notes, *self._connections.hints(notes))
