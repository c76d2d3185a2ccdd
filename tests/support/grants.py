"""Grants as a file spells them, made absolute and canonical for a request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox.base import globs, paths
from sandbox.machine.ask_facts import HostFiles

if TYPE_CHECKING:
    from collections.abc import Iterable

_PATTERN = re.compile(r"(?<!\\)[*?\[\]{}]")


def resolved(grants: Iterable[str], *, project: str, home: str) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The grants in a resolved config's spelling, and the links they lead through."""
    links: dict[str, str] = {}
    found = []
    for grant in grants:
        text = globs.collapse(grant)
        if text == "~" or text.startswith("~/"):
            text = globs.escape(home) + text[1:]
        elif not text.startswith("/"):
            text = f"{globs.escape(project)}/{text}"
        whole = "/" if text.endswith(("/", "/.", "/..")) else ""
        components = paths.normal(text).split("/")
        first = next((i for i, part in enumerate(components) if _PATTERN.search(part)), len(components))
        literal = globs.unescape("/".join(components[:first])) or "/"
        links.update(paths.links_on(literal, HostFiles()))
        base = globs.escape(paths.canonical(literal, HostFiles()))
        found.append("/".join((base.rstrip("/"), *components[first:])) + whole)
    return tuple(found), tuple(links.items())
