"""Diagnostics are values, and the table documents their codes."""

from __future__ import annotations

import pytest

from vxconf.diagnostics.codes.all_codes import CODES
from vxconf.diagnostics.codes.code import Code, Stage
from vxconf.diagnostics.diagnostic import (
    Diagnostic,
    FieldPath,
    Place,
    Severity,
    UnreadableFile,
    dotted,
    in_order,
    quoted,
)


def diagnostic(line: int, column: int, code: str = "VX101") -> Diagnostic:
    place = Place(line, column, line, column + 1)
    return Diagnostic(code=code, severity=Severity.ERROR, file="vx.toml", place=place, path="", message="no")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("tasks", "build", "exec", "sandbox", "allow", "network", 0), "tasks.build.exec.sandbox.allow.network[0]"),
        (("tasks", "a.b", "x"), 'tasks."a.b".x'),
        (("tasks", "é"), 'tasks."é"'),
        (("",), '""'),
        (("tasks", 'q"\\'), 'tasks."q\\"\\\\"'),
        ((0, 1), "[0][1]"),
    ],
)
def test_a_field_is_written_as_toml_would(path: FieldPath, text: str) -> None:
    assert dotted(path) == text


def test_quoted_text_is_safe_to_print() -> None:
    assert quoted("a\x1b[31m\n\t\r\0\ud800é") == '"a\\u001b[31m\\n\\t\\r\\u0000\\ud800é"'
    assert quoted("a\x1b\u202e").isprintable()
    # a code point of more than four digits has an escape of its own in TOML
    assert quoted("\U000e0001") == '"\\U000e0001"'


def test_diagnostics_are_in_the_order_of_the_file_and_once() -> None:
    late, early, same = diagnostic(10, 1), diagnostic(2, 9), diagnostic(2, 9)
    assert in_order([late, early, same]) == (early, late)
    assert in_order([diagnostic(1, 1, "VX102"), diagnostic(1, 1)])[0].code == "VX101"


def test_severities_are_their_names() -> None:
    assert f"{Severity.ERROR} {Severity.WARNING}" == "error warning"
    assert diagnostic(1, 1).is_error


def test_unreadable_names_every_place() -> None:
    assert str(UnreadableFile((diagnostic(1, 2), diagnostic(3, 4)))) == "vx.toml:1:2: no; vx.toml:3:4: no"


@pytest.mark.parametrize("code", CODES.values(), ids=lambda c: c.code)
def test_a_code_is_named_by_its_family_and_documented(code: Code) -> None:
    assert CODES[code.code] is code
    assert code.code.startswith("VX")
    assert len(code.code) == 5
    assert code.title[0].islower() or code.title.startswith(("UTF", "TOML", "JSON"))
    assert not code.title.endswith(".")
    assert code.means.endswith(".")
    assert (code.severity is Severity.WARNING) == (code.code[2] == "4")
    if code.code[2] in "35" and code.code != "VX305":
        assert code.stage is Stage.HOST
    if code.wrong:
        assert code.right
        assert code.wrong != code.right


def test_codes_and_slugs_are_unique_and_ordered() -> None:
    assert list(CODES) == sorted(CODES)
    assert len({code.slug for code in CODES.values()}) == len(CODES)
