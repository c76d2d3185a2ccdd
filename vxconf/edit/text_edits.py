"""Edits of a text by offset, and the style the text is written in. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vxconf.document.document import Format

_INDENTED = re.compile(r"^(\t|[ ]+)\S", re.MULTILINE)
#: The most blanks of one step of indentation; more blanks align with something.
_STEP = 8


class Uneditable(Exception):
    """A file whose list cannot be added to; the message is a clause that says why."""


class Edit(NamedTuple):
    """An edit: the characters from `start` to `end` become `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Style:
    """The style a file is written in.

    Attributes:
        newline: the end of its lines.
        indent: one step of indentation.
        literal: whether strings are in single quotes, where they can be.
        comma: the text between two values on a line.
    """

    newline: str
    indent: str
    literal: bool = False
    comma: str = ", "

    def quoted(self, text: str) -> str:
        """The text as a string of the file's format, with its quotes."""
        if self.literal and "'" not in text and text.isprintable():
            return f"'{text}'"
        # a basic string of TOML takes JSON's escapes, and has DEL escaped as well
        return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def style_of(text: str, form: Format, *, literal: bool = False) -> Style:
    """The style of a text; `literal` is whether its strings are in single quotes."""
    first = text.find("\n")
    steps = [found[1] for found in _INDENTED.finditer(text) if len(found[1]) <= _STEP]
    tight = form == "json" and "\n" not in text.strip() and ", " not in text
    newline = "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
    return Style(newline, min(steps, key=len, default="  "), literal and form == "toml", "," if tight else ", ")


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with these edits made; edits do not overlap."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def line_start(text: str, offset: int) -> int:
    """The offset of the start of the line that holds an offset."""
    return text.rfind("\n", 0, offset) + 1


def indentation(text: str, offset: int) -> str:
    """The blanks at the start of the line that holds an offset."""
    start = line_start(text, offset)
    end = start
    while end < len(text) and text[end] in " \t":
        end += 1
    return text[start:end]
