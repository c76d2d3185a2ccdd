"""The adding of entries to one list of a TOML text, in the file's own style; a missing list is added. Pure.

tomlkit reads the text and writes it again. Its own functions for adding to a table choose a place and a layout by rules
that differ between its versions, and lose the order where a table is spread over the file. A new list is therefore
parsed from a line that is spelled as the file would spell it, and put into the body of a table beside the nearest pair.
Lists grow line by line. The caller parses the result again and compares it with the expected data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

import tomlkit
from tomlkit.items import AbstractTable, AoT, Array, Comment, InlineTable, String, Table, Whitespace

from vxconf.edit.text_edits import Uneditable, style_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tomlkit.container import Container
    from tomlkit.items import Item, Key

    from vxconf.edit.text_edits import Style

    _Body: TypeAlias = list[tuple[Key | None, Item]]

_Path = tuple[str, ...]
#: The text behind a list's last entry: comments, one comma, the bracket.
_REST = re.compile(r"(?:\s|#[^\n]*\n)*(?P<comma>,?)(?:\s|#[^\n]*\n)*\]")
_REMARK = re.compile(r"^([ \t]*)#", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A pair `key = value`, whose dotted key may have several parts; `index` is its place in the body."""

    keys: tuple[Key, ...]
    value: Item
    index: int

    @property
    def path(self) -> _Path:
        return _named(self.keys)

    @property
    def indent(self) -> str:
        return self.value.trivia.indent


@dataclass(slots=True, eq=False)
class _Section:
    """A header with the pairs below it, up to the next header; the first section has no header."""

    keys: tuple[Key, ...]
    table: Table | None
    body: _Body
    pairs: list[_Pair] = field(init=False)

    def __post_init__(self) -> None:
        self.pairs = list(_pairs(self.body))

    @property
    def path(self) -> _Path:
        return _named(self.keys)

    @property
    def end(self) -> int:
        """The place in the body behind the last pair."""
        return self.pairs[-1].index + 1 if self.pairs else 0

    @property
    def indent(self) -> str:
        return self.table.trivia.indent if self.table is not None else ""

    @property
    def inner(self) -> str:
        return self.pairs[-1].indent if self.pairs else self.indent


def with_entries(text: str, path: _Path, entries: Sequence[str]) -> str:
    """The text with entries added to the list at a path.

    Args:
        text: a TOML text that parses.
        path: the keys of the list, from the top of the file.
        entries: the entries, at least one, unquoted.

    Raises:
        Uneditable: a value on the path is no list and no table, or tomlkit cannot add the entries.
    """
    crlf = text.count("\r\n") == text.count("\n") > 0
    lines = text.replace("\r\n", "\n") if crlf else text
    closed = lines.endswith("\n")
    try:
        lines = _edited(lines if closed else f"{lines}\n", path, entries)
    except Uneditable:
        raise
    except Exception as fault:  # noqa: BLE001  tomlkit raises many kinds over texts that parse
        raise Uneditable(f"{'.'.join(path)} cannot be edited ({fault})") from None
    lines = lines if closed else lines.removesuffix("\n")
    return lines.replace("\n", "\r\n") if crlf else lines


def _edited(text: str, path: _Path, entries: Sequence[str]) -> str:
    document = tomlkit.parse(text)
    sections = list(_sections(document))
    style = style_of(text, "toml", literal=_prefers_literal(document.body))
    pairs = ((section, pair) for section in sections for pair in section.pairs)
    for section, pair in pairs:
        whole = section.path + pair.path
        if path[: len(whole)] == whole:
            _into(pair, path[len(whole) :], entries, style)
            break
    else:
        _add_list(sections, path, entries, style)
    return document.as_string()


def _into(pair: _Pair, rest: _Path, entries: Sequence[str], style: Style) -> None:
    """Add entries to the value of a pair: the list itself, or an inline table that holds it at the end of a path."""
    name, value = ".".join(pair.path), pair.value
    if not rest:
        if not isinstance(value, Array):
            raise Uneditable(f"{name} is no list")
        _grow(value, pair.indent, entries, style)
        return
    if not isinstance(value, InlineTable):
        raise Uneditable(f"{name} is no table")
    inside = list(_pairs(value.value.body))
    holding = next((one for one in inside if rest[: len(one.path)] == one.path), None)
    if holding is not None:
        _into(holding, rest[len(holding.path) :], entries, style)
        return
    shared, beside = _most_shared(inside, rest)
    if beside is not None:
        said = f"{_spelled(beside.keys[:shared])}.{'.'.join(rest[shared:])} = {_written(entries, style)}"
    else:
        said = f"{rest[-1]} = {_written(entries, style)}"
        for key in reversed(rest[:-1]):
            said = f"{key} = {{ {said} }}"
    _put_inside(value, inside, said)


def _put_inside(table: InlineTable, inside: list[_Pair], said: str) -> None:
    """Put a new pair at the end of an inline table."""
    body, new = table.value.body, tomlkit.parse(said).body[0]
    if not inside:
        body[:] = [(None, tomlkit.ws(" ")), new, (None, tomlkit.ws(" "))]
        return
    point = inside[-1].index + 1
    # some versions of tomlkit keep the commas they read, and need one more; others write all commas anew
    commas = any(key is None and "," in item.as_string() for key, item in body)
    body[point:point] = [*([(None, tomlkit.ws(","))] if commas else ()), (None, tomlkit.ws(" ")), new]


def _add_list(sections: list[_Section], path: _Path, entries: Sequence[str], style: Style) -> None:
    """Add a list that is missing: beside the pair, in the table, or under a new header, whichever is nearest to it."""
    value = _written(entries, style)
    opened = max((s for s in sections if path[: len(s.path)] == s.path), key=lambda s: len(s.path))
    headed = max(_shared(s.path, path) for s in sections)
    found = _nearest_pair(sections, path)
    if found is not None and found[0] > len(opened.path) and found[0] >= headed:
        _add_beside(*found, path, value)
    elif opened.table is not None and not _wants_header(sections, opened, path, headed):
        _put_line(opened.body, opened.end, f"{opened.inner}{'.'.join(path[len(opened.path) :])} = {value}")
    else:
        _add_under_header(sections, path, headed, value)


def _nearest_pair(sections: list[_Section], path: _Path) -> tuple[int, _Section, _Pair] | None:
    """The pair whose dotted key leads furthest along a path, its section, and how many parts of the path that is."""
    nearest: tuple[int, _Section, _Pair] | None = None
    for section in sections:
        if path[: len(section.path)] != section.path:
            continue
        depth, pair = _most_shared(section.pairs, path[len(section.path) :])
        shared = len(section.path) + depth
        if pair is not None and (nearest is None or shared > nearest[0]):
            nearest = (shared, section, pair)
    return nearest


def _add_beside(shared: int, section: _Section, pair: _Pair, path: _Path, value: str) -> None:
    """Add a pair with a dotted key behind the last pair of a section whose key begins alike."""
    depth = shared - len(section.path)
    last = [one for one in section.pairs if one.path[:depth] == pair.path[:depth]][-1]
    line = f"{last.indent}{_spelled(pair.keys[:depth])}.{'.'.join(path[shared:])} = {value}"
    _put_line(section.body, last.index + 1, line)


def _below(sections: list[_Section], path: _Path, headed: int) -> list[_Section]:
    """The sections below the deepest table of a path that any header names."""
    return [section for section in sections if len(section.path) > headed and section.path[:headed] == path[:headed]]


def _wants_header(sections: list[_Section], opened: _Section, path: _Path, headed: int) -> bool:
    """Whether the file would spell a path with a header of its own, as it does for the tables beside it."""
    if headed != len(opened.path):
        return headed > len(opened.path)
    return len(path) - len(opened.path) > 1 and bool(_below(sections, path, headed))


def _add_under_header(sections: list[_Section], path: _Path, headed: int, value: str) -> None:
    """Add a header with one pair behind the last section of the nearest table."""
    if headed == 0:
        raise Uneditable(f"there is no table {'.'.join(path[:2])}")
    last = _below(sections, path, headed)[-1]
    header = ".".join((_spelled(last.keys[:headed]), *path[headed:-1]))
    text = f"{last.indent}[{header}]\n{last.inner}{path[-1]} = {value}"
    _put_header(last, text, apart=_apart(sections, last))


def _put_line(body: _Body, point: int, line: str) -> None:
    body.insert(point, tomlkit.parse(f"{line}\n").body[0])


def _put_header(last: _Section, said: str, *, apart: bool) -> None:
    """Put a new header behind the last pair of a section that no other header of its table follows.

    The new table stands in the section's body, so comments in front of the next header stay with that header. tomlkit
    writes its header as it was parsed, with the whole path.
    """
    key, table = tomlkit.parse(f"{said}\n").body[0]
    while isinstance(table, Table) and table.is_super_table():
        key, table = table.value.body[0]
    last.body[last.end : last.end] = [*([(None, tomlkit.ws("\n"))] if apart else ()), (key, table)]


def _apart(sections: list[_Section], last: _Section) -> bool:
    """Whether a blank line separates a section and the comments above it from the one before; the first has one."""
    before = sections[sections.index(last) - 1]
    above = [item for _, item in takewhile(lambda one: not _is_header(*one), before.body)]
    while above and isinstance(above[-1], Comment):
        above.pop()
    return before.table is None or (bool(above) and isinstance(above[-1], Whitespace))


def _grow(array: Array, outer: str, entries: Sequence[str], style: Style) -> None:
    """Add entries at the end of a list, in the list's own style.

    Args:
        array: the list, changed in place.
        outer: the blanks before the list's key.
        entries: the entries, at least one, unquoted.
        style: the style of the file.
    """
    text = array.as_string()
    if not array and "\n" not in text:
        array.clear()
        _add(array, entries[:1], style, indent="", newline=False)
        _add(array, entries[1:], style, indent=" ", newline=False)
    elif not array:
        remark = _REMARK.search(text)
        _add(array, entries, style, indent=remark[1] if remark else outer + style.indent)
    else:
        start, rest = _last(text, array)
        trailing = bool(rest["comma"])
        if "\n" in text[:start] or "\n" in rest[0]:
            line = text[text.rfind("\n", 0, start) + 1 : start]
            blanks = line[: len(line) - len(line.lstrip(" \t"))]
            remark = _REMARK.search(rest[0], rest[0].find("\n") + 1)
            indent = blanks if "\n" in text[:start] else remark[1] if remark else outer + style.indent
            _add(array, entries, style, indent=indent, trailing=trailing)
        else:
            tight = len(array) > 1 and text[start - 1] == ","
            _add(array, entries, style, indent="" if tight else " ", newline=False, trailing=trailing)


def _add(
    array: Array, entries: Sequence[str], style: Style, *, indent: str, newline: bool = True, trailing: bool = False
) -> None:
    for index, entry in enumerate(entries):
        comma = (tomlkit.ws(","),) if trailing or index < len(entries) - 1 else ()
        array.add_line(tomlkit.value(style.quoted(entry)), *comma, indent=indent, add_comma=False, newline=newline)


def _last(text: str, array: Array) -> tuple[int, re.Match[str]]:
    """The offset of a list's last entry in the list's text, and the match of the text behind it."""
    said = array[-1].as_string()
    start = text.find(said)
    while start >= 0:
        # a comment may hold the same text, and an entry follows it
        rest = _REST.fullmatch(text, start + len(said))
        if rest is not None:
            return start, rest
        start = text.find(said, start + 1)
    raise Uneditable("a list is written in a way that entries cannot be added to")


def _written(entries: Sequence[str], style: Style) -> str:
    return f"[{style.comma.join(map(style.quoted, entries))}]"


def _most_shared(pairs: list[_Pair], path: _Path) -> tuple[int, _Pair | None]:
    """How many parts the best of some dotted keys shares with a path, and its pair; no pair when none shares any."""
    found = max(pairs, key=lambda pair: _shared(pair.path, path), default=None)
    if found is None or _shared(found.path, path) == 0:
        return 0, None
    return _shared(found.path, path), found


def _shared(one: _Path, other: _Path) -> int:
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False)))


def _sections(document: Container) -> Iterator[_Section]:
    """The sections of a file in its order, first the one above all headers."""
    yield _Section((), None, document.body)
    yield from _sections_in(document.body, ())


def _sections_in(body: _Body, around: tuple[Key, ...]) -> Iterator[_Section]:
    for key, item in body:
        if key is None or not isinstance(item, Table) or key.is_dotted():
            continue
        keys = (*around, key)
        if not item.is_super_table():
            yield _Section(keys, item, item.value.body)
        yield from _sections_in(item.value.body, keys)


def _is_header(key: Key | None, item: Item) -> bool:
    return isinstance(item, AoT) or (isinstance(item, Table) and key is not None and not key.is_dotted())


def _pairs(body: _Body) -> Iterator[_Pair]:
    for index, (key, item) in enumerate(body):
        if key is not None and not _is_header(key, item):
            yield from (_Pair(keys, value, index) for keys, value in _leaves(key, item))


def _leaves(key: Key, item: Item) -> Iterator[tuple[tuple[Key, ...], Item]]:
    """The keys in their parts and the values below a key; tomlkit reads a dotted key as tables in one another."""
    if not isinstance(item, Table):
        yield (key,), item
        return
    for inner, value in item.value.body:
        if inner is not None:
            yield from (((key, *keys), leaf) for keys, leaf in _leaves(inner, value))


def _named(keys: tuple[Key, ...]) -> _Path:
    return tuple(key.key for key in keys)


def _spelled(keys: tuple[Key, ...]) -> str:
    return ".".join(key.as_string().strip() for key in keys)


def _prefers_literal(body: _Body) -> bool:
    """Whether most of a file's strings are in single quotes."""
    quotes = [item.as_string()[0] for item in _strings(item for _, item in body)]
    return quotes.count("'") > quotes.count('"')


def _strings(items: Iterator[Item]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, String):
            yield item
        elif isinstance(item, AbstractTable):
            yield from _strings(inner for _, inner in item.value.body)
        elif isinstance(item, AoT):
            yield from _strings(inner for table in item.body for _, inner in table.value.body)
        elif isinstance(item, Array):
            yield from _strings(iter(item))
