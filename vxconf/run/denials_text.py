"""The violations of a run as lines for people: by kind, relative, many names of one directory as one line. Pure."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.contract.results import Violation

#: The most names of one directory that have a line each.
NAMED = 6

_NUMBER = re.compile(r"(\d+)")
#: Reasons of nearly every denial, which go without saying.
_PLAIN = frozenset({"is covered by no grant", "is covered by no write grant"})
_KINDS = ("read", "write", "network", "systemInfo", "other")


class _Alike(NamedTuple):
    """The traits that violations share whose names are told together."""

    kind: str
    directory: str
    note: str


def denial_lines(violations: Iterable[Violation], project: str) -> Iterator[str]:
    """A line for each violation, those of reads first; of more than six names in a directory one line for all.

    Args:
        violations: in the order they were met.
        project: the directory that paths are told from.
    """
    every = list(violations)
    for kind in _KINDS:
        groups: dict[_Alike, dict[str, None]] = {}
        for violation in every:
            if violation.kind != kind:
                continue
            if not violation.path or kind not in {"read", "write"}:
                groups[_Alike(kind, "", _without_path(violation))] = {}
                continue
            directory, name = posixpath.split(_relative(violation.path, project))
            alike = _Alike(kind, directory, _note(violation))
            groups.setdefault(alike, {})[name] = None
        for alike, names in groups.items():
            yield from _told(alike, list(names))


def _told(alike: _Alike, names: list[str]) -> Iterator[str]:
    if not names:
        yield alike.note
        return
    if len(names) <= NAMED:
        yield from (f"may not {alike.kind} {posixpath.join(alike.directory, name)}{alike.note}" for name in names)
        return
    ordered = sorted(names, key=_by_number)
    first, last = (posixpath.join(alike.directory, name) for name in (ordered[0], ordered[-1]))
    yield f"may not {alike.kind} {first} … {last}, {len(names)} files{alike.note}"


def _without_path(violation: Violation) -> str:
    """The line of a violation that has no path, a refused connection before all."""
    if violation.kind != "network" or " (" not in violation.line:
        return violation.line
    return f"may not reach {violation.target}{violation.line[violation.line.rfind(' (') :]}"


def _note(violation: Violation) -> str:
    """The end of a line: why, where it is not the usual reason, and what helps, where it is no grant."""
    said = violation.line
    place = f"{violation.path} "
    at = said.find(f", {place}")
    reason = said[at + 2 + len(place) :] if at >= 0 else said.removeprefix(place) if said.startswith(place) else ""
    note = f": {reason}" if reason and reason not in _PLAIN else ""
    return note if violation.class_ == "grant" else f"{note} [{violation.class_}]"


def _relative(path: str, project: str) -> str:
    """A path as seen from the project; far from it the path itself."""
    found = posixpath.relpath(path, project)
    return path if found.startswith("../../../../") or path == "/" else found


def _by_number(name: str) -> tuple[tuple[int, str], ...]:
    """The order of names by the numbers in them: `f2` before `f10`."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in _NUMBER.split(name))
