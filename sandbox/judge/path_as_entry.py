"""The spelling of a path as an entry of a task's file, and in a line for people. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sandbox.base import globs, paths

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.judge.boundary import Boundary

#: The most paths named in one note; the rest are a count.
NAMED = 5


def entry(path: str, boundary: Boundary, *, directory: bool = False) -> str:
    """The shortest grant that names exactly this path, as the project's file would spell it.

    The grant is relative inside the workspace, begins with `~/` under home, and is absolute elsewhere; a directory ends
    in `/`.
    """
    text = _from(path, boundary.workspace, boundary.project, boundary.home, escape=True)
    return f"{text.rstrip('/')}/" if directory else text


def pattern(grant: str, boundary: Boundary) -> str:
    """An absolute pattern, as the project's file would spell it."""
    return _from(grant, *map(globs.escape, (boundary.workspace, boundary.project, boundary.home)))


def from_root(path: str, boundary: Boundary) -> str:
    """A cache input, relative to the workspace root; of a directory, everything in it."""
    return _input(paths.relative(path, boundary.workspace), whole=boundary.directory(path))


def from_project(path: str, boundary: Boundary) -> str:
    """A cache input, relative to the project; of a directory, everything in it."""
    return _input(paths.relative(path, boundary.project), whole=boundary.directory(path))


def _input(relative: str, *, whole: bool) -> str:
    text = globs.escape(relative)
    if whole:
        return "**" if text == "." else f"{_kept(text)}/**"
    return _kept(text)


def _kept(text: str) -> str:
    return f"\\{text}" if text.startswith("!") else text  # an input that starts with ! takes files away


def _from(path: str, workspace: str, project: str, home: str, *, escape: bool = False) -> str:
    said = globs.escape if escape else str
    if paths.at_or_under(path, workspace):
        text = said(_relative(path, project))
        return f"./{text}" if text.startswith(("~", "!")) else text
    return "~/" + said(paths.relative(path, home)) if paths.under(path, home) else said(path)


def _relative(path: str, start: str) -> str:
    target, base = paths.parts(path), paths.parts(start)
    shared = 0
    while shared < min(len(target), len(base)) and target[shared] == base[shared]:
        shared += 1
    return "/".join([".."] * (len(base) - shared) + target[shared:]) or "."


def shown(text: str) -> str:
    """A text on one line: every character a terminal would not print as itself is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def writable_down(path: str) -> bool:
    """Whether a file of text can hold the path at all: one that is no UTF-8 cannot be named in it."""
    return not any("\ud800" <= character <= "\udfff" for character in path)


def quoted(entry_: str) -> str:
    """A string of the config's language; TOML's basic strings take JSON's escapes."""
    return json.dumps(entry_, ensure_ascii=False).replace("\x7f", "\\u007f")


def listed(found: Iterable[str]) -> str:
    """The first few of some texts, and how many more there are."""
    every = list(found)
    more = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return ", ".join(shown(text) for text in every[:NAMED]) + more


def unkeyed(path: str, boundary: Boundary) -> bool:
    """Whether a read of a path belongs into the cache key, which does not hold it yet."""
    return boundary.cached and not boundary.declared.keys(path, directory=boundary.directory(path))


def readable(path: str, boundary: Boundary) -> str:
    """The line that lets a task read a path, and for a cached task the one that has its key answer for it."""
    grant = f"allow.read = [{quoted(entry(path, boundary, directory=boundary.directory(path)))}]"
    if not unkeyed(path, boundary) or not paths.under(path, boundary.workspace):
        return grant
    nested = any(paths.at_or_under(path, other) for other in boundary.nested)
    if paths.under(path, boundary.project) and not nested:
        return f"{grant} with cache.inputs.files = [{quoted(from_project(path, boundary))}]"
    return f"{grant} with cache.inputs.workspaceFiles = [{quoted(from_root(path, boundary))}]"
