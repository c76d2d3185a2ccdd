"""The exact places of a document's keys and values, from a syntax tree that is built when a place is first asked for.

tree-sitter counts bytes. It is given the text with each character outside ASCII replaced by one ASCII character, so its
bytes are the text's characters. Such characters stand only in strings and comments, so the tree is the same.
"""

from __future__ import annotations

import json
import tomllib
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tree_sitter import Language, Parser

from vxconf.diagnostics.diagnostic import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from vxconf.diagnostics.diagnostic import FieldPath
    from vxconf.document.document import Document, Format


@dataclass(slots=True)
class _Entry:
    """The places of one value, of its key, and of the values in it.

    Attributes:
        key, value: character offsets; the key's are `None` for an element of a list.
        node: the syntax node of a list or table in brackets, until its content is read.
        inside: the values in it, by key or index.
        length: the elements of an array of tables so far.
    """

    key: tuple[int, int] | None
    value: tuple[int, int]
    node: Node | None = None
    inside: dict[str | int, _Entry] = field(default_factory=dict)
    length: int = 0


def locate(document: Document, path: FieldPath, *, key: bool = False) -> Place:
    """The place of the value at `path`, or with `key` of its key.

    A path without a value gets the place of the innermost value around it. A table that TOML opens with a header has
    the header's name as its place.
    """
    index = document.cache.get("places")
    if index is None:
        index = document.cache["places"] = _Index(document.text, document.format)
    return index.place(path, key=key)


def duplicate_at(text: str, offset: int) -> tuple[int, int, str]:
    """The offsets and the text of the TOML key that is defined a second time at about `offset`.

    tomllib reports the end of the second definition for a pair, and its start for a header.
    """
    newest = None
    for node in _walk(tree(text, "toml")):
        if node.type not in {"pair", "table", "table_array_element"}:
            continue
        name = key_node(node)
        if name is None or name.start_byte > offset:
            continue
        newest = name
        value = value_node(node) if node.type == "pair" else None
        if value is not None and value.end_byte == offset:
            break
    if newest is None:
        return offset, min(offset + 1, len(text)), ""
    return newest.start_byte, newest.end_byte, text[newest.start_byte : newest.end_byte]


def json_duplicates(text: str) -> list[tuple[int, int, str]]:
    """The offsets and names of the keys of a JSON text that their object has already."""
    found = []
    for node in _walk(tree(text, "json")):
        if node.type != "object":
            continue
        seen: set[str] = set()
        for pair in node.named_children:
            name = pair.child_by_field_name("key") if pair.type == "pair" else None
            if name is None:
                continue
            key = json_key(text[name.start_byte : name.end_byte])
            if key in seen:
                found.append((name.start_byte, name.end_byte, key))
            seen.add(key)
    return sorted(found)


class _Index:
    def __init__(self, text: str, form: Format) -> None:
        self._text = text
        self._lines = [0]
        while (at := text.find("\n", self._lines[-1])) >= 0:
            self._lines.append(at + 1)
        root = tree(text, form)
        self._root = _Entry(key=None, value=(0, 0))
        if form == "toml":
            self._read_tables(root)
        else:
            value = next((n for n in root.named_children if n.type != "comment"), None)
            if value is not None:
                self._root = _Entry(key=None, value=(value.start_byte, value.end_byte), node=value)

    def place(self, path: FieldPath, *, key: bool) -> Place:
        entry = self._root
        for part in path:
            inside = self._open(entry).get(part)
            if inside is None:
                return self._span(entry.value)
            entry = inside
        return self._span(entry.key if key and entry.key else entry.value)

    def _span(self, span: tuple[int, int]) -> Place:
        return Place(*self._line_column(span[0]), *self._line_column(span[1]))

    def _line_column(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def _open(self, entry: _Entry) -> dict[str | int, _Entry]:
        node, entry.node = entry.node, None
        if node is None:
            return entry.inside
        if node.type == "array":
            values = [n for n in node.named_children if n.type not in {"comment", "ERROR"}]
            entry.inside.update(
                (i, _Entry(key=None, value=(n.start_byte, n.end_byte), node=_container(n)))
                for i, n in enumerate(values)
            )
        elif node.type == "inline_table":
            for pair in node.named_children:
                if pair.type == "pair":
                    self._read_pair(entry, pair)
        elif node.type == "object":
            for pair in node.named_children:
                key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
                if key is not None and value is not None:
                    name = json_key(self._text[key.start_byte : key.end_byte])
                    entry.inside[name] = _Entry(
                        key=(key.start_byte, key.end_byte),
                        value=(value.start_byte, value.end_byte),
                        node=_container(value),
                    )
        return entry.inside

    # --- TOML

    def _read_tables(self, root: Node) -> None:
        for node in root.named_children:
            if node.type == "pair":
                self._read_pair(self._root, node)
            elif node.type in {"table", "table_array_element"}:
                self._read_table(node)

    def _read_table(self, node: Node) -> None:
        name = key_node(node)
        if name is None:
            return
        header = (name.start_byte, name.end_byte)
        parts = list(self._parts(name))
        table = self._root
        for key, span in parts[:-1]:
            table = self._last(self._enter(table, key, span, span))
        key, span = parts[-1]
        if node.type == "table":
            entry = self._enter(table, key, span, header)
            # `[a.b]` may come before `[a]`, and the table's own header is the better place
            entry.key, entry.value = span, header
        else:
            entry = self._enter(table, key, span, header)
            element = _Entry(key=span, value=header)
            entry.inside[entry.length] = element
            entry.length += 1
            entry = element
        for pair in node.named_children:
            if pair.type == "pair":
                self._read_pair(entry, pair)

    def _last(self, entry: _Entry) -> _Entry:
        """The newest element of an array of tables, which a header below the array belongs to."""
        return entry.inside[entry.length - 1] if entry.length else entry

    def _read_pair(self, table: _Entry, pair: Node) -> None:
        name = key_node(pair)
        value = value_node(pair)
        if name is None or value is None:
            return
        parts = list(self._parts(name))
        for key, span in parts[:-1]:
            table = self._last(self._enter(table, key, span, span))
        key, span = parts[-1]
        table.inside[key] = _Entry(key=span, value=(value.start_byte, value.end_byte), node=_container(value))

    def _enter(self, table: _Entry, key: str, span: tuple[int, int], value: tuple[int, int]) -> _Entry:
        entry = self._open(table).get(key)
        if entry is None:
            entry = table.inside[key] = _Entry(key=span, value=value)
        return entry

    def _parts(self, name: Node) -> Iterator[tuple[str, tuple[int, int]]]:
        pending = [name]
        while pending:
            node = pending.pop()
            if node.type == "dotted_key":
                pending.extend(reversed(node.named_children))
            else:
                span = (node.start_byte, node.end_byte)
                yield toml_key(self._text[span[0] : span[1]]), span


def tree(text: str, form: Format) -> Node:
    """The root of a text's syntax tree; its byte offsets are character offsets of the text."""
    if form == "toml":
        from tree_sitter_toml import language
    else:
        from tree_sitter_json import language
    return Parser(Language(language())).parse(text.encode("ascii", "replace")).root_node


def _walk(root: Node) -> Iterator[Node]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node.named_children))


def key_node(node: Node) -> Node | None:
    """The key of a TOML pair or header."""
    return next((n for n in node.named_children if n.type in {"bare_key", "quoted_key", "dotted_key"}), None)


def value_node(pair: Node) -> Node | None:
    """The value of a TOML pair."""
    # a comment behind the value is a child of the pair
    values = [n for n in pair.named_children if n.type not in {"comment", "ERROR"}]
    return values[1] if len(values) > 1 else None


def _container(node: Node) -> Node | None:
    return node if node.type in {"array", "inline_table", "object"} else None


def toml_key(text: str) -> str:
    """The name that one part of a TOML key stands for, bare or quoted."""
    if text.startswith("'"):
        return text[1:-1]
    if not text.startswith('"'):
        return text
    return text[1:-1] if "\\" not in text else str(tomllib.loads(f"k = {text}")["k"])


def json_key(text: str) -> str:
    """The name that a key of a JSON object stands for, from its text with the quotes."""
    return text[1:-1] if "\\" not in text else str(json.loads(text))
