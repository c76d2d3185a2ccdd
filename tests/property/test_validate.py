"""Any document gets diagnostics or none; what cannot be read is `UnreadableFile`, and never another exception."""

from __future__ import annotations

import copy
import json
import tomllib
from typing import TYPE_CHECKING, Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from sandbox.base.host_patterns import PatternRefused, check_pattern
from tests.support.configs import judge
from vxconf.diagnostics.diagnostic import UnreadableFile
from vxconf.document.parse import parse
from vxconf.document.spans import locate
from vxconf.schema import _generated_validator, _generated_workspace_validator, generate, schema_files
from vxconf.validate.validate import validate

if TYPE_CHECKING:
    from vxconf.document.document import Document

_KEYS = sorted({part for path, _ in schema_files.walk(schema_files.load("vx")) for part in path} - {schema_files.ANY})

_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [0, 1, 8080, 65535, 65536, -1, 0.5, 1.0, 31536001, "", " ", ".", "pkg.test", "^build", "a#b", "x\n"]
    ),
    st.text(max_size=5),
)
_loose = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


def _like(node: schema_files.Schema) -> st.SearchStrategy[Any]:
    """Documents near the schema: mostly the right shape, so that every branch is walked."""
    root = schema_files.load("vx")
    node = schema_files.resolve(root, node)
    if "anyOf" in node:
        right: st.SearchStrategy[Any] = st.one_of(*map(_like, node["anyOf"]))
    elif "enum" in node:
        right = st.sampled_from(node["enum"])
    elif node.get("type") == "array":
        right = st.lists(_like(node["items"]), max_size=2)
    elif node.get("type") == "object":
        known = {key: _like(sub) for key, sub in node.get("properties", {}).items()}
        rest = node.get("additionalProperties")
        right = st.fixed_dictionaries({}, optional=known)
        if isinstance(rest, dict):
            right = st.dictionaries(st.sampled_from(["build", "a b", "#", "", "^x"]), _like(rest), max_size=2)
    else:
        right = st.sampled_from(node["examples"]) if "examples" in node else _scalars
    return st.integers(0, 15).flatmap(lambda chance: _loose if chance == 0 else right)


_documents = _like(schema_files.load("vx"))


def _fast(module: Any, data: object) -> bool:
    try:
        module.validate(data)
    except _generated_validator.Invalid:
        return False
    return True


@settings(max_examples=80)
@given(data=_documents | _loose)
@example(data={"tasks": {"a\n": {}}})
@example(data={"name": "x\n"})
@example(data={"tasks": {"a": {"exec": {"command": "x", "sandbox": {"allow": {"localBinding": [8080.0, True]}}}}}})
def test_the_fast_validator_says_what_the_schema_says(data: object) -> None:
    assert _fast(_generated_validator, data) == Draft7Validator(schema_files.load("vx")).is_valid(data)


@given(data=st.dictionaries(st.sampled_from(["name", "projects", "cacheDir", "x"]), _loose, max_size=3) | _loose)
def test_the_fast_validator_of_the_workspace_says_what_its_schema_says(data: object) -> None:
    assert _fast(_generated_workspace_validator, data) == Draft7Validator(schema_files.load("workspace")).is_valid(data)


def _document(data: object) -> Document:
    return parse(json.dumps(data).encode(), file="vx.json")


@settings(max_examples=80)
@given(data=_documents | _loose)
def test_judging_never_raises_and_changes_nothing(data: object) -> None:
    try:
        document = _document(data)
    except UnreadableFile:
        return
    before = copy.deepcopy(document.data)
    said = validate(document)
    assert document.data == before
    assert said == validate(document)
    schema_says = Draft7Validator(schema_files.load("vx")).is_valid(document.data)
    assert schema_says == (not any(d.code.startswith("VX1") and d.code != "VX103" for d in said))
    lines = document.text.split("\n")
    for d in said:
        assert 1 <= d.place.line <= len(lines)
        assert d.place.column <= len(lines[d.place.line - 1]) + 1


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(child) for key, child in reversed(value.items())}
    return [_reversed(child) for child in value] if isinstance(value, list) else value


@given(data=_documents)
def test_the_order_of_keys_changes_no_verdict(data: object) -> None:
    try:
        document = _document(data)
    except UnreadableFile:
        return
    # a circle is closed by whichever reference comes last
    said = sorted((d.code, d.path, d.message) for d in validate(document) if d.code != "VX210")
    other = sorted((d.code, d.path, d.message) for d in validate(_document(_reversed(data))) if d.code != "VX210")
    assert said == other


@settings(max_examples=80)
@given(raw=st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "surrogatepass")))
def test_random_bytes_are_a_document_or_unreadable(raw: bytes) -> None:
    for file in ("vx.toml", "vx.json", "vx.txt"):
        for d in judge(raw, file):
            assert d.place.line >= 1
            assert d.place.column >= 1
            assert d.message


_toml_bits = st.lists(
    st.sampled_from(
        ["[", "]", "{", "}", "=", ".", ",", '"', "'", '"""', "'''", "\n", "\r\n", "#", "a", "tasks", "é", "\\"]
    )
    | st.sampled_from(
        [" ", "1", "0x", "true", "inf", "1979-05-27", "[[", "]]", "x = 1\n", "[tasks.a]\n", "\x00", "\u2028"]
    ),
    max_size=30,
).map("".join)


@settings(max_examples=80)
@given(text=_toml_bits)
def test_nearly_toml_is_a_document_or_unreadable(text: str) -> None:
    lines = text.split("\n")
    for file in ("vx.toml", "vx.json"):
        for d in judge(text.encode(), file):
            assert 1 <= d.place.line <= len(lines)
            assert 1 <= d.place.column <= len(lines[d.place.line - 1]) + 1


_data = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=4),
    st.recursive(
        st.integers(-5, 5) | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=4) | st.booleans(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=3), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)


def _paths(value: Any, at: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [found for key, child in children for found in _paths(child, (*at, key))]
    return inner or [(at, value)]


@given(data=_data)
def test_every_value_of_a_json_text_is_at_its_place(data: dict[str, Any]) -> None:
    document = parse(json.dumps(data, ensure_ascii=False).encode(), file="vx.json")
    for path, value in _paths(data):
        place = locate(document, path)
        assert json.loads(document.text[place.column - 1 : place.end_column - 1]) == value


@given(data=_data)
def test_toml_made_of_any_data_reads_back(data: dict[str, Any]) -> None:
    assert tomllib.loads(generate.toml(data)) == data


@settings(max_examples=80)
@given(entry=st.text(st.sampled_from("ab.*:[]1%/@-_ é\0x0"), max_size=12), allow=st.booleans())
def test_a_host_pattern_is_refused_or_has_one_form(entry: str, *, allow: bool) -> None:
    try:
        pattern = check_pattern(entry, allow=allow)
    except PatternRefused:
        return
    assert str(pattern).isascii()
    assert check_pattern(str(pattern), allow=allow) == pattern
    # what may be allowed may be denied
    assert check_pattern(entry, allow=False) == pattern
