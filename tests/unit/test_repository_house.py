"""A newcomer finds the way: small folders, small functions, and one name for one thing."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGES = ("vxconf", "sandbox")
MOST_ENTRIES = 16
MOST_LINES_OF_A_FUNCTION = 60
MOST_LINES_OF_A_FILE = 400
#: The same part of a run, once for each platform.
TWINS = {"attempt", "attempt_result", "command_timeout", "doctor_probes", "proxy_handle", "proxy_process", "pty", "run"}
#: A command, and the room it calls.
COMMANDS = {"run"}
#: Words that stand for a thing nobody has named yet.
PRONOUNS = {
    *(
        "as",
        "both",
        "else",
        "he",
        "it",
        "its",
        "nothing",
        "she",
        "so",
        "such",
        "that",
        "their",
        "them",
        "these",
        "they",
    ),
    *("those", "what", "whatever", "who", "whoever", "whichever"),
}


def _generated(path: Path) -> bool:
    return path.name.startswith("_generated_")


@cache
def _files() -> tuple[Path, ...]:
    found = (path for package in PACKAGES for path in sorted((REPOSITORY / package).rglob("*.py")))
    return tuple(path for path in found if not _generated(path))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _name(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def long_functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The functions past the limit, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MOST_LINES_OF_A_FUNCTION:
                yield node.name, lines


def openings(text: str) -> Iterator[tuple[int, str]]:
    """The line and the text of every docstring and of every comment that has its lines for itself."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                yield getattr(node, "lineno", 1), docstring.removeprefix("EFFECT: ")
    before = -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            line = token.start[0]
            if line != before + 1:
                yield line, token.string.lstrip("#: ")
            before = line


def nameless(text: str) -> list[tuple[int, str]]:
    """The docstrings and comments that begin with a bare pronoun instead of their subject."""
    return [
        (line, said) for line, said in openings(text) if said and said.split()[0].strip(",.;:`").lower() in PRONOUNS
    ]


def test_a_folder_is_one_stage() -> None:
    counts = {
        _name(folder): sum(child.name != "__pycache__" for child in folder.iterdir())
        for folder in {path.parent for path in _files()}
    }
    assert {name: count for name, count in counts.items() if count > MOST_ENTRIES} == {}


def test_a_function_is_a_step_one_can_name() -> None:
    assert [(_name(path), *found) for path in _files() for found in long_functions(_tree(path))] == []


def test_a_file_is_one_room() -> None:
    lines = {_name(path): path.read_bytes().count(b"\n") for path in _files()}
    assert {name: count for name, count in lines.items() if count > MOST_LINES_OF_A_FILE} == {}


def test_a_public_class_has_a_name_of_its_own() -> None:
    places = defaultdict(list)
    for path in _files():
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(_name(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_a_file_has_a_name_of_its_own() -> None:
    places = defaultdict(list)
    for path in _files():
        if path.stem != "__init__":
            places[path.stem].append(_name(path))
    twice = {name for name, found in places.items() if len(found) > 1}
    assert twice == TWINS | COMMANDS
    for name in TWINS:
        assert {found.split("/")[1] for found in places[name]} >= {"linux", "macos"}
    for name in COMMANDS:
        assert f"vxconf/cli/commands/{name}.py" in places[name]


def test_every_file_says_what_it_is_for() -> None:
    assert [_name(path) for path in _files() if not ast.get_docstring(_tree(path))] == []


@pytest.mark.parametrize("path", _files(), ids=_name)
def test_a_comment_begins_with_its_subject(path: Path) -> None:
    assert nameless(path.read_text(encoding="utf-8")) == []


def test_what_is_nameless_is_found() -> None:
    text = '"""It answers."""\n# those that go\n# the rest of it\nx = 1  # what follows code\n# A pipe of the task\n'
    assert [line for line, _ in nameless(text)] == [1, 2]
    assert nameless('def f():\n    """The names it knows."""\n') == []


def test_a_long_function_is_found() -> None:
    text = "def f():\n" + "    x = 1\n" * MOST_LINES_OF_A_FUNCTION
    assert list(long_functions(ast.parse(text))) == [("f", MOST_LINES_OF_A_FUNCTION + 1)]
