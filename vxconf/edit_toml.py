"""A TOML text with entries added to one list, which is made where it is missing; in the file's own style. Pure.

tomlkit would write what it did not read: its line ends, its blanks, an inline table where a header was. Here the
text stays as it is, and what is new is laid between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vxconf.edit_lists import grown, written
from vxconf.edit_text import Edit, Uneditable, indentation, line_end, line_start, style_of
from vxconf.places import key_node, toml_key, tree, value_node

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node

    from vxconf.edit_text import Style

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Pair:
    """`key = value`: the whole path of the key, the nodes of its parts, and the value."""

    path: _Path
    parts: tuple[Node, ...]
    key: Node
    value: Node


@dataclass(slots=True)
class _Section:
    """A header and the pairs below it; the first section has none."""

    path: _Path
    node: Node | None
    pairs: list[_Pair] = field(default_factory=list)


def add(text: str, path: _Path, entries: Sequence[str]) -> list[Edit]:
    """The changes that add entries to the list at a path.

    Args:
        text: a file that parses.
        path: keys, from the top of the file.
        entries: at least one.

    Raises:
        Uneditable: something other than a list or a table is in the way.
    """
    root = tree(text, "toml")
    style = style_of(text, "toml", literal=_prefers_literal(root, text))
    sections = list(_sections(root, text))
    for section in sections:
        for pair in section.pairs:
            if path[: len(pair.path)] == pair.path:
                return _into(text, pair, path, entries, style)
    return _laid(text, sections, path, entries, style)


def _into(text: str, pair: _Pair, path: _Path, entries: Sequence[str], style: Style) -> list[Edit]:
    """Into the value of a pair that is the list, or holds it."""
    while pair.path != path:
        if pair.value.type != "inline_table":
            raise Uneditable(f"{'.'.join(pair.path)} is no table")
        inside = [_pair(child, pair.path, text) for child in pair.value.named_children if child.type == "pair"]
        holding = next((one for one in inside if path[: len(one.path)] == one.path), None)
        if holding is None:
            return [_inlined(text, pair, inside, path, written(entries, style))]
        pair = holding
    if pair.value.type != "array":
        raise Uneditable(f"{'.'.join(path)} is no list")
    return grown(text, pair.value, entries, style)


def _inlined(text: str, table: _Pair, inside: list[_Pair], path: _Path, value: str) -> Edit:
    """A new pair at the end of an inline table."""
    depth = len(table.path)
    shared, beside = _most_shared(inside, path, depth)
    if beside is not None:
        said = f"{text[beside.key.start_byte : beside.parts[shared - depth - 1].end_byte]}.{'.'.join(path[shared:])}"
        said += f" = {value}"
    else:
        *around, name = path[depth:]
        said = f"{name} = {value}"
        for key in reversed(around):
            said = f"{key} = {{ {said} }}"
    if not inside:
        return Edit(table.value.start_byte + 1, table.value.end_byte - 1, f" {said} ")
    end = inside[-1].value.end_byte
    return Edit(end, end, f", {said}")


def _laid(text: str, sections: list[_Section], path: _Path, entries: Sequence[str], style: Style) -> list[Edit]:
    """A new pair, or a new header with one, beside what is nearest to it."""
    value = written(entries, style)
    shared, beside = 0, None
    for section in sections:
        depth, pair = _most_shared(section.pairs, path, len(section.path))
        if pair is not None and depth > shared:
            shared, beside = depth, (section, pair)
    opened = max((s for s in sections if path[: len(s.path)] == s.path), key=lambda s: len(s.path))
    headed = max((_shared(s.path, path) for s in sections), default=0)
    if beside is not None and shared > len(opened.path) and shared >= headed:
        section, pair = beside
        first = pair.parts[0].start_byte
        spelled = text[first : pair.parts[shared - len(section.path) - 1].end_byte]
        last = [one for one in section.pairs if one.path[:shared] == path[:shared]][-1]
        return [
            _line(
                text, last.value.end_byte, last.key.start_byte, f"{spelled}.{'.'.join(path[shared:])} = {value}", style
            )
        ]
    below = [s for s in sections if len(s.path) > headed and s.path[:headed] == path[:headed]]
    table_of_tables = len(path) - len(opened.path) > 1 and below and len(opened.path) <= headed
    if opened.node is not None and not (headed > len(opened.path) or table_of_tables):
        after, like = _end_of(opened)
        said = f"{'.'.join(path[len(opened.path) :])} = {value}"
        return [_line(text, after, like, said, style)]
    if headed == 0:
        raise Uneditable(f"there is no table {'.'.join(path[:2])}")
    return [_headed(text, below[-1], path, headed, (value, style))]


def _headed(text: str, last: _Section, path: _Path, shared: int, said: tuple[str, Style]) -> Edit:
    """A new header with one pair, behind the last section of the same table."""
    value, style = said
    assert last.node is not None  # noqa: S101  only the first section has no header, and its path is empty
    name = key_node(last.node)
    assert name is not None  # noqa: S101  a header has a name
    parts = _parts(name)
    spelled = text[parts[0].start_byte : parts[shared - 1].end_byte]
    *around, key = path[shared:]
    indent = indentation(text, last.node.start_byte)
    header = f"{indent}[{'.'.join((spelled, *around))}]"
    inner = indentation(text, last.pairs[-1].key.start_byte) if last.pairs else indent
    start = line_start(text, last.node.start_byte)
    before = text[:start].rstrip(" \t")
    apart = style.newline if start and (before.endswith(("\n\n", "\n\r\n")) or not before.strip()) else ""
    apart = style.newline if not start else apart
    point = line_end(text, _end_of(last)[0])
    return Edit(point, point, f"{style.newline}{apart}{header}{style.newline}{inner}{key} = {value}")


def _line(text: str, after: int, like: int, said: str, style: Style) -> Edit:
    """A new line behind the one that ends at `after`, indented as the one at `like`."""
    point = line_end(text, after)
    return Edit(point, point, f"{style.newline}{indentation(text, like)}{said}")


def _end_of(section: _Section) -> tuple[int, int]:
    """Where the last pair of a section ends, or its header, and where that begins."""
    if section.pairs:
        last = section.pairs[-1]
        return last.value.end_byte, last.key.start_byte
    assert section.node is not None  # noqa: S101  the first section is only taken with a pair in it
    name = key_node(section.node)
    return (name.end_byte if name is not None else section.node.start_byte), section.node.start_byte


def _most_shared(pairs: list[_Pair], path: _Path, depth: int) -> tuple[int, _Pair | None]:
    """Of pairs in a table `depth` keys deep, the one whose dotted key leads furthest along a path."""
    found = max(pairs, key=lambda pair: _shared(pair.path, path), default=None)
    if found is None or _shared(found.path, path) <= depth:
        return 0, None
    return _shared(found.path, path), found


def _shared(one: _Path, other: _Path) -> int:
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def _sections(root: Node, text: str) -> Iterator[_Section]:
    first = _Section((), None)
    for node in root.named_children:
        if node.type == "pair":
            first.pairs.append(_pair(node, (), text))
    yield first
    for node in root.named_children:
        if node.type != "table":
            continue
        name = key_node(node)
        if name is None:
            continue
        path = tuple(_spelled(part, text) for part in _parts(name))
        section = _Section(path, node)
        section.pairs = [_pair(child, path, text) for child in node.named_children if child.type == "pair"]
        yield section


def _pair(node: Node, table: _Path, text: str) -> _Pair:
    key, value = key_node(node), value_node(node)
    if key is None or value is None:
        raise Uneditable("the file cannot be read where a list is to be")
    parts = _parts(key)
    return _Pair((*table, *(_spelled(part, text) for part in parts)), parts, key, value)


def _parts(name: Node) -> tuple[Node, ...]:
    found, pending = [], [name]
    while pending:
        node = pending.pop()
        if node.type == "dotted_key":
            pending.extend(reversed(node.named_children))
        else:
            found.append(node)
    return tuple(found)


def _spelled(part: Node, text: str) -> str:
    return toml_key(text[part.start_byte : part.end_byte])


def _prefers_literal(root: Node, text: str) -> bool:
    """Whether most of the file's strings stand in single quotes."""
    single = double = 0
    pending = [root]
    while pending:
        node = pending.pop()
        if node.type == "string":
            single += text[node.start_byte] == "'"
            double += text[node.start_byte] == '"'
        pending.extend(node.named_children)
    return single > double
