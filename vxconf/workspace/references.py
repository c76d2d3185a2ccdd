"""Task references and the names near a misspelt one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Unknown(Exception):
    """A task or project nobody has.

    Attributes:
        message: a lowercase clause.
        near: the nearest names, best first.
    """

    def __init__(self, message: str, near: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.near = near

    def __str__(self) -> str:
        """The message and what may have been meant."""
        if not self.near:
            return self.message
        return f"{self.message}; did you mean {' or '.join(self.near)}?"


def split(reference: str) -> tuple[str | None, str]:
    """Project and task of a reference; no project for a bare task name.

    >>> split("apps/shop#build"), split("build")
    (('apps/shop', 'build'), (None, 'build'))
    """
    # a task's name holds no `#`, a directory's may
    project, mark, task = reference.rpartition("#")
    return (project if mark else None), task


def nearest(name: str, known: Iterable[str], *, count: int = 3) -> tuple[str, ...]:
    """At most `count` known names close to `name`, best first."""
    from difflib import get_close_matches

    names = list(dict.fromkeys(known))
    lowered = {known_name.lower(): known_name for known_name in reversed(names)}
    found = get_close_matches(name.lower(), list(lowered), count, 0.6)
    return tuple(lowered[match] for match in found)
