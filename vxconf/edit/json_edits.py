"""A JSON text with entries added to one list, which is made where it is missing; in the file's own style. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vxconf.document.spans import json_key, tree
from vxconf.edit.text_edits import Edit, Uneditable, indentation, line_start, style_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node

    from vxconf.edit.text_edits import Style


def add(text: str, path: tuple[str, ...], entries: Sequence[str]) -> list[Edit]:
    """The changes that add entries to the list at a path.

    Args:
        text: a file that parses.
        path: keys, from the top of the file.
        entries: at least one.

    Raises:
        Uneditable: something other than a list or an object is in the way.
    """
    root = tree(text, "json")
    node = next((child for child in root.named_children if child.type != "comment"), None)
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
    """New members, one in the other, at the end of an object."""
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
    """The text before an empty object in the object that holds it, and what it holds itself."""
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
    """What stands between a key and its value."""
    for pair in pairs:
        key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        if key is not None and value is not None:
            between = text[key.end_byte : value.start_byte]
            return between if between.strip(" \t") == ":" else ": "
    return ":" if '":' in text and '": ' not in text else ": "


def _spreads(node: Node, text: str) -> bool:
    """Whether the lists of a file have a line for each entry."""
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
    """Values at the end of a list, each on a line where those before are."""
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
