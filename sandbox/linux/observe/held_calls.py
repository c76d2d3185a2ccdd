"""EFFECT: answers for held directories at each call, and knows what in them is of the task's own making.

What is laid over in such a directory holds by itself until the host replaces it, and what comes to be there later is
laid over by nothing. A call on either is refused here. That is the weaker wall of the two: the caller may change its
arguments once they were read.
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

    from sandbox.planning.plan import Plan

_GRANTED = frozenset({Reach.NAME, Reach.WRITE})
_MAKES_NEW = frozenset({Intent.CREATE, Intent.MKDIR, Intent.LINK})
#: What may become a directory that leads to a granted name.
_ON_THE_WAY = frozenset({Intent.MKDIR, Intent.RENAME})
_LINKS = frozenset({"link", "linkat"})
#: Names being removed, each kept apart by a descriptor from what somebody else may make there afterwards.
_LEAVING = 128


class HeldDirectories:
    """The held directories of one run."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._made: set[str] = set()
        self._leaving: dict[str, int] = {}

    def served(self, path: str) -> bool:
        """Whether anything may be done with a path: it is granted, or the task made it."""
        return self._plan.reach(path) is Reach.NAME or self._ours(path)

    def answer(self, call: str, intent: Intent, path: str) -> int:
        """The errno to refuse a call with, 0 to let it go on.

        Args:
            call: its name.
            intent: what it means to do with the path.
            path: with no link left.
        """
        if not self._plan.holder(path):
            return 0
        reach = self._plan.reach(path)
        if reach in _GRANTED or self._ours(path):
            return 0
        exists, changes = os.path.lexists(path), intent in WRITE_INTENTS
        if reach is Reach.READ:
            if call in _LINKS and intent is Intent.PROBE:
                # a second name of it, made by the task, could be written through
                return errno.EXDEV
            return errno.EROFS if changes and not (exists and intent in _MAKES_NEW) else 0
        if exists:
            return errno.EROFS if changes else errno.ENOENT
        made = self._plan.beside(path) or (intent in _ON_THE_WAY and self._plan.leads(path))
        return errno.EROFS if changes and not made else 0

    def note(self, named: Iterable[tuple[Intent, str]]) -> None:
        """Remember what a call that goes on makes, and what it takes away."""
        for intent, path in named:
            if intent is Intent.REMOVE:
                self._leave(path)
            elif intent in _MAKES_NEW or intent is Intent.RENAME:
                if not self._plan.holder(path) or self._plan.reach(path) is not Reach.HIDDEN or self._ours(path):
                    continue
                self._made.add(path)

    def leftovers(self) -> tuple[str, ...]:
        """What the task made in held directories and left there, no grant covering it; call when it is gone.

        A directory that leads to a granted name stays, and one that only would have is removed.
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
        """Something is about to be removed, or renamed: whether it was shows only at the next look."""
        if path not in self._made or path in self._leaving:
            return
        if len(self._leaving) >= _LEAVING:
            self._still(next(iter(self._leaving)))
        try:
            # while it is open, nothing that is made there later can be taken for it
            self._leaving[path] = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            self._made.discard(path)

    def _still(self, path: str) -> bool:
        """Whether what the task made at a path is what stands there, or nothing does that somebody else made."""
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
