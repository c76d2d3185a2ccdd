"""A `Diagnostic`: one mistake of a file with its place; `vxconf.diagnostics.codes` documents the codes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.contract.config import Platform

#: The path of a value in the document: keys and list indexes, outermost first.
FieldPath = tuple[str | int, ...]


_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class Severity(StrEnum):
    """The weight of a diagnostic: `error` refuses the file or the task, `warning` only where the user asks for that."""

    ERROR = "error"
    WARNING = "warning"


class Place(NamedTuple):
    """A stretch of text: lines and columns from 1, in characters; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One mistake, its place and advice about it.

    Attributes:
        code: a key of `vxconf.diagnostics.codes.all_codes.CODES`.
        severity: whether the file is refused for it.
        file: the file's name as the user gave it.
        place: the stretch of the file at fault.
        path: the dotted field, such as `tasks.build.exec.sandbox.allow.network[0]`; empty when the
            file as a whole is at fault.
        message: one lowercase clause, no full stop.
        help: advice, or an empty string.
        platform: the only platform it holds on, or `None`.
    """

    code: str
    severity: Severity
    file: str
    place: Place
    path: str
    message: str
    help: str = ""
    platform: Platform | None = None

    @property
    def is_error(self) -> bool:
        """Whether the file is refused for it."""
        return self.severity is Severity.ERROR


class UnreadableFile(Exception):
    """A file that does not parse.

    Attributes:
        diagnostics: the reasons, at least one, in file order.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("; ".join(f"{d.file}:{d.place.line}:{d.place.column}: {d.message}" for d in diagnostics))
        self.diagnostics = diagnostics


def dotted(path: FieldPath) -> str:
    """The path as people write it, with a key in quotes where TOML needs them.

    >>> dotted(("tasks", "build:all", "dependsOn", 0))
    'tasks."build:all".dependsOn[0]'
    """
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
            continue
        key = part if part and _BARE.issuperset(part) else quoted(part)
        out += f".{key}" if out else key
    return out


# TOML escapes a code point of more than four hexadecimal digits with eight
_FOUR_DIGITS = 0xFFFF


def quoted(text: str) -> str:
    """The text in double quotes, safe to print: control characters and lone surrogates are escaped."""
    out = []
    for char in text:
        if char in '"\\':
            out.append("\\" + char)
        elif char.isprintable():
            out.append(char)
        else:
            point = ord(char)
            code = f"\\u{point:04x}" if point <= _FOUR_DIGITS else f"\\U{point:08x}"
            out.append({"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char, code))
    return '"' + "".join(out) + '"'


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics sorted by place, then code; each once."""
    unique = dict.fromkeys(diagnostics)
    return tuple(sorted(unique, key=lambda d: (d.place.line, d.place.column, d.code, d.path, d.message)))
