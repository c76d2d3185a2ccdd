"""The rules for which denials count against a task, and which are only kept for notes beside a failure. Pure.

A denial counts in the project and in the directories that are reported as if they were in it. None counts that the
author asks not to hear of, nor a look that tools and interpreters take everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.contract.intents import Intent
from sandbox.judge.boundary import reported

if TYPE_CHECKING:
    from sandbox.contract.results import Access
    from sandbox.judge.attempt_denials import AttemptDenials, Denied
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.ignore_lists import IgnoreLists
    from sandbox.judge.made_beside_names import MadeBesideNames

_OPENS = frozenset({Intent.OPEN, Intent.EXEC})


def looked_past_a_wall(access: Access, boundary: Boundary) -> bool:
    """Whether an access only asked if a walled place is there, as tools do everywhere."""
    return access.intent is Intent.PROBE and boundary.wall(access.path) is not None


class WhichDenialsCount:
    """The decision for each denial of one attempt.

    Args:
        boundary: the boundary of the attempt.
        silence: the lists of denials that nobody wants to hear of.
        beside: the names that the task made beside granted ones.
        seen: takes the denials that do not count and that a note may need.
    """

    def __init__(self, boundary: Boundary, silence: IgnoreLists, beside: MadeBesideNames, seen: AttemptDenials) -> None:
        self._boundary = boundary
        self._silence = silence
        self._beside = beside
        self._seen = seen

    def counts(self, found: Denied) -> bool:
        """Whether a denial that only the mounts answered is a violation; another is kept where a note needs it."""
        access, kind = found
        if self._beside.excuses(access) or self._silence.covers(kind, access.path) or self._only_looked(found):
            return False
        if reported(access.path, self._boundary):
            return True
        self._past(found)
        return False

    def counts_wherever(self, found: Denied) -> bool:
        """Whether a call that the observer refused, or one at a name others execute, is a violation, in any place."""
        return not self._silence.covers("write", found.access.path) and not self._only_looked(found)

    def _only_looked(self, found: Denied) -> bool:
        """Whether an access asked for a walled place, or for one that an interpreter asks for whenever it starts."""
        access, boundary = found.access, self._boundary
        asked = access.intent is Intent.PROBE and access.path in boundary.asked
        if not asked and not looked_past_a_wall(access, boundary):
            return False
        self._seen.walled.append(found)
        return True

    def _past(self, found: Denied) -> None:
        """Keep a denial outside the project for the notes."""
        access, kind = found
        missed = access.intent is Intent.OPEN and not access.exists and self._boundary.declared.maker(access.path)
        if kind == "write" or missed or (access.intent in _OPENS and access.exists):
            self._seen.outside.append(found)
        elif access.exists:
            self._seen.looked.append(found)
