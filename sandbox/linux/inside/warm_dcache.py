"""EFFECT: a few listings of the mask, by which the kernel learns names that it would ask for one by one otherwise."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from sandbox.linux.kernel import kernel_calls
from sandbox.planning.operations import Absent, Cover, Empty, Fresh, Link, Name, Names, Seal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.planning.operations import Operation

# the number of names in a directory from which on a listing is cheaper than a lookup of each; a directory of a mask
# that serves names is opened and closed as well
_WORTH_LISTING, _WORTH_OPENING = 2, 6


def learn(operations: tuple[Operation, ...], shown: int) -> None:
    """List the directories in which several places to mount, or to copy mounts from, are looked up.

    Args:
        operations: the plan, parents before children.
        shown: the mask's mount.
    """
    served = any(isinstance(op, (Name, Names)) for op in operations)
    for directory, names in looked_up(operations).items():
        if len(names) >= (_WORTH_OPENING if served else _WORTH_LISTING):
            with contextlib.suppress(OSError):  # the kernel then asks for each name
                fd = os.open("./" + directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=shown)
                try:
                    kernel_calls.read_names(fd, len(names))
                finally:
                    os.close(fd)


def looked_up(operations: Iterable[Operation]) -> dict[str, set[str]]:
    """The names of the mask that a plan's mounts look up, by directory, parents before children."""
    covered: dict[str, bool] = {"": False}
    found: dict[str, set[str]] = {}
    for op in operations:
        if isinstance(op, Cover):
            covered[op.path.rstrip("/")] = True
        laid = isinstance(op, (Cover, Empty, Seal, Absent))
        # a link lies in no mount's way, and a fresh mount is copied from elsewhere
        if not isinstance(op, (Fresh, Link)) and (laid or _is_covered(op.path, covered)):
            _note(op.path, found)
    return dict(sorted(found.items()))


def _is_covered(path: str, covered: dict[str, bool]) -> bool:
    above = path.rpartition("/")[0]
    asked = []
    while above not in covered:
        asked.append(above)
        above = above.rpartition("/")[0]
    for directory in asked:
        covered[directory] = covered[above]
    return covered[above]


def _note(path: str, found: dict[str, set[str]]) -> None:
    while path not in {"", "/"}:
        path, _, name = path.rpartition("/")
        names = found.setdefault(path or "/", set())
        if name in names:
            return
        names.add(name)
