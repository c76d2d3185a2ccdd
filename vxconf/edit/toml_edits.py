"""A TOML text with entries added to one list, which is made where it is missing; in the file's own style. Pure.

tomlkit reads the text and writes it again. Its own ways of adding to a table choose a place and a layout by rules that
differ between its versions, and lose the order where a table is spread over the file. So what is new is read from a
line spelled as the file would spell it, and laid into the body of the table beside what is nearest; lists grow line by
line. The caller holds the result to what was to come out.
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
#: What may follow a list's last entry.
_REST = re.compile(r"(?:\s|#[^\n]*\n)*(?P<comma>,?)(?:\s|#[^\n]*\n)*\]")
_REMARK = re.compile(r"^([ \t]*)#", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Pair:
    """`key = value`, whose dotted key may have several parts; `index` is where it stands in the body it is in."""

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
    """A header with what is below it up to the next one; the first section has none."""

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
        """Where in the body the last pair is behind one."""
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
        text: a file that parses.
        path: keys, from the top of the file.
        entries: at least one.

    Raises:
        Uneditable: something other than a list or a table is in the way, or tomlkit cannot do it.
    """
    crlf = text.count("\r\n") == text.count("\n") > 0
    lines = text.replace("\r\n", "\n") if crlf else text
    closed = lines.endswith("\n")
    try:
        lines = _edited(lines if closed else f"{lines}\n", path, entries)
    except Uneditable:
        raise
    except Exception as fault:  # noqa: BLE001  whatever another's parser raises over a text that parses
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
        _laid(sections, path, entries, style)
    return document.as_string()


def _into(pair: _Pair, rest: _Path, entries: Sequence[str], style: Style) -> None:
    """Into the value of a pair that is the list, or holds it at the end of a path."""
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
    """A new pair at the end of an inline table."""
    body, new = table.value.body, tomlkit.parse(said).body[0]
    if not inside:
        body[:] = [(None, tomlkit.ws(" ")), new, (None, tomlkit.ws(" "))]
        return
    point = inside[-1].index + 1
    # some versions keep the commas that were read, and then want one; others write them all
    commas = any(key is None and "," in item.as_string() for key, item in body)
    body[point:point] = [*([(None, tomlkit.ws(","))] if commas else ()), (None, tomlkit.ws(" ")), new]


def _laid(sections: list[_Section], path: _Path, entries: Sequence[str], style: Style) -> None:
    """A new pair, or a new header with one, beside what is nearest to it."""
    value = _written(entries, style)
    shared, nearest = 0, None
    for section in sections:
        if path[: len(section.path)] != section.path:
            continue
        depth, pair = _most_shared(section.pairs, path[len(section.path) :])
        if pair is not None and len(section.path) + depth > shared:
            shared, nearest = len(section.path) + depth, (section, pair)
    opened = max((s for s in sections if path[: len(s.path)] == s.path), key=lambda s: len(s.path))
    headed = max(_shared(s.path, path) for s in sections)
    if nearest is not None and shared > len(opened.path) and shared >= headed:
        section, pair = nearest
        depth = shared - len(section.path)
        last = [one for one in section.pairs if one.path[:depth] == pair.path[:depth]][-1]
        said = f"{_spelled(pair.keys[:depth])}.{'.'.join(path[shared:])} = {value}"
        _put_line(section.body, last.index + 1, f"{last.indent}{said}")
        return
    below = [s for s in sections if len(s.path) > headed and s.path[:headed] == path[:headed]]
    table_of_tables = len(path) - len(opened.path) > 1 and below and len(opened.path) <= headed
    if opened.table is not None and not (headed > len(opened.path) or table_of_tables):
        _put_line(opened.body, opened.end, f"{opened.inner}{'.'.join(path[len(opened.path) :])} = {value}")
        return
    if headed == 0:
        raise Uneditable(f"there is no table {'.'.join(path[:2])}")
    last_section = below[-1]
    header = ".".join((_spelled(last_section.keys[:headed]), *path[headed:-1]))
    said = f"{last_section.indent}[{header}]\n{last_section.inner}{path[-1]} = {value}"
    _put_header(last_section, said, apart=_apart(sections, last_section))


def _put_line(body: _Body, point: int, line: str) -> None:
    body.insert(point, tomlkit.parse(f"{line}\n").body[0])


def _put_header(last: _Section, said: str, *, apart: bool) -> None:
    """A new header behind the last pair of a section that no header of its own table follows.

    It stands in that section's body, so what is between there and the next header follows it; its display name, which
    is what the parser gave it, is written whole.
    """
    key, table = tomlkit.parse(f"{said}\n").body[0]
    while isinstance(table, Table) and table.is_super_table():
        key, table = table.value.body[0]
    last.body[last.end : last.end] = [*([(None, tomlkit.ws("\n"))] if apart else ()), (key, table)]


def _apart(sections: list[_Section], last: _Section) -> bool:
    """Whether a blank line stands before a section and the remarks above it; before the first, one would."""
    before = sections[sections.index(last) - 1]
    above = [item for _, item in takewhile(lambda one: not _is_header(*one), before.body)]
    while above and isinstance(above[-1], Comment):
        above.pop()
    return before.table is None or (bool(above) and isinstance(above[-1], Whitespace))


def _grow(array: Array, outer: str, entries: Sequence[str], style: Style) -> None:
    """Add entries at the end of a list, in its own style.

    Args:
        array: changed in place.
        outer: the blanks before the key.
        entries: at least one, unquoted.
        style: the file's.
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
        after = text[rest.start() : rest.end()].split("\n")[0]
        trailing = bool(rest["comma"])
        if "\n" in text[:start] or "#" in after:
            line = text[text.rfind("\n", 0, start) + 1 : start]
            blanks = line[: len(line) - len(line.lstrip(" \t"))]
            indent = blanks if "\n" in text[:start] else outer + style.indent
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
    """Where the last entry of a list begins in its text, and what follows it."""
    said = array[-1].as_string()
    start = text.find(said)
    while start >= 0:
        # a remark may hold the same text, and then an entry follows
        rest = _REST.fullmatch(text, start + len(said))
        if rest is not None:
            return start, rest
        start = text.find(said, start + 1)
    raise Uneditable("a list is written in a way that entries cannot be added to")


def _written(entries: Sequence[str], style: Style) -> str:
    return f"[{style.comma.join(map(style.quoted, entries))}]"


def _most_shared(pairs: list[_Pair], path: _Path) -> tuple[int, _Pair | None]:
    """Of pairs, the one whose dotted key leads furthest along a path, and how far."""
    found = max(pairs, key=lambda pair: _shared(pair.path, path), default=None)
    if found is None or _shared(found.path, path) == 0:
        return 0, None
    return _shared(found.path, path), found


def _shared(one: _Path, other: _Path) -> int:
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False)))


def _sections(document: Container) -> Iterator[_Section]:
    """The headers of a file in its order, each with what is below it; first what is above them all."""
    yield _Section((), None, document.body)
    yield from _below(document.body, ())


def _below(body: _Body, around: tuple[Key, ...]) -> Iterator[_Section]:
    for key, item in body:
        if key is None or not isinstance(item, Table) or key.is_dotted():
            continue
        keys = (*around, key)
        if not item.is_super_table():
            yield _Section(keys, item, item.value.body)
        yield from _below(item.value.body, keys)


def _is_header(key: Key | None, item: Item) -> bool:
    return isinstance(item, AoT) or (isinstance(item, Table) and key is not None and not key.is_dotted())


def _pairs(body: _Body) -> Iterator[_Pair]:
    for index, (key, item) in enumerate(body):
        if key is not None and not _is_header(key, item):
            yield from (_Pair(keys, value, index) for keys, value in _leaves(key, item))


def _leaves(key: Key, item: Item) -> Iterator[tuple[tuple[Key, ...], Item]]:
    """A pair's key in its parts, and its value; a dotted key is read as tables in one another."""
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
    """Whether most of a file's strings stand in single quotes."""
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
