"""The pattern for many files of one directory whose names differ in a number, where it opens nothing else. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import globs, paths

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.judge.boundary import Boundary

#: The number of such files from which on a pattern is suggested in place of each.
MANY = 7

_NUMBER = re.compile(r"\d+")


class Numbered(NamedTuple):
    """Paths, parted into patterns and those that keep an entry of their own.

    Attributes:
        patterns: absolute, in grant syntax.
        single: the paths no pattern stands for, in their order.
    """

    patterns: tuple[str, ...]
    single: tuple[str, ...]


def numbered(found: Iterable[str], boundary: Boundary) -> Numbered:
    """The patterns for files that differ in a number, and the paths that are no such files."""
    every = list(found)
    groups: dict[tuple[str, str], list[str]] = {}
    for path in every:
        shape = _NUMBER.sub("*", globs.escape(paths.name(path)))
        if "*" in shape and not boundary.directory(path):
            groups.setdefault((paths.parent(path), shape), []).append(path)
    patterns, taken = [], set[str]()
    for (directory, shape), alike in groups.items():
        matches = globs.matcher((f"/{shape}",))
        others = (name for name in boundary.names(directory) if _NUMBER.sub("*", globs.escape(name)) != shape)
        if len(alike) >= MANY and not any(matches(f"/{name}") for name in others):
            patterns.append(paths.join(globs.escape(directory), shape))
            taken.update(alike)
    return Numbered(tuple(patterns), tuple(path for path in every if path not in taken))
