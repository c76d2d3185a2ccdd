"""Law: the tests that stand for the schema's patterns say what the patterns say."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vxconf.schema import patterns, schema_files


@pytest.mark.parametrize("pattern", patterns.TESTS)
@given(text=st.one_of(st.text(max_size=5), st.text("a^# \t\n\x00\x1c\x1f\x7f\x85\u00a0\u2003\u200b", max_size=5)))
@example(text="")
@example(text="a\n")
def test_a_test_says_what_its_pattern_says(pattern: str, text: str) -> None:
    # `$` is the end alone, as in the schema's own language
    assert bool(patterns.test(pattern)(text)) == bool(re.search(pattern.replace("$", r"\Z"), text))


@pytest.mark.parametrize("pattern", patterns.TESTS)
def test_so_it_is_for_every_single_character(pattern: str) -> None:
    spelled = re.compile(pattern.replace("$", r"\Z"))
    of_one = patterns.test(pattern)
    differing = [
        hex(point)
        for point in range(sys.maxunicode + 1)
        if bool(of_one(chr(point))) != bool(spelled.search(chr(point)))
    ]
    assert differing == []


def test_every_pattern_of_the_schema_has_its_test() -> None:
    told = {node["pattern"] for _, node in schema_files.walk(schema_files.load("vx")) if "pattern" in node}
    assert told <= set(patterns.TESTS)
    assert told


def test_another_pattern_is_searched_for_as_it_is_spelled() -> None:
    assert patterns.test("^b$")("b")
    assert not patterns.test("^b$")("b\n")
