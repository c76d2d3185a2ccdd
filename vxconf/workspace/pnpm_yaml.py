"""A reader of one top-level list of plain strings in a YAML file; every other spelling of the list is refused.

`packages` of `pnpm-workspace.yaml` is all that is wanted of YAML. A YAML library for it alone would be a dependency,
and would take time in every check.
"""

from __future__ import annotations


class NotAList(ValueError):
    """The key's value is spelled in a way this reader does not take."""


def top_level_list(text: str, key: str) -> tuple[str, ...]:
    """The strings of a top-level list in block or flow style; none when the key is absent or has no value.

    Args:
        text: the YAML document.
        key: the list's key.

    Raises:
        NotAList: the value is not such a list; the message is a clause that names the line.
    """
    lines = text.splitlines()
    for number, line in enumerate(lines):
        for spelling in (f"{key}:", f'"{key}":', f"'{key}':"):
            if line == spelling or line.startswith((spelling + " ", spelling + "\t")):
                rest = line[len(spelling) :].strip()
                if rest and not rest.startswith("#"):
                    return _flow(rest, lines[number + 1 :], number + 1)
                return _block(lines[number + 1 :], number + 2)
    return ()


def _block(lines: list[str], first: int) -> tuple[str, ...]:
    items: list[str] = []
    indent: int | None = None
    for number, line in enumerate(lines, first):
        body = line.strip()
        if not body or body.startswith("#"):
            continue
        here = len(line) - len(line.lstrip(" "))
        if body != "-" and not body.startswith("- "):
            if here == 0:
                break
            raise NotAList(f"line {number} is not an item of a plain list")
        if indent is None:
            indent = here
        if here != indent:
            raise NotAList(f"line {number} is indented unlike the item before it")
        items.append(_whole(body[1:].strip(), number))
    return tuple(items)


def _flow(opening: str, following: list[str], first: int) -> tuple[str, ...]:
    if not opening.startswith("["):
        raise NotAList(f"line {first} is not a list")
    items: list[str] = []
    rest, number = opening[1:], first
    lines = iter(following)
    wants_item = True
    while True:
        rest = rest.lstrip()
        if not rest or rest.startswith("#"):
            try:
                rest, number = next(lines), number + 1
            except StopIteration:
                raise NotAList(f"the list that begins on line {first} is never closed") from None
        elif rest.startswith("]"):
            after = rest[1:].strip()
            if after and not after.startswith("#"):
                raise NotAList(f"line {number} goes on after the list")
            return tuple(items)
        elif rest.startswith(","):
            if wants_item:
                raise NotAList(f"line {number} has an empty item")
            rest, wants_item = rest[1:], True
        elif wants_item:
            text, rest = _scalar(rest, number, stops=",]")
            items.append(text)
            wants_item = False
        else:
            raise NotAList(f"line {number} lacks a comma")


def _whole(text: str, number: int) -> str:
    value, rest = _scalar(text, number, stops="")
    if rest and not rest.lstrip().startswith("#"):
        raise NotAList(f"line {number} goes on after the item")
    return value


def _scalar(text: str, number: int, *, stops: str) -> tuple[str, str]:
    """A string at the start of `text`, and the text after it."""
    if text[:1] in {"'", '"'}:
        return _quoted(text, number)
    end = next(
        (i for i, char in enumerate(text) if char in stops or (char == "#" and text[i - 1 : i] in {" ", "\t"})),
        len(text),
    )
    value = text[:end].strip()
    if not value:
        raise NotAList(f"line {number} has an empty item")
    # YAML would read these as an alias, a tag, a mapping, a block scalar or another collection; `!` begins a tag
    if value[0] in "&*!|>{[]},@`%?" or ": " in value or value.endswith(":") or value.startswith("- "):
        raise NotAList(f"line {number} is not a plain or quoted string")
    return value, text[end:]


def _quoted(text: str, number: int) -> tuple[str, str]:
    quote = text[0]
    out: list[str] = []
    index = 1
    while index < len(text):
        char = text[index]
        if char == quote:
            if quote == "'" and text[index + 1 : index + 2] == "'":
                out.append("'")
                index += 2
                continue
            return "".join(out), text[index + 1 :].lstrip()
        if quote == '"' and char == "\\":
            escaped = text[index + 1 : index + 2]
            if escaped not in {"\\", '"', "/"}:
                raise NotAList(f"line {number} has an escape this reader does not take")
            out.append(escaped)
            index += 2
            continue
        out.append(char)
        index += 1
    raise NotAList(f"line {number} has a quote that is never closed")
