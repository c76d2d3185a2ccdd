"""The files under fixtures/configs; UPDATE_GOLDEN=1 rewrites the expected diagnostics of the invalid ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.configs import INVALID, UPDATE, VALID, diagnose, expectation, render
from vxconf.diagnostics.codes.all_codes import CODES
from vxconf.diagnostics.codes.code import Stage
from vxconf.diagnostics.diagnostic import Severity

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("path", INVALID, ids=lambda p: p.name)
def test_invalid_config_is_refused_as_recorded(path: Path) -> None:
    said = render(diagnose(path))
    if UPDATE:
        expectation(path).write_text(said, "utf-8")
    assert said == expectation(path).read_text("utf-8")
    assert said


@pytest.mark.parametrize("path", VALID, ids=lambda p: p.name)
def test_valid_config_passes_without_a_word(path: Path) -> None:
    assert render(diagnose(path)) == ""


def test_every_expectation_belongs_to_a_config() -> None:
    folder = INVALID[0].parent
    assert {p.name for p in folder.glob("*.errors.txt")} == {expectation(p).name for p in INVALID}


@pytest.mark.parametrize("path", INVALID, ids=lambda p: p.name)
def test_a_mistake_is_reported_once(path: Path) -> None:
    said = [(d.path, d.place, d.code) for d in diagnose(path)]
    assert len(said) == len(set(said))
    # two errors on one field would report one mistake twice
    fields = [d.path for d in diagnose(path) if d.severity is Severity.ERROR and d.path and d.code.startswith("VX1")]
    assert len(fields) == len(set(fields))


@pytest.mark.parametrize("path", INVALID, ids=lambda p: p.name)
def test_messages_are_lowercase_clauses_with_known_codes_and_places_in_the_file(path: Path) -> None:
    lines = path.read_bytes().decode(errors="replace").removeprefix("\ufeff").split("\n")
    for d in diagnose(path):
        assert d.code in CODES
        assert not d.message.endswith(".")
        assert "\n" not in d.message + d.help
        assert (d.message + d.help).isprintable()
        assert d.message[0] == d.message[0].lower() or d.message.startswith(("NaN", "Infinity"))
        assert 1 <= d.place.line <= len(lines)
        assert 1 <= d.place.column <= len(lines[d.place.line - 1]) + 1
        assert (d.place.end_line, d.place.end_column) >= (d.place.line, d.place.column)


def test_every_code_the_text_alone_can_have_is_in_the_corpus() -> None:

    said = {d.code for path in INVALID for d in diagnose(path)}
    expected = {code.code for code in CODES.values() if code.stage is Stage.TEXT}
    assert expected - said == {"VX002", "VX008"}  # test_parse has the files that are too large to keep
