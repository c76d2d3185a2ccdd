"""`docs/glossary.md` defines every word of `docs/architecture.md` that means something of its own here."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterable

GLOSSARY = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8")
ARCHITECTURE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")

#: Words the documents have used as if everybody knew them.
_SUSPICIOUS = frozenset(
    {
        *(
            "anchor",
            "baseline",
            "block",
            "boundary",
            "cover",
            "door",
            "entry",
            "executed name",
            "front",
            "gate",
            "grant",
        ),
        *("held directory", "hint", "hole", "joiner", "knock", "mask", "observer", "outcome", "place", "process 1"),
        *("protected name", "rehearsal", "seal", "served name", "set aside", "spare", "staged name"),
        *("staging", "stand-in", "store", "supervisor", "trace", "verdict", "wall", "warden", "way", "wrapped command"),
    }
)

#: Names of rooms and classes that architecture.md uses in the sense everybody knows.
_EVERYDAY = frozenset(
    {
        # rooms, named after a word of the field or after what everybody does there
        *(
            "base",
            "caller",
            "cli",
            "code",
            "command",
            "connect",
            "contract",
            "edit",
            "explain",
            "inside",
            "io",
            "kernel",
        ),
        *(
            "lint",
            "linux",
            "machine",
            "macos",
            "observe",
            "planning",
            "protocol",
            "resolve",
            "rule",
            "schema",
            "scratch",
        ),
        *("served", "strace", "terminal", "validate", "wire"),
        # classes that are what the word says
        *(
            "architecture",
            "at",
            "below",
            "bubblewrap",
            "cache",
            "call",
            "change",
            "command run",
            "connection",
            "copy",
            "empty",
        ),
        *(
            "event loop",
            "failed",
            "file",
            "filter",
            "greeting",
            "handshake",
            "held",
            "host",
            "implied",
            "inode",
            "kind",
        ),
        *(
            "link",
            "listener",
            "make",
            "name",
            "nearest name",
            "notification",
            "option",
            "output",
            "path",
            "pattern",
            "place",
            "plain",
            "program",
        ),
        *("refused", "report", "root", "runner", "server", "signal", "socket call", "stage", "step", "what", "wrapped"),
    }
)


def _singular(words: str) -> str:
    if words.endswith("ies"):
        return f"{words[:-3]}y"
    return words if words.endswith(("ss", "us", "cos")) else words.removesuffix("s").removesuffix("'")


def _defined() -> set[str]:
    return {_singular(heading) for heading in re.findall(r"^### (.+)$", GLOSSARY, re.MULTILINE)}


def _rooms() -> set[str]:
    packages = (REPOSITORY / package for package in ("vxconf", "sandbox"))
    return {_singular(one.parent.name) for package in packages for one in package.glob("*/**/__init__.py")}


@cache
def _classes() -> set[str]:
    """Public classes as words: `HeldDirectories` is "held directory"."""
    found = set()
    for package in ("vxconf", "sandbox"):
        for path in (REPOSITORY / package).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.add(_singular(" ".join(re.findall(r"[A-Z][a-z0-9]*|[A-Z]+", node.name)).lower()))
    return found


def _used(text: str, words: Iterable[str]) -> set[str]:
    """Which of the words a text uses; names of files in it are no words."""
    prose = re.sub(r"\S*(?:/|\.py|\.md)\S*", " ", text).lower().replace("\n", " ")
    said = " ".join(_singular(word) for word in re.findall(r"[a-z0-9-]+", prose))
    return {word for word in words if f" {' '.join(map(_singular, word.split()))} " in f" {said} "}


def _undefined(text: str) -> set[str]:
    house = (_rooms() | _classes() | _SUSPICIOUS) - _EVERYDAY
    return {word for word in _used(text, house) if word and word not in _defined()}


def test_architecture_uses_no_house_word_that_the_glossary_lacks() -> None:
    assert _undefined(ARCHITECTURE) == set(), "define it in docs/glossary.md, or list it here as an everyday word"


def test_the_glossary_defines_the_words_it_is_there_for() -> None:
    assert {"warden", "supervisor", "mask", "wall", "boundary", "stand-in", "hint", "staging"} <= _defined()


def test_every_word_is_defined_once_in_one_sentence() -> None:
    entries = re.findall(r"^### (.+)\n((?:(?!#).+\n)+)", GLOSSARY, re.MULTILINE)
    assert len(entries) == GLOSSARY.count("\n### ")
    assert len({word for word, _ in entries}) == len(entries)
    assert {word: said for word, said in entries if len(re.findall(r"\.(?:\s|$)", said)) != 1} == {}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Its doors are two descriptors.", "door"),
        ("The front judges each name.", "front"),
        ("A task never sees the relay of bytes and the\nbyte relays.", "byte relay"),
        ("The outcome is settled.", "outcome"),
    ],
)
def test_a_house_word_that_is_not_defined_would_be_found(text: str, word: str) -> None:
    assert word in _undefined(text)


def test_a_word_that_is_defined_is_not_complained_of() -> None:
    assert _undefined("The wardens of a session, its walls, its grants and its staging.") == set()
