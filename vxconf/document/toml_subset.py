"""A reader of the TOML that most task files are written in, line by line; `tomllib` reads everything else.

Loading `tomllib` would be a tenth of a check's start, and its parsing most of the time that each of many files takes.
The reader gives the same data as `tomllib`. It refuses every text it is not sure of, faulty ones included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# limits far below those of the format and of this project
_MOST_PARTS = 8
_MOST_DIGITS = 15


def read(text: str) -> dict[str, object] | None:
    """The data of a plain document, `None` when the text is not plain.

    A plain document has headers and keys without quotes, one to a line. Its values are strings without escapes,
    booleans, small whole numbers, `{}`, and lists of double-quoted strings, over several lines too. Its comments have
    lines of their own.
    """
    root: dict[str, object] = {}
    here = root
    headers: set[str] = set()
    closed: set[int] = set()
    lines = iter(text.replace("\r\n", "\n").split("\n"))
    for line in lines:
        said = line.strip(" \t")
        if not said:
            continue
        if not said.isprintable():
            return None
        if said[0] == "#":
            continue
        if said[0] == "[":
            found = None if said in headers else _table(root, said, closed)
            if found is None:
                return None
            headers.add(said)
            here = found
            continue
        key, _, spelled = said.partition("=")
        key, spelled = key.rstrip(" \t"), spelled.lstrip(" \t")
        if not spelled or not _is_bare(key) or key in here:
            return None
        value = _list(lines) if spelled == "[" else _value(spelled)
        if value is None:
            return None
        if isinstance(value, dict):
            closed.add(id(value))
        here[key] = value
    return root


def _table(root: dict[str, object], header: str, closed: set[int]) -> dict[str, object] | None:
    if header[-1] != "]":
        return None
    names = header[1:-1].split(".")
    if len(names) > _MOST_PARTS:
        return None
    here = root
    for name in names:
        if not _is_bare(name):
            return None
        child = here.get(name)
        if child is None:
            child = here[name] = {}
        elif not isinstance(child, dict) or id(child) in closed:
            return None
        here = child
    return here


def _is_bare(key: str) -> bool:
    return key.isascii() and key.replace("-", "").replace("_", "").isalnum()


def _value(spelled: str) -> object:
    """The value of a line, `None` when it is not plain."""
    first, last = spelled[0], spelled[-1]
    if first in "\"'":
        return _string(spelled)
    if first == "[":
        return _strings(spelled[1:-1]) if last == "]" else None
    if spelled in {"true", "false"}:
        return spelled == "true"
    if spelled.isascii() and spelled.isdigit() and len(spelled) <= _MOST_DIGITS and (first != "0" or spelled == "0"):
        return int(spelled)
    return {} if spelled == "{}" else None


def _string(spelled: str) -> str | None:
    """The string in one pair of quotes, `None` when it is not plain."""
    quote, inside = spelled[0], spelled[1:-1]
    if len(spelled) < 2 or spelled[-1] != quote or quote in inside:  # noqa: PLR2004  two quotes
        return None
    return inside if quote == "'" or "\\" not in inside else None


def _list(lines: Iterator[str]) -> list[str] | None:
    """The strings of a list from the lines after its bracket, `None` when they are not plain."""
    inside: list[str] = []
    for line in lines:
        said = line.strip(" \t")
        if said == "]":
            return _strings(" ".join(inside))
        # a string ends on the line it begins on
        if not said.isprintable() or said.count('"') % 2:
            return None
        inside.append(said)
    return None


def _strings(inside: str) -> list[str] | None:
    """The strings between the brackets of a list, `None` when they are not plain."""
    if "\\" in inside:
        return None
    pieces = inside.split('"')
    between = [piece.strip(" \t") for piece in pieces[::2]]
    if len(pieces) % 2 == 0 or between[0] or any(piece != "," for piece in between[1:-1]):
        return None
    return pieces[1::2] if between[-1] in {"", ","} and (len(pieces) > 1 or not between[-1]) else None
