"""Anchors: how places of one machine are written down so that another machine finds its own. Pure.

A path or a grant begins with `{workspace}`, `{project}` or `{home}`; outside all three it stays absolute. In text for
people an anchor may stand anywhere, and a brace is written twice.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sandbox.base import globs
from sandbox.wire.envelope import malformed

# A machine's path in a sentence begins where a word does, and ends at a separator or where a word does.
_BEFORE, _AFTER = r"(?<![\w/.~-])", r"(?=/|$|[^\w.-])"
_TOKENS = re.compile(r"\{\{|\}\}|\{(workspace|project|home)\}")


class Anchors(NamedTuple):
    """The places that the anchors stand for on one machine; canonical directories."""

    workspace: str
    project: str
    home: str

    def escaped(self) -> Anchors:
        """The places as grants spell them."""
        return Anchors(*map(globs.escape, self))


def path_out(path: str, places: Anchors) -> str:
    """The path from the innermost place that holds it."""
    for name, place in sorted(zip(Anchors._fields, places, strict=True), key=lambda pair: -len(pair[1])):
        if place and place != "/" and (path == place or path.startswith(place + "/")):
            return "{" + name + "}" + path[len(place) :]
    return path


def path_in(path: str, places: Anchors, field: str) -> str:
    """The path an anchored one stands for here.

    Args:
        path: from `path_out`, of any machine.
        places: of this machine; an anchor whose place is empty is not known.
        field: the key that holds it, for the refusal.

    Raises:
        RequestRefused: it is neither absolute nor begins with a known anchor.
    """
    for name, place in zip(Anchors._fields, places, strict=True):
        anchor = "{" + name + "}"
        if place and (path == anchor or path.startswith(anchor + "/")):
            return place + path[len(anchor) :]
    if not path.startswith("/"):
        raise malformed(field, f'"{path}" of {field} is neither absolute nor begins with a known place')
    return path


def link_out(target: str, places: Anchors) -> str:
    """The text of a link; one that begins with a brace is told from an anchor by `./` before it."""
    return f"./{target}" if target.startswith("{") else path_out(target, places)


def link_in(target: object, places: Anchors) -> str:
    """The text of a link as it is here.

    Raises:
        RequestRefused: it is no such text.
    """
    if not isinstance(target, str):
        raise malformed("given.links", '"given.links" holds something that is no path')
    return path_in(target, places, "given.links") if target.startswith("{") else target


def words_out(text: str, places: Anchors) -> str:
    """Text for people with an anchor wherever a place is named, and every brace written twice."""
    held = {place: name for name, place in places._asdict().items() if place and place != "/"}
    if not held:
        return _doubled(text)
    inner = "|".join(re.escape(place) for place in sorted(held, key=len, reverse=True))
    parts = re.split(f"({_BEFORE}(?:{inner}){_AFTER})", text)
    return "".join("{" + held[part] + "}" if index % 2 else _doubled(part) for index, part in enumerate(parts))


def words_in(text: str, places: Anchors) -> str:
    """Text for people with this machine's places where the anchors are."""
    named: dict[str, str] = places._asdict()

    def meant(found: re.Match[str]) -> str:
        name, token = found.group(1), found.group()
        return named[name] if name else token[0]

    return _TOKENS.sub(meant, text)


def _doubled(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
