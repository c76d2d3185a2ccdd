"""The adding of entries to one list of a JSON text, in the file's own style; a missing list is added. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vxconf.document.spans import json_key, tree
from vxconf.edit.text_edits import Edit, Uneditable, edited, indentation, line_start, style_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node

    from vxconf.edit.text_edits import Style


def with_entries(text: str, path: tuple[str, ...], entries: Sequence[str]) -> str:
    """The text with entries added to the list at a path.

    Args:
        text: a JSON text that parses.
        path: the keys of the list, from the top of the file.
        entries: the entries, at least one, unquoted.

    Raises:
        Uneditable: a value on the path is no list and no object.
    """
    root = tree(text, "json")
    node = next((child for child in root.named_children if child.type != "comment"), None)
    return edited(text, _edits(text, node, path, entries))


def _edits(text: str, node: Node | None, path: tuple[str, ...], entries: Sequence[str]) -> list[Edit]:
    style = style_of(text, "json")
    for depth, name in enumerate(path):
        if node is None or node.type != "object":
            raise Uneditable(f"{'.'.join(path[:depth]) or 'the file'} is no object")
        value = next((value for key, value in _members(node, text) if key == name), None)
        if value is None:
            return [_made(text, node, path[depth:], entries, style)]
        node = value
    if node is None or node.type != "array":
        raise Uneditable(f"{'.'.join(path)} is no list")
    return _grown(text, node, [style.quoted(entry) for entry in entries], style)


def _members(node: Node, text: str) -> Iterator[tuple[str, Node]]:
    for pair in node.named_children:
        key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        if key is not None and value is not None:
            yield json_key(text[key.start_byte : key.end_byte]), value


def _made(text: str, node: Node, names: tuple[str, ...], entries: Sequence[str], style: Style) -> Edit:
    """The edit that adds members, one in the other, at the end of an object."""
    pairs = [child for child in node.named_children if child.type == "pair"]
    apart = "\n" in (text[node.start_byte : pairs[0].start_byte] if pairs else _around(text, node))
    outer = indentation(text, node.start_byte)
    inner = indentation(text, pairs[-1].start_byte) if pairs and apart else outer + style.indent
    colon = _colon(text, pairs)
    if not apart:
        pad = " " if text[node.start_byte + 1 : node.start_byte + 2] == " " else ""
        said = _on_one_line(names, entries, style, colon, pad)
        if not pairs:
            return Edit(node.start_byte + 1, node.end_byte - 1, f"{pad}{said}{pad}")
        between = text[pairs[-2].end_byte : pairs[-1].start_byte] if len(pairs) > 1 else style.comma
        end = pairs[-1].end_byte
        return Edit(end, end, (between if between.strip(" \t") == "," else style.comma) + said)
    said = _on_lines(names, entries, style, colon, inner, spread=_spreads(node, text))
    if not pairs:
        return Edit(node.start_byte + 1, node.end_byte - 1, f"{style.newline}{inner}{said}{style.newline}{outer}")
    end = pairs[-1].end_byte
    return Edit(end, end, f",{style.newline}{inner}{said}")


def _around(text: str, node: Node) -> str:
    """The text of an empty object, and of the object around it up to there."""
    pair = node.parent
    holder = pair.parent if pair is not None else None
    start = holder.start_byte if holder is not None else node.start_byte
    return text[start : node.end_byte]


def _on_one_line(names: tuple[str, ...], entries: Sequence[str], style: Style, colon: str, pad: str) -> str:
    said = f"{style.quoted(names[-1])}{colon}{_written(entries, style)}"
    for name in reversed(names[:-1]):
        said = f"{style.quoted(name)}{colon}{{{pad}{said}{pad}}}"
    return said


def _on_lines(
    names: tuple[str, ...], entries: Sequence[str], style: Style, colon: str, indent: str, *, spread: bool
) -> str:
    name, *rest = names
    deeper = f"{style.newline}{indent}{style.indent}"
    if rest:
        inner = _on_lines(tuple(rest), entries, style, colon, indent + style.indent, spread=spread)
        return f"{style.quoted(name)}{colon}{{{deeper}{inner}{style.newline}{indent}}}"
    value = _written(entries, style)
    if spread:
        value = f"[{deeper}{f',{deeper}'.join(map(style.quoted, entries))}{style.newline}{indent}]"
    return f"{style.quoted(name)}{colon}{value}"


def _colon(text: str, pairs: list[Node]) -> str:
    """The text between a key and its value, as the file spells it."""
    for pair in pairs:
        key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        if key is not None and value is not None:
            between = text[key.end_byte : value.start_byte]
            return between if between.strip(" \t") == ":" else ": "
    return ":" if '":' in text and '": ' not in text else ": "


def _spreads(node: Node, text: str) -> bool:
    """Whether the first list of a file that has entries has a line for each."""
    root = node
    while root.parent is not None:
        root = root.parent
    pending = [root]
    while pending:
        found = pending.pop()
        if found.type == "array" and found.named_children:
            return "\n" in text[found.start_byte : found.end_byte]
        pending.extend(reversed(found.named_children))
    return False


def _grown(text: str, node: Node, said: list[str], style: Style) -> list[Edit]:
    """The edits that add values at the end of a list, each on a line of its own where the values before are."""
    elements = [child for child in node.named_children if child.type not in {"comment", "ERROR"}]
    start, close = node.start_byte + 1, node.end_byte - 1
    if not elements:
        inner = text[start:close]
        if "\n" not in inner:
            return [Edit(start, close, style.comma.join(said))]
        indent = indentation(text, node.start_byte) + style.indent
        point = start + len(inner.rstrip())
        return [Edit(point, point, style.newline + indent + f",{style.newline}{indent}".join(said))]
    last = elements[-1]
    if "\n" in text[start : last.start_byte]:
        indent = indentation(text, last.start_byte)
        if line_start(text, last.start_byte) <= node.start_byte:
            indent += style.indent
        between = f",{style.newline}{indent}"
    else:
        between = text[elements[-2].end_byte : last.start_byte] if len(elements) > 1 else style.comma
        between = between if between.strip(" \t") == "," else style.comma
    return [Edit(last.end_byte, last.end_byte, "".join(between + one for one in said))]


def _written(entries: Sequence[str], style: Style) -> str:
    return f"[{style.comma.join(map(style.quoted, entries))}]"
