"""The reader of plain task files never differs from the standard library's."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.configs import INVALID, VALID
from vxconf.document import toml_subset

if TYPE_CHECKING:
    from pathlib import Path

_KEYS = st.sampled_from(["a", "b", "read", "x-y", "_", "1", "-", "é", '"q"', "a.b", "", "a b"])
_STRINGS = st.text(alphabet="ab\"'\\#[]{},=. \té\u2028\x7f\x00", max_size=6)
_VALUES = st.one_of(
    st.sampled_from(["true", "false", "True", "0", "12", "012", "-1", "+1", "1_0", "0x1", "1.5", "1e3", "inf"]),
    st.sampled_from(["{}", "{ }", "{a = 1}", "[", "[]", "[ ]", "[,]", "[1]", "[[]]", '["a",, "b"]', '["a" "b"]']),
    st.sampled_from(['""', "''", '"""', '""""""', "1979-05-27"]),
    st.builds('"{}"'.format, _STRINGS),
    st.builds("'{}'".format, _STRINGS),
    st.lists(st.builds('"{}"'.format, _STRINGS), max_size=3).map(lambda items: f"[{', '.join(items)}]"),
    st.lists(st.builds('"{}"'.format, _STRINGS), max_size=3).map(lambda items: f"[{', '.join(items)},]"),
    st.lists(st.builds('  "{}",'.format, _STRINGS), max_size=3).map(lambda items: "\n".join(("[", *items, "]"))),
    _STRINGS,
)
_LINES = st.one_of(
    st.builds("{}{} = {}".format, st.sampled_from(["", "", " ", "\t", "\f"]), _KEYS, _VALUES),
    st.builds("{}={}{}".format, _KEYS, _VALUES, st.sampled_from(["", " ", " # why", "#", "\r", " x", "]"])),
    st.lists(_KEYS, min_size=1, max_size=3).map(".".join).map("[{}]".format),
    st.sampled_from(["", "  ", "# why", "#\x01", "[[a]]", "[a", "a]", "]", "[", "[ a ]", "[a] # why", '"x"', ",", "="]),
)
_TEXTS = st.builds(
    lambda lines, end: end.join(lines), st.lists(_LINES, max_size=7), st.sampled_from(["\n", "\n", "\r\n", "\r"])
)


@settings(max_examples=80, deadline=None)
@given(st.one_of(_TEXTS, st.lists(st.sampled_from("a=[]{}\"',.#\n \\\r1"), max_size=12).map("".join)))
def test_what_it_reads_the_standard_library_reads_alike(text: str) -> None:
    found = toml_subset.read(text)
    if found is not None:
        expected = tomllib.loads(text)
        assert found == expected
        # True is 1 to `==`
        assert repr(found) == repr(expected)


@pytest.mark.parametrize("path", [p for p in (*VALID, *INVALID) if p.suffix == ".toml"], ids=lambda p: p.name)
def test_the_corpus_reads_alike(path: Path) -> None:
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return
    found = toml_subset.read(text)
    if found is not None:
        assert repr(found) == repr(tomllib.loads(text))


def test_it_reads_what_people_write() -> None:
    text = """# what a task may touch
[tasks.build]
dependsOn = ["^build"]

[tasks.build.exec]
command = "tsc -b 'x'"
timeout = 60
persistent = false

[tasks.build.exec.sandbox.allow]
read = [
    "package.json",
    "src/**",
]
write = ["dist/"]
"""
    assert toml_subset.read(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "a = 1\na = 2\n",
        "[a]\n[a]\n",
        "[a]\nb = {}\n[a.b]\n",
        "[a]\nb = 1\n[a.b]\n",
        "[a.b]\n[a]\nb = 1\n",
        'a = "\\n"\n',
    ],
)
def test_what_needs_care_it_leaves(text: str) -> None:
    assert toml_subset.read(text) is None
