"""A walk along a path as the kernel takes it for the caller that spelled it, links and `..` in order. Pure.

Each link is read where the task finds it (`links_as_caller`). The place that is reached holds no link, so that `..`
leads to the directory its spelling says.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_HOPS = 40


class Jump(str):
    """The place that a link of `/proc` leads to: the file itself, whatever a walk to its name would meet (proc(5))."""

    __slots__ = ()


class Walked(NamedTuple):
    """The end of a walk.

    Attributes:
        path: absolute, with no link left.
        passed: the directories that were entered and left again by `..`, each of which the kernel looks up.
    """

    path: str
    passed: tuple[str, ...] = ()


def walk(link: Callable[[str], str | None], path: str, *, base: str = "/", follows: bool) -> Walked:
    """The place that `path` leads to.

    Args:
        link: the text of the link that the caller finds at a place whose parents hold none, or where it jumps to; see
            `TaskTree.link`.
        path: the path as spelled.
        base: the directory a relative path starts from, with no link left.
        follows: whether a link in the last place is followed.
    """
    here, hops = "/" if path.startswith("/") else base, 0
    passed: list[str] = []
    entered = False
    todo = path.split("/")[::-1]
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if entered:
                passed.append(here)
                entered = False
            here = os.path.dirname(here)
            continue
        place = f"{here}/{part}" if here != "/" else f"/{part}"
        # a slash or a dot behind the last name has a link there followed (path_resolution(7))
        text = link(place) if todo or follows else None
        if text is None:
            here, entered = place, True
            continue
        hops += 1
        if hops > _HOPS:  # ELOOP: the call fails
            return Walked(place, tuple(passed))
        if isinstance(text, Jump):
            here, entered = text, True
            continue
        if text.startswith("/"):
            here = "/"
        todo.extend(text.split("/")[::-1])
    return Walked(here, tuple(passed))
