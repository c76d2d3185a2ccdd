"""The messages for texts that do not parse, in words for people, with advice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from json import JSONDecodeError


def toml_syntax_help(message: str, text: str, offset: int) -> tuple[str, str]:
    """The message for a fault of a TOML text, and advice or an empty string.

    Args:
        message: tomllib's own message.
        text: the whole text.
        offset: the fault's offset in characters.
    """
    if text.lstrip()[:1] == "{":
        return "the text is JSON", "name the file vx.json, or write it as TOML"
    line = text[text.rfind("\n", 0, offset) + 1 :].split("\n", 1)[0].strip()[:1000]
    here = text[offset : offset + 8]
    if message.startswith("Illegal character '\\n'"):
        return "the string does not end on its line", "close the string, or use three quotes for several lines"
    if message == "Invalid value" and not here.strip(" \t\r")[:1].strip():
        return "the value is missing", "write a value, or remove the key"
    if message == "Invalid value" and re.match(r"(?i:true|false|none|null|nil|yes|no|on|off)\b", here):
        return "invalid value", "booleans are true and false; there is no null: leave the key out"
    if message == "Invalid value" and here[:1].isalpha():
        return "invalid value", "strings take quotes"
    if re.match(r"[\w\"'.-]+\s*+:", line):
        return _lower(message), "TOML writes key = value"
    if message.startswith("Unescaped '\\'"):
        return _lower(message), "write the backslash twice, or use single quotes"
    return _lower(message), ""


def json_syntax_help(text: str, error: JSONDecodeError) -> tuple[int, str, str]:
    """The offset of a fault of a JSON text in characters, its message, and advice or an empty string."""
    offset = min(error.pos, len(text))
    if not text.strip():
        return offset, "the file is empty", "write {} for a file without tasks"
    if re.match(r"\s*(?:#|\[{1,2}[\w.\"'-]+\]|[\w.-]+\s*=)", text):
        return offset, "the text is TOML", "name the file vx.toml, or write it as JSON"
    before = text[:offset].rstrip()
    # versions of Python disagree whether the comma or the bracket behind it is the fault
    comma = offset if text[offset : offset + 1] == "," else len(before) - 1 if before.endswith(",") else None
    if comma is not None and text[comma + 1 :].lstrip()[:1] in {"}", "]"}:
        return comma, "a comma before a closing bracket", "remove the comma"
    if offset >= len(text.rstrip()):
        return offset, "the file ends too early", "close what is open"
    rest = text[offset : offset + 8]
    advice = ""
    if rest.startswith(("//", "/*", "#")):
        advice = "JSON has no comments; vx.toml has"
    elif rest.startswith("'"):
        advice = "strings take double quotes"
    elif rest.startswith(("True", "False", "None")):
        advice = "write true, false or null"
    return offset, _lower(error.msg), advice


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]
