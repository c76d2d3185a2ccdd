"""The files a task makes beside granted names, which are kept apart from the host: no denial while it runs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.config import Reach
from sandbox.contract.intents import WRITE_INTENTS, Intent

if TYPE_CHECKING:
    from sandbox.contract.results import Access
    from sandbox.judge.boundary import Reachable

_LINKS = frozenset({"link", "linkat"})
_MAKES = frozenset({Intent.CREATE, Intent.MKDIR, Intent.LINK, Intent.RENAME})
#: Intents that a directory on the way to names of a pattern allows, whatever becomes of it.
_ON_THE_WAY = frozenset({Intent.PROBE, Intent.MKDIR, Intent.REMOVE, Intent.RENAME})


class MadeBesideNames:
    """The names that one attempt was seen to make beside granted ones."""

    def __init__(self, plan: Reachable) -> None:
        self._plan = plan
        self._staged: set[str] = set()
        self._linked: dict[int, str] = {}

    def note_source(self, access: Access) -> None:
        """Remember the source of a hard link: a link comes as two accesses, its source and its new name."""
        if access.operation in _LINKS and access.intent is Intent.PROBE:
            self._linked[access.pid] = access.path

    def excuses(self, access: Access) -> bool:
        """Whether names granted around a path make an access no denial; a file left there at the end is told then."""
        plan, path = self._plan, access.path
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

    def _can_be_linked(self, source: str) -> bool:
        """Whether a hard link beside granted names can be made of a source, which must not lie in another mount."""
        named = not source or self._plan.reach(source) is Reach.NAME
        return named or any(place in self._staged for place in (source, *paths.parents(source)))
