"""The forms of diagnostics for people, for programs (JSON) and for GitHub; `sarif` has the fourth one. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unicodedata import combining, east_asian_width

from vxconf.diagnostics.diagnostic import Place
from vxconf.diagnostics.printable import BLUE, BOLD, OFF, RED, YELLOW, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vxconf.diagnostics.diagnostic import Diagnostic

_TAB = 4
#: The columns of a source line that are shown around a fault.
_WINDOW = 160


def diagnostics_text(diagnostics: Iterable[Diagnostic], sources: Mapping[str, str], *, colour: bool = False) -> str:
    """Each diagnostic as text, with the source line it is about.

    Args:
        diagnostics: the diagnostics in the order they are shown.
        sources: the text of each file, by the file's name in the diagnostics.
        colour: whether to colour the text for a terminal.
    """
    lines_of: dict[str, Sequence[str]] = {}
    out: list[str] = []
    for diagnostic in diagnostics:
        if diagnostic.file not in lines_of:
            lines_of[diagnostic.file] = split_lines(sources.get(diagnostic.file, ""))
        out.append(_one(diagnostic, lines_of[diagnostic.file], _Paint(colour)))
    return "\n".join(out)


def diagnostic_as_dict(diagnostic: Diagnostic) -> dict[str, Any]:
    """The diagnostic as a JSON object, with the keys of `check --format json`."""
    place = diagnostic.place
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "file": diagnostic.file,
        "line": place.line,
        "column": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
        "path": diagnostic.path,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "platform": diagnostic.platform,
    }


def github_commands(diagnostics: Iterable[Diagnostic]) -> str:
    """One GitHub workflow command for each diagnostic."""
    out: list[str] = []
    for diagnostic in diagnostics:
        place = diagnostic.place
        fields = {"file": diagnostic.file, "line": place.line, "endLine": place.end_line}
        if place.line == place.end_line:
            # an annotation's end is its last column, and columns count only within one line
            fields |= {"col": place.column, "endColumn": max(place.column, place.end_column - 1)}
        fields["title"] = f"vxconf {diagnostic.code}"
        joined = ",".join(f"{key}={_property(str(value))}" for key, value in fields.items())
        message = "%0Ahelp: ".join(_data(text) for text in (diagnostic.message, diagnostic.help) if text)
        out.append(f"::{diagnostic.severity.value} {joined}::{message}\n")
    return "".join(out)


def split_lines(source: str) -> list[str]:
    r"""The lines of a file, as TOML and JSON count them: ended by `\n` or `\r\n` and nothing else."""
    return [line.removesuffix("\r") for line in source.split("\n")]


class _Paint:
    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def __call__(self, string: str, code: str) -> str:
        return f"{code}{string}{OFF}" if self._colour else string


def _one(diagnostic: Diagnostic, lines: Sequence[str], paint: _Paint) -> str:
    place = diagnostic.place
    severity = diagnostic.severity.value
    tone = RED if diagnostic.is_error else YELLOW
    where = paint(f"{printable(diagnostic.file)}:{place.line}:{place.column}:", BOLD)
    out = [f"{where} {paint(f'{severity} {diagnostic.code}:', tone)} {printable(diagnostic.message)}"]
    gutter = " " * (len(str(place.line)) + 1)
    whole_file = not diagnostic.path and place == Place(1, 1, 1, 1)
    if not whole_file and place.line <= len(lines):
        shown, carets = _excerpt(lines[place.line - 1], place.column, _end(diagnostic, lines))
        bar = paint("|", BLUE)
        out += [
            f"{gutter}{bar}",
            f"{paint(str(place.line), BLUE)} {bar} {shown}".rstrip(),
            f"{gutter}{bar} {paint(carets, tone) if carets.strip() else ''}".rstrip(),
        ]
    if diagnostic.help:
        out.append(f"{gutter}= help: {printable(diagnostic.help)}")
    return "\n".join(out) + "\n"


def _end(diagnostic: Diagnostic, lines: Sequence[str]) -> int:
    """The column behind the last one to underline, on the first line of a place."""
    place = diagnostic.place
    end = place.end_column if place.end_line == place.line else len(lines[place.line - 1]) + 1
    return max(end, place.column + 1)


def _excerpt(line: str, column: int, end: int) -> tuple[str, str]:
    """A source line and the carets under part of it, both as wide as a terminal shows them."""
    first = max(0, column - 1 - _WINDOW // 2) if len(line) > _WINDOW else 0
    shown = line[first : first + _WINDOW]
    before = _cells(line[first : column - 1])
    marked = _cells(line[column - 1 : min(end - 1, first + _WINDOW)])
    ellipsis = "…" if first else ""
    text_ = ellipsis + _visible(shown) + ("…" if first + _WINDOW < len(line) else "")
    return text_, " " * (len(ellipsis) + before) + "^" * max(1, marked)


def _visible(string: str) -> str:
    # a command of GitHub's runner wherever it stands; no character more or less, since carets stand below
    expanded = string.replace("\t", " " * _TAB).replace("##[", "##\ufffd")
    if expanded.isprintable():
        return expanded
    return "".join(char if char.isprintable() else "\ufffd" for char in expanded)


def _cells(string: str) -> int:
    """The terminal cells that a text takes."""
    if string.isascii():
        return len(string) + (_TAB - 1) * string.count("\t")
    width = 0
    for char in string:
        if char == "\t":
            width += _TAB
        elif not combining(char) and char not in "\u200d\ufe0e\ufe0f":
            width += 2 if east_asian_width(char) in "WF" else 1
    return width


def _data(string: str) -> str:
    # the runner turns these back, so that an escape character would reach the log as itself
    return printable(string).replace("%", "%25")


def _property(string: str) -> str:
    return _data(string).replace(":", "%3A").replace(",", "%2C")
