"""How a path is spelled for a task's file, and in a line for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox import globs, paths

if TYPE_CHECKING:
    from sandbox.judge.boundary import Boundary


def entry(path: str, boundary: Boundary, *, directory: bool = False) -> str:
    """The shortest grant that names exactly this path, as the project's file would spell it.

    Relative inside the workspace, `~/` under home, else absolute; a directory ends in `/`.
    """
    if paths.at_or_under(path, boundary.workspace):
        text = globs.escape(_relative(path, boundary.project))
        if text.startswith(("~", "!")):
            text = f"./{text}"
    elif paths.under(path, boundary.home):
        text = "~/" + globs.escape(paths.relative(path, boundary.home))
    else:
        text = globs.escape(path)
    return f"{text.rstrip('/')}/" if directory else text


def from_root(path: str, boundary: Boundary) -> str:
    """A cache input, relative to the workspace root."""
    return _input(paths.relative(path, boundary.workspace))


def from_project(path: str, boundary: Boundary) -> str:
    """A cache input, relative to the project."""
    return _input(paths.relative(path, boundary.project))


def _input(relative: str) -> str:
    text = globs.escape(relative)
    return f"\\{text}" if text.startswith("!") else text  # an input that starts with ! takes files away


def _relative(path: str, start: str) -> str:
    target, base = paths.parts(path), paths.parts(start)
    shared = 0
    while shared < min(len(target), len(base)) and target[shared] == base[shared]:
        shared += 1
    return "/".join([".."] * (len(base) - shared) + target[shared:]) or "."


def shown(text: str) -> str:
    """The text on one line: whatever a terminal would not print as itself is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def writable_down(path: str) -> bool:
    """Whether a file of text can hold the path at all: one that is no UTF-8 cannot be named in it."""
    return not any("\ud800" <= character <= "\udfff" for character in path)
