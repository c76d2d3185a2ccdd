"""EFFECT: answers to calls on held directories, and a record of what the task made in them.

A held directory is one that leads to granted names and that nothing serves. Mounts over its other names hold until
the host replaces those names, and names that come later have no mount over them. Calls on either are refused here.
This wall is weaker than a mount: a caller may change its arguments after they were read (seccomp_unotify(2)).
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.config import Reach
from sandbox.contract.intents import WRITE_INTENTS, Intent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.planning.path_reach import Plan

_GRANTED = frozenset({Reach.NAME, Reach.WRITE})
_MAKES_NEW = frozenset({Intent.CREATE, Intent.MKDIR, Intent.LINK})
#: Intents that may make a directory which leads to a granted name.
_ON_THE_WAY = frozenset({Intent.MKDIR, Intent.RENAME})
_LINKS = frozenset({"link", "linkat"})
#: The most names under removal that are told apart, each by a descriptor, from what others make there afterwards.
_LEAVING = 128


class HeldDirectories:
    """The held directories of one run."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._made: set[str] = set()
        self._leaving: dict[str, int] = {}

    def served(self, path: str) -> bool:
        """Whether the task may do anything with a path, since it is granted or the task made it."""
        return self._plan.reach(path) is Reach.NAME or self._ours(path)

    def answer(self, call: str, intent: Intent, path: str) -> int:
        """The errno to refuse a call with, 0 to let it go on.

        Args:
            call: the call's name.
            intent: what the call means to do with the path.
            path: the path with no link left.
        """
        if not self._plan.holder(path):
            return 0
        reach = self._plan.reach(path)
        if reach in _GRANTED or self._ours(path):
            return 0
        exists, changes = os.path.lexists(path), intent in WRITE_INTENTS
        if reach is Reach.READ:
            if call in _LINKS and intent is Intent.PROBE:
                # a second name that the task makes could be written through
                return errno.EXDEV
            return errno.EROFS if changes and not (exists and intent in _MAKES_NEW) else 0
        if exists:
            return errno.EROFS if changes else errno.ENOENT
        made = self._plan.beside(path) or (intent in _ON_THE_WAY and self._plan.leads(path))
        return errno.EROFS if changes and not made else 0

    def note(self, named: Iterable[tuple[Intent, str]]) -> None:
        """Remember what a call that goes on makes, and what it removes."""
        for intent, path in named:
            if intent is Intent.REMOVE:
                self._leave(path)
            elif intent in _MAKES_NEW or intent is Intent.RENAME:
                if not self._plan.holder(path) or self._plan.reach(path) is not Reach.HIDDEN or self._ours(path):
                    continue
                self._made.add(path)

    def leftovers(self) -> tuple[str, ...]:
        """The paths that the task made in held directories and left there, and that no grant covers; called at the end.

        A directory that leads to a granted name stays. A directory that would only have led to one is removed.
        """
        tops = [path for path in sorted(self._made) if self._still(path) and os.path.lexists(path)]
        return tuple(left for path in tops for left in self._left(path))

    def _left(self, path: str) -> Iterator[str]:
        if self._plan.granted.served(path):
            return
        if not self._plan.granted.leads(path) or os.path.islink(path) or not os.path.isdir(path):
            yield path
            return
        for name in sorted(os.listdir(path)):
            yield from self._left(paths.join(path, name))
        with contextlib.suppress(OSError):
            os.rmdir(path)

    def _ours(self, path: str) -> bool:
        """Whether the task made what stands at a path, or a directory above it."""
        if not self._made:
            return False
        holder = self._plan.holder(path)
        while holder and path != holder:
            if path in self._made:
                return self._still(path)
            path = paths.parent(path)
        return False

    def _leave(self, path: str) -> None:
        """Note that a name is about to be removed or renamed; whether it was shows at the next look at it."""
        if path not in self._made or path in self._leaving:
            return
        if len(self._leaving) >= _LEAVING:
            self._still(next(iter(self._leaving)))
        try:
            # an inode number is given again only once nothing holds the inode
            self._leaving[path] = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            self._made.discard(path)

    def _still(self, path: str) -> bool:
        """Whether a path still has what the task made there; a path that nobody replaced counts as such."""
        fd = self._leaving.pop(path, -1)
        if fd < 0:
            return True
        try:
            same = os.path.samestat(os.fstat(fd), os.lstat(path))
        except OSError:
            same = False
        finally:
            os.close(fd)
        if not same:
            self._made.discard(path)
        return same
