"""The suggestions for a misspelt name: the known names nearest to it."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The most characters of a name that is compared: the work grows with the product of the lengths.
_LONGEST = 64
#: The most comparisons for one file: 10,000 unknown names among 10,000 must not take minutes.
_BUDGET = 20_000


class NearestNames:
    """Finds the nearest of some names until its budget of comparisons is spent."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = [name for name in names if len(name) <= _LONGEST]
        self._folded = {folded_name(name): name for name in self.names}
        self._left = _BUDGET

    def to(self, wrong: str) -> str | None:
        """The name nearest to a wrong one, `None` when none is near.

        A name that differs in case, `_` and `-` alone is the nearest.
        """
        if len(wrong) > _LONGEST:
            return None
        same = self._folded.get(folded_name(wrong))
        if same is not None and same != wrong:
            return same
        if self._left < len(self.names):
            return None
        self._left -= len(self.names)
        near = get_close_matches(wrong, [n for n in self.names if n != wrong], 1, 0.6)
        return near[0] if near else None


def folded_name(name: str) -> str:
    """The name without the differences people overlook: case, `_` and `-`."""
    return name.casefold().replace("_", "").replace("-", "")


def near_names(name: str, known: Iterable[str], *, count: int = 3) -> tuple[str, ...]:
    """The known names near to `name`, at most `count`, best first."""
    names = list(dict.fromkeys(known))
    lowered = {known_name.lower(): known_name for known_name in reversed(names)}
    found = get_close_matches(name.lower(), list(lowered), count, 0.6)
    return tuple(lowered[match] for match in found)
