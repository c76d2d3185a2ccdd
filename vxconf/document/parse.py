"""The parsing of a file's bytes, TOML or JSON; every fault of the text is a diagnostic with its exact place.

The meaning of the values is not looked at. The standard library parses; the text is searched for the place of a fault
only once there is one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Never

from vxconf.diagnostics.diagnostic import Diagnostic, Place, UnreadableFile, quoted
from vxconf.document import toml_subset
from vxconf.document.document import Document, Format, NotFinite

if TYPE_CHECKING:
    import tomllib

    from vxconf.diagnostics.diagnostic import FieldPath


#: The most bytes a config file may have.
MAX_BYTES = 8 * 1024 * 1024
#: The depth to which lists and tables may be nested; the format itself needs 8.
MAX_DEPTH = 32
#: The most digits of a number: the interpreter's own limit, since its work grows with their square.
MAX_DIGITS = 4300

_BOM = b"\xef\xbb\xbf"


class _Refused(Exception):
    def __init__(self, code: str, message: str, help_: str, pattern: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.help, self.pattern = code, message, help_, pattern


def format_of(file: str) -> Format | None:
    """The format that the ending of a file's name stands for; `None` for another ending."""
    if file.endswith(".toml"):
        return "toml"
    return "json" if file.endswith(".json") else None


def parse(raw: bytes, *, file: str) -> Document:
    """The document in these bytes.

    Args:
        raw: the file's content.
        file: the file's name in reports; its ending gives the format.

    Raises:
        UnreadableFile: the text does not parse; one diagnostic, or one for each duplicate key.
    """
    form = format_of(file)
    if form is None:
        raise _unreadable(
            file,
            "VX010",
            Place(1, 1, 1, 1),
            "the file is neither TOML nor JSON by its name",
            "name it vx.toml or vx.json",
        )
    if len(raw) > MAX_BYTES:
        raise _unreadable(
            file,
            "VX002",
            Place(1, 1, 1, 1),
            f"the file has {len(raw):,} bytes, more than the {MAX_BYTES:,} a config file may have",
            "check that it is the file you mean",
        )
    text = _decode(raw.removeprefix(_BOM), file)
    return _toml(text, file) if form == "toml" else _json(text, file)


def place_at(text: str, start: int, end: int | None = None) -> Place:
    """The place of the characters from `start` to `end`, both offsets; of one character by default."""
    line = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    if end is None:
        end = start + 1 if start < len(text) and text[start] not in "\r\n" else start
    end_line = line + text.count("\n", start, end)
    return Place(line, column, end_line, end - (text.rfind("\n", 0, end) + 1) + 1)


def deep_path(data: object) -> FieldPath | None:
    """The path of the first value nested deeper than `MAX_DEPTH`, `None` when there is none; never recurses."""
    level: list[tuple[FieldPath, object]] = [((), data)]
    for _ in range(MAX_DEPTH):
        inner: list[tuple[FieldPath, object]] = []
        for path, value in level:
            children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
            inner.extend(((*path, key), child) for key, child in children if isinstance(child, dict | list))
        if not inner:
            return None
        level = inner
    return level[0][0]


def too_deep(file: str, place: Place) -> Diagnostic:
    """The diagnostic for a value nested deeper than `MAX_DEPTH`."""
    message = f"lists and tables are nested deeper than {MAX_DEPTH}"
    return _diagnostic(file, "VX006", place, message, "the format needs no more than 8")


def _diagnostic(file: str, code: str, place: Place, message: str, help_: str) -> Diagnostic:
    from vxconf.diagnostics.codes.all_codes import CODES

    return Diagnostic(
        code=code, severity=CODES[code].severity, file=file, place=place, path="", message=message, help=help_
    )


def _unreadable(file: str, code: str, place: Place, message: str, help_: str) -> UnreadableFile:
    return UnreadableFile((_diagnostic(file, code, place, message, help_),))


def _decode(raw: bytes, file: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        byte = raw[error.start]
        utf16 = raw[:2] in {b"\xff\xfe", b"\xfe\xff"}
        place = place_at(before + "?", len(before))
        message = "the file is UTF-16, not UTF-8" if utf16 else f"byte 0x{byte:02x} is not UTF-8"
        raise _unreadable(file, "VX003", place, message, "save the file as UTF-8") from None


# --- TOML


def _toml(text: str, file: str) -> Document:
    data: Any = toml_subset.read(text)
    if data is not None:
        return Document(file=file, format="toml", text=text, data=data)
    import tomllib

    _refuse_long_keys(text, file)
    try:
        data = tomllib.loads(text, parse_float=_toml_float)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableFile(_toml_fault(text, file, error)) from None
    except RecursionError:
        raise UnreadableFile((too_deep(file, place_at(text, *_deep_place(text))),)) from None
    except ValueError:  # an integer has more digits than the interpreter reads
        raise _long_number(text, file) from None
    if ("0x" in text or "0o" in text or "0b" in text) and _holds_huge_number(text, data):
        raise _long_number(text, file)
    return Document(file=file, format="toml", text=text, data=data)


_BASED = rf"\b0[xob][0-9a-fA-F_]{{{MAX_DIGITS},}}"


def _holds_huge_number(text: str, data: object) -> bool:
    # the interpreter reads a number of any length in a base that is a power of two, and cannot print it
    if not re.search(_BASED, text):
        return False
    pending = [data]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
        elif isinstance(value, int) and value.bit_length() > MAX_DIGITS:
            return True
    return False


def _toml_float(text: str) -> object:
    value = float(text)
    return value if value - value == 0 else NotFinite(text)  # `inf - inf` and `nan - nan` are nan


_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""


def _refuse_long_keys(text: str, file: str) -> None:
    # tomllib's work for one dotted key grows with the square of its parts
    if text.count(".") < MAX_DEPTH or all(line.count(".") < MAX_DEPTH for line in text.split("\n")):
        return
    dot = r"[ \t]*+\.[ \t]*+"
    lexeme = re.compile(
        rf'(?P<key>{_PART}(?:{dot}{_PART}){{{MAX_DEPTH}}})|"""(?s:[^\\]|\\.)*?"""|\'\'\'(?s:.)*?\'\'\''
        rf"|#[^\n]*+|{_PART}(?:{dot}{_PART})*+|[^\"'#A-Za-z0-9_-]++|."
    )
    for found in lexeme.finditer(text):
        if found["key"]:
            raise _unreadable(
                file,
                "VX006",
                place_at(text, found.start(), found.end()),
                f"a key of more than {MAX_DEPTH} parts nests tables too deep",
                "the format needs no more than 8",
            )


_AT = r" \(at (?:line (\d+), column (\d+)|end of document)\)$"

_SAID_TWICE = (
    "Cannot overwrite a value",
    "Cannot declare",
    "Cannot mutate immutable namespace",
    "Cannot redefine namespace",
    "Duplicate inline table key",
)


def _toml_fault(text: str, file: str, error: tomllib.TOMLDecodeError) -> tuple[Diagnostic, ...]:
    said = str(error)
    at = re.search(_AT, said)
    message = said[: at.start()] if at else said
    offset = _offset(text, int(at[1]), int(at[2])) if at and at[1] else len(text.rstrip())
    if message.startswith(_SAID_TWICE):
        from vxconf.document.spans import duplicate_at

        start, end, key = duplicate_at(text, offset)
        return (_twice(text, file, start, end, key),)
    from vxconf.document.syntax_help import toml_syntax_help

    words, advice = toml_syntax_help(message, text, offset)
    return (_diagnostic(file, "VX004", place_at(text, offset), f"not TOML: {words}", advice),)


def _twice(text: str, file: str, start: int, end: int, key: str) -> Diagnostic:
    return _diagnostic(
        file,
        "VX005",
        place_at(text, start, end),
        f"key {quoted(key)} is defined twice",
        "keep one of the two",
    )


def _offset(text: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.index("\n", start) + 1
    return min(start + column - 1, len(text))


# --- JSON


def _json(text: str, file: str) -> Document:
    import json

    try:
        data = json.loads(
            text,
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_constant,
            parse_int=_short_int,
            parse_float=_finite_float,
        )
    except json.JSONDecodeError as error:
        from vxconf.document.syntax_help import json_syntax_help

        offset, message, advice = json_syntax_help(text, error)
        raise _unreadable(file, "VX004", place_at(text, offset), f"not JSON: {message}", advice) from None
    except RecursionError:
        raise UnreadableFile((too_deep(file, place_at(text, *_deep_place(text))),)) from None
    except _Refused as refused:
        if refused.code == "VX005":
            raise UnreadableFile(_json_duplicates(text, file)) from None
        raise _unreadable(
            file, refused.code, _json_lexeme(text, refused.pattern), refused.message, refused.help
        ) from None
    if "\\ud" in text or "\\uD" in text:
        _refuse_lone_surrogates(text, file)
    return Document(file=file, format="json", text=text, data=data)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Refused("VX005", "", "")
    return made


def _no_constant(text: str) -> Never:
    raise _Refused("VX007", f"{text} is not a JSON number", "leave the key out", re.escape(text))


def _short_int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise _Refused(
            "VX008", f"a number of {len(text):,} digits is too long", "no field takes one", rf"-?[0-9]{{{MAX_DIGITS},}}"
        )
    return int(text)


def _finite_float(text: str) -> float:
    value = float(text)
    if value - value != 0:  # see `_toml_float`
        raise _Refused("VX007", f"{text[:40]} is too large for a number", "no field takes one", re.escape(text))
    return value


_STRING = r'"(?:[^"\\]|\\.)*+"'


def _json_lexeme(text: str, pattern: str) -> Place:
    for found in re.finditer(rf"{_STRING}|({pattern})(?![\w.+-])", text):
        if found[1]:
            return place_at(text, found.start(), found.end())
    return Place(1, 1, 1, 1)


def _json_duplicates(text: str, file: str) -> tuple[Diagnostic, ...]:
    from vxconf.document.spans import json_duplicates

    return tuple(_twice(text, file, start, end, key) for start, end, key in json_duplicates(text))


def _refuse_lone_surrogates(text: str, file: str) -> None:
    half = None
    for found in re.finditer(r"\\(?:u([0-9a-fA-F]{4})|.)", text):
        escape = (found[1] or "0000").lower()
        low = "dc00" <= escape <= "dfff"
        if half is not None:
            if not low or found.start() != half.end():
                break
            half = None
        elif low or "d800" <= escape <= "dbff":
            half = found
            if low:
                break
    if half is not None:
        raise _unreadable(
            file,
            "VX009",
            place_at(text, half.start(), half.end()),
            f"{half[0]} is half of a character",
            "write both halves, or the character itself",
        )


# --- both


def _long_number(text: str, file: str) -> UnreadableFile:
    found = max(
        re.finditer(rf"[+-]?(?:0[xob])?[0-9a-fA-F_]{{{MAX_DIGITS},}}", text), key=lambda m: len(m[0]), default=None
    )
    start, end = (found.start(), found.end()) if found else (0, 1)
    return _unreadable(
        file,
        "VX008",
        place_at(text, start, end),
        f"a number of {end - start:,} digits is too long",
        "no field takes one",
    )


def _deep_place(text: str) -> tuple[int, int]:
    """The offsets of the first bracket nested too deep, outside strings and comments; the text's start when none is."""
    depth = 0
    for found in re.finditer(
        r'"""(?s:[^\\]|\\.)*?"""|\'\'\'(?s:.)*?\'\'\'|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'|#[^\n]*+|[\[\]{}]', text
    ):
        if found[0] in {"[", "{"}:
            depth += 1
            if depth > MAX_DEPTH:
                return found.start(), found.end()
        elif found[0] in {"]", "}"}:
            depth = max(0, depth - 1)
    return 0, 0
