"""Places are exact: the text at the place of a value is that value."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.configs import documents
from vxconf.diagnostics.diagnostic import Place
from vxconf.document.parse import parse
from vxconf.document.spans import locate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vxconf.diagnostics.diagnostic import FieldPath
    from vxconf.document.document import Document

TOML = '''\
name = "é"
[tasks."bé.d"]
exec.command = "é" # comment
"q.k" . 'z' = [1, {a = "é", "b" = [3, 4]}, # comment
  5]
[[tasks.arr]]
x = """
multi ü"""
[[tasks.arr]]
x = 1
[tasks.arr.sub]
q = 2
[[tasks.arr.deep]]
r = 3
[late.child]
s = 4
[late]
t = 5
'''


def text_at(document: Document, place: Place) -> str:
    lines = document.text.split("\n")
    if place.line == place.end_line:
        return lines[place.line - 1][place.column - 1 : place.end_column - 1]
    first, last = lines[place.line - 1][place.column - 1 :], lines[place.end_line - 1][: place.end_column - 1]
    return "\n".join([first, *lines[place.line : place.end_line - 1], last])


def at(document: Document, *path: str | int, key: bool = False) -> str:
    return text_at(document, locate(document, path, key=key))


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        (("name",), '"é"', "name"),
        (("tasks",), "tasks", "tasks"),
        (("tasks", "bé.d"), 'tasks."bé.d"', '"bé.d"'),
        (("tasks", "bé.d", "exec"), "exec", "exec"),
        (("tasks", "bé.d", "exec", "command"), '"é"', "command"),
        (("tasks", "bé.d", "q.k", "z", 1, "a"), '"é"', "a"),
        (("tasks", "bé.d", "q.k", "z", 1, "b", 1), "4", "4"),
        (("tasks", "bé.d", "q.k", "z", 2), "5", "5"),
        (("tasks", "arr", 0), "tasks.arr", "arr"),
        (("tasks", "arr", 0, "x"), '"""\nmulti ü"""', "x"),
        (("tasks", "arr", 1, "x"), "1", "x"),
        (("tasks", "arr", 1, "sub", "q"), "2", "q"),
        (("tasks", "arr", 1, "deep", 0, "r"), "3", "r"),
        (("late",), "late", "late"),
        (("late", "child", "s"), "4", "s"),
        (("late", "t"), "5", "t"),
    ],
)
def test_toml_values_and_keys_are_where_they_are(path: FieldPath, value: str, key: str) -> None:
    document = parse(TOML.encode(), file="vx.toml")
    assert at(document, *path) == value
    assert at(document, *path, key=True) == key


def test_json_values_and_keys_are_where_they_are() -> None:
    document = parse('\ufeff{"é": [1, {"b\\n": null,\n "c": {}}]}'.encode(), file="vx.json")
    assert at(document, "é", 1, "b\n") == "null"
    assert at(document, "é", 1, "b\n", key=True) == '"b\\n"'
    assert at(document, "é", 1, "c") == "{}"
    assert locate(document, ("é", 1, "c")).line == 2


@pytest.mark.parametrize("missing", [("tasks", "bé.d", "exec", "nope"), ("tasks", "bé.d", "exec", "nope", 3, "x")])
def test_a_missing_value_has_the_place_of_the_value_around_it(missing: FieldPath) -> None:
    document = parse(TOML.encode(), file="vx.toml")
    assert at(document, *missing) == "exec"
    assert at(document, *missing, key=True) == "exec"


def test_the_root_has_a_place() -> None:
    assert locate(parse(b"x = 1", file="vx.toml"), ()) == Place(1, 1, 1, 1)
    assert locate(parse(b" [1]", file="vx.json"), ()) == Place(1, 2, 1, 5)
    assert locate(parse(b"", file="vx.toml"), ("x",)) == Place(1, 1, 1, 1)


def _leaves(value: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    if isinstance(value, dict | list) and value:
        children = value.items() if isinstance(value, dict) else enumerate(value)
        for key, child in children:
            yield from _leaves(child, (*path, key))
    else:
        yield path, value


@pytest.mark.parametrize("document", documents(), ids=lambda d: d.file)
def test_every_value_of_the_corpus_is_found_at_its_place(document: Document) -> None:
    for path, value in _leaves(document.data):
        if not path or document.data == {} or value == {}:
            continue
        text = at(document, *path)
        if document.format == "json":
            assert json.loads(text) == value
        elif isinstance(value, int | str | bool):
            assert tomllib.loads(f"x = {text}")["x"] == value
