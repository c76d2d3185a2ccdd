"""The rules for whether one access was a denial, and of which kind; they know nothing of who is told. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sandbox.contract.config import Reach
from sandbox.contract.intents import WRITE_INTENTS, Intent
from sandbox.planning.operations import Seal

if TYPE_CHECKING:
    from sandbox.contract.results import Access
    from sandbox.judge.boundary import Boundary

Denial = Literal["read", "write"]

_GRANTED = frozenset({Reach.WRITE, Reach.NAME})

#: Intents that need an existing file: for a missing path the answer is the host's own ENOENT.
_NEEDS_TARGET = frozenset({Intent.WRITE, Intent.REMOVE, Intent.ATTRIBUTES, Intent.TIMES, Intent.EXEC, Intent.PROBE})

#: The answers of the sandbox for a path it does not show or does not let be written. Any other answer is the host's.
_REFUSALS = frozenset({"", "ENOENT", "EACCES", "EPERM", "EROFS", "EBUSY", "EXDEV"})

#: Answers that are given only where there is something, so that they count even if the host has no such path by now.
_CERTAIN = frozenset({"EACCES", "EPERM"})

#: Intents that make something: for a name that is visible the answer is the host's own EEXIST.
_MAKES_NEW = frozenset({Intent.CREATE, Intent.MKDIR, Intent.LINK})


def denied(access: Access, reach: Reach) -> Denial | None:
    """The kind of refusal an access met; `None` when the sandbox answered as the host would have.

    A rename is judged on each of its names, the one it takes away as an `Intent.REMOVE`. So is a hard link, whose
    source is an `Intent.PROBE`.
    """
    intent = access.intent
    if intent is Intent.CONNECT or not access.path or access.errno not in _REFUSALS:
        return None
    if intent in _NEEDS_TARGET and not access.exists and access.errno not in _CERTAIN:
        return None
    if intent not in WRITE_INTENTS:
        return "read" if reach is Reach.HIDDEN else None
    if reach in _GRANTED:
        return None
    if reach is Reach.READ and (intent is Intent.TIMES or (intent in _MAKES_NEW and access.exists)):
        return None
    return "write"


def answer(access: Access, kind: Denial, boundary: Boundary) -> str:
    """The errno of a denial: as the observer knows it, else as such a denial is answered."""
    if access.errno:
        return access.errno
    if any(isinstance(o, Seal) and o.path == access.path for o in boundary.plan.operations):
        return "EACCES"
    hidden = boundary.plan.reach(access.path) is Reach.HIDDEN
    if kind == "read" or (hidden and access.intent in _NEEDS_TARGET):
        return "ENOENT"
    return "EROFS"
