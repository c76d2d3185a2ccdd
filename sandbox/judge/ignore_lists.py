"""The `ignore` lists of a task: which list silences which kind of denial, and how its entries are read. Pure.

- `read` and `write`: denied paths, by exact names or globs.
- `systemInfo`: facts of the system, by exact names or globs.
- `network`: refused hosts, by `host:port` with wildcards, and sockets of the host's, by exact paths or globs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from sandbox.base import globs, paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sandbox.contract.config import Ignore
    from sandbox.judge.boundary import Boundary

#: The kinds of denials that a list can silence.
Silenced = Literal["read", "write", "systemInfo", "host", "socket"]


class IgnoreLists:
    """The `ignore` lists of one task; a list silences its own kind alone."""

    def __init__(self, ignore: Ignore, boundary: Boundary) -> None:
        self._matches: dict[Silenced, Callable[[str], bool]] = {
            "read": globs.matcher(_patterns(ignore.read, boundary)),
            "write": globs.matcher(_patterns(ignore.write, boundary)),
            "systemInfo": globs.matcher(ignore.system_info),
            "host": _host_matcher(ignore.network),
            "socket": globs.matcher(_patterns(ignore.network, boundary)),
        }

    def covers(self, kind: Silenced, target: str) -> bool:
        """Whether a denial of this kind is left out: at a canonical path, of a fact's name or of a `host:port`."""
        return self._matches[kind](target)


def _host_matcher(entries: Iterable[str]) -> Callable[[str], bool]:
    patterns = [re.compile(_regex(entry)) for text in entries for entry in globs.expand_braces(text)]
    return lambda target: any(pattern.fullmatch(target.lower()) for pattern in patterns)


def _regex(entry: str) -> str:
    """An entry as a regular expression: `*` and `?` stand for anything, and a bracket is an IPv6 address's."""
    return "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in entry.lower())


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
