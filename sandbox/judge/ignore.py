"""The denials a task's author asks not to hear of: exact names or globs, by kind. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import globs, paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sandbox.contract.config import Ignore
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.denial_kind import Denial


class IgnoredDenials:
    """The `ignore` lists of one task; a list silences its own kind alone."""

    def __init__(self, ignore: Ignore, boundary: Boundary) -> None:
        self._matches: dict[Denial, Callable[[str], bool]] = {
            "read": globs.matcher(_patterns(ignore.read, boundary)),
            "write": globs.matcher(_patterns(ignore.write, boundary)),
        }

    def covers(self, kind: Denial, path: str) -> bool:
        """Whether a denial of this kind at this canonical path is left out."""
        return self._matches[kind](path)


def _patterns(entries: Iterable[str], boundary: Boundary) -> Iterable[str]:
    for text in entries:
        for grant in globs.expand_braces(text):
            anchored = _anchored(grant, boundary)
            yield anchored
            yield _behind_links(anchored, boundary)


def _anchored(grant: str, boundary: Boundary) -> str:
    if grant == "~" or grant.startswith("~/"):
        full = globs.escape(boundary.home) + grant[1:]
    elif grant.startswith("/"):
        full = grant
    else:
        full = f"{globs.escape(boundary.project)}/{grant}"
    # `.` and `..` among a glob's components mean what they mean in any path.
    return paths.normal(full) + ("/" if full.endswith(("/", "/.", "/..")) else "")


def _behind_links(grant: str, boundary: Boundary) -> str:
    """The same entry for the place its links lead to, since a denial is recorded there."""
    if not globs.has_wildcard(grant):
        target = globs.escape(boundary.canonical(globs.path_of(grant)))
        return f"{target}/" if grant.endswith("/") else target
    components = grant.split("/")
    fixed = next(i for i, c in enumerate(components) if globs.has_wildcard(c))
    base = boundary.canonical(globs.unescape("/".join(components[:fixed])) or "/")
    return "/".join([globs.escape(base).rstrip("/"), *components[fixed:]])
