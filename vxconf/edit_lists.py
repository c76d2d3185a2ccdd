"""Entries added at the end of a list in brackets, in the list's own style; of TOML and of JSON. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vxconf.edit_text import Edit, indentation, line_end, line_start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node

    from vxconf.edit_text import Style


def grown(text: str, node: Node, entries: Sequence[str], style: Style) -> list[Edit]:
    """The changes that add entries to a list.

    Args:
        text: the file.
        node: the list, in brackets.
        entries: at least one, unquoted.
        style: the file's.
    """
    said = [style.quoted(entry) for entry in entries]
    elements = [child for child in node.named_children if child.type not in {"comment", "ERROR"}]
    if not elements:
        return _filled(text, node, said, style)
    last = elements[-1]
    comma = next((c.start_byte for c in node.children if c.type == "," and c.start_byte >= last.end_byte), None)
    remark = any(
        child.type == "comment" and last.end_byte <= child.start_byte < line_end(text, last.end_byte)
        for child in node.children
    )
    if "\n" in text[node.start_byte : last.start_byte] or remark:
        return _on_lines(text, node, (last, comma), said, style)
    between = text[elements[-2].end_byte : last.start_byte] if len(elements) > 1 else style.comma
    between = between if between.strip(" \t") == "," else style.comma
    return [Edit(last.end_byte, last.end_byte, "".join(between + one for one in said))]


def written(entries: Sequence[str], style: Style) -> str:
    """A new list on one line."""
    return f"[{style.comma.join(map(style.quoted, entries))}]"


def _filled(text: str, node: Node, said: list[str], style: Style) -> list[Edit]:
    """An empty list, which may hold remarks."""
    start, close = node.start_byte + 1, node.end_byte - 1
    inner = text[start:close]
    if "\n" not in inner:
        return [Edit(start, close, style.comma.join(said))]
    remark = next((child for child in node.children if child.type == "comment"), None)
    own_line = remark is not None and line_start(text, remark.start_byte) > node.start_byte
    indent = indentation(text, remark.start_byte) if remark is not None and own_line else ""
    indent = indent or indentation(text, node.start_byte) + style.indent
    point = start + len(inner.rstrip(" \t\r\n"))
    return [Edit(point, point, style.newline + indent + f",{style.newline}{indent}".join(said))]


def _on_lines(text: str, node: Node, end_of_list: tuple[Node, int | None], said: list[str], style: Style) -> list[Edit]:
    """A list over several lines: each entry gets one, a remark stays with the entry it was written beside."""
    last, comma = end_of_list
    end = last.end_byte if comma is None else comma + 1
    point = line_end(text, end)
    if node.end_byte - 1 <= point:
        point = end
    indent = indentation(text, last.start_byte)
    if line_start(text, last.start_byte) <= node.start_byte:
        indent += style.indent
    lines = [f"{style.newline}{indent}{one}" for one in said]
    if comma is not None:
        return [Edit(point, point, "".join(f"{line}," for line in lines))]
    if point == end:
        return [Edit(point, point, "," + ",".join(lines))]
    return [Edit(end, end, ","), Edit(point, point, ",".join(lines))]
