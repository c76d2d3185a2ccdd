"""`docs/modules.md` has one line for each module, and is what `scripts/generate` would write now."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from scripts import module_index
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path


def test_the_index_is_fresh() -> None:
    written = (REPOSITORY / module_index.PAGE).read_text(encoding="utf-8")
    assert written == module_index.page(), "run scripts/generate"


def test_every_module_has_its_line() -> None:
    lines = re.findall(r"^- \[\S+\]\(\.\./(\S+)\).*: \S", module_index.page(), re.MULTILINE)
    modules = [
        path.relative_to(REPOSITORY).as_posix()
        for package in module_index.PACKAGES
        for path in (REPOSITORY / package).rglob("*.py")
        if path.name != "__init__.py"
    ]
    assert sorted(lines) == sorted(modules)


@pytest.mark.parametrize(
    ("docstring", "sentence"),
    [
        ("names of hosts", "Names of hosts."),
        ("Reads `vx.toml` twice. Then it stops.", "Reads `vx.toml` twice."),
        ("One sentence\nover two lines.\n\nAnd more.", "One sentence over two lines."),
        ("Holds 3.5 of them.", "Holds 3.5 of them."),
        ("Why?", "Why?"),
        ("A name, e.g. one of a file. `None` is none.", "A name, e.g. one of a file."),
    ],
)
def test_the_first_sentence_of_a_docstring(docstring: str, sentence: str) -> None:
    assert module_index.first_sentence(docstring) == sentence


def _package(root: Path, text: str) -> Path:
    for package in module_index.PACKAGES:
        (root / package).mkdir()
        (root / package / "__init__.py").write_text('"""A package."""\n', encoding="utf-8")
    (root / "sandbox" / "one.py").write_text(text, encoding="utf-8")
    return root


def test_a_module_with_effects_is_marked(tmp_path: Path) -> None:
    page = module_index.page(_package(tmp_path, '"""EFFECT: removes it all."""\n'))
    assert "- [one.py](../sandbox/one.py) *effects*: Removes it all.\n" in page


def test_a_module_that_says_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"one\.py has no docstring"):
        module_index.page(_package(tmp_path, "x = 1\n"))
