"""Notes beside a failed attempt: never counted, so they may guess."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sandbox import paths
from sandbox.contract import Hint
from sandbox.judge import spelling
from sandbox.judge.fix import writable
from sandbox.planning.ops import Bind, Cover, Name, Names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sandbox.dependencies import Withheld
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.verdict import Denied

#: Paths named in one note; the rest are a count.
NAMED = 5


def hints(
    counted: Sequence[Denied],
    outside: Sequence[Denied],
    walled: Sequence[Denied],
    boundary: Boundary,
    *,
    cwd: str,
) -> tuple[Hint, ...]:
    """Notes for an attempt that failed, in the order they help."""
    notes = [
        *_withheld(counted, boundary),
        *_not_installed(counted, walled, boundary),
        *_hidden(outside, boundary),
        *_refused(outside, boundary),
        *_walls(walled, boundary),
    ]
    if not counted and not _readable(cwd, boundary):
        here = _quoted(spelling.entry(cwd, boundary))
        notes.append(f"no grant lets the task read its own directory {spelling.shown(cwd)}: allow.read = [{here}]")
    return tuple(Hint(line=boundary.mask(note)) for note in notes)


def _hidden(outside: Iterable[Denied], boundary: Boundary) -> list[str]:
    found = dict.fromkeys(
        a.path for a, kind in outside if kind == "read" and a.exists and boundary.store(a.path) is None
    )
    if not found:
        return []
    remedy = _remedy("read", found, boundary, directory=False)
    return [f"outside the project, the task looked for {_list(found)}{remedy}"]


def _refused(outside: Iterable[Denied], boundary: Boundary) -> list[str]:
    writes = {
        a.path: writable(a, boundary) for a, kind in outside if kind == "write" and boundary.store(a.path) is None
    }
    if not writes:
        return []
    remedy = _remedy("write", writes.values(), boundary, directory=True)
    return [f"outside the project, writing to {_list(writes)} was refused{remedy}"]


def _remedy(field: str, found: Iterable[str], boundary: Boundary, *, directory: bool) -> str:
    path = next((path for path in found if spelling.writable_down(path)), None)
    if path is None:
        return ""
    grant = _quoted(spelling.entry(path, boundary, directory=directory))
    return f": allow.{field} = [{grant}] opens {spelling.shown(path)}"


def _walls(walled: Iterable[Denied], boundary: Boundary) -> list[str]:
    met = {wall.path: wall.reason for a, _ in walled if (wall := boundary.wall(a.path)) is not None}
    return [
        f"{spelling.shown(path)} is walled off ({reason}):"
        f" allow.read = [{_quoted(spelling.entry(path, boundary))}] opens it"
        for path, reason in met.items()
    ]


def _withheld(counted: Iterable[Denied], boundary: Boundary) -> list[str]:
    """One note for each withheld package a violation lies in: where it is linked, and what would make the key right."""
    paths_met = [access.path for access, _ in counted]
    return [
        _unkeyed(package, boundary)
        for package in boundary.packages
        if any(paths.at_or_under(path, package.dir) for path in paths_met)
    ]


def _not_installed(counted: Iterable[Denied], walled: Iterable[Denied], boundary: Boundary) -> list[str]:
    """One note for the withheld packages whose sources an interpreter found missing when it started."""
    told = [access.path for access, _ in counted]
    missing = [access.path for access, _ in walled if access.path in boundary.asked]
    found = [
        package
        for package in boundary.packages
        if any(paths.at_or_under(path, package.dir) for path in missing)
        and not any(paths.at_or_under(path, package.dir) for path in told)
    ]
    if not found:
        return []
    names = _list(dict.fromkeys(package.name for package in found))
    unkeyed = _unkeyed(found[0], boundary)
    return [f"not importable, since the cache key of the task does not answer for it: {names}; {unkeyed}"]


def _unkeyed(package: Withheld, boundary: Boundary) -> str:
    where = spelling.shown(package.target)
    note = f"{where} is linked as {spelling.shown(package.name)} by {spelling.shown(package.link)}, and the cache key"
    note += " of the task answers for no task of it: "
    if package.project:
        note += f"add a task of {where} that has a cache to dependsOn, or give "
    else:
        note += "give "
    note += f"allow.read = [{_quoted(spelling.entry(package.dir, boundary, directory=True))}]"
    if paths.under(package.dir, boundary.workspace):
        note += f" and cache.inputs.workspaceFiles = [{_quoted(spelling.from_root(package.dir, boundary) + '/**')}]"
    return note


def _readable(cwd: str, boundary: Boundary) -> bool:
    """Whether a grant of the task's own covers its directory or leads into it."""
    operations = boundary.plan.operations
    if not any(isinstance(o, Cover) and paths.at_or_under(cwd, o.path) for o in operations):
        return True
    return any(
        isinstance(o, (Bind, Name, Names))
        and o.origin.field
        and (paths.at_or_under(cwd, o.path) or paths.at_or_under(o.path, cwd))
        for o in operations
    )


def _list(found: Iterable[str]) -> str:
    every = list(found)
    more = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return ", ".join(spelling.shown(path) for path in every[:NAMED]) + more


def _quoted(entry: str) -> str:
    """A string of the config's language; TOML's basic strings take JSON's escapes."""
    return json.dumps(entry, ensure_ascii=False).replace("\x7f", "\\u007f")
