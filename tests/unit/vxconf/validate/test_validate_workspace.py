"""A workspace file is held to its schema, with messages like those of a task file."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from vxconf.document.parse import parse
from vxconf.schema import schema_files
from vxconf.validate.schema_errors import schema_findings
from vxconf.validate.validate import validate_workspace


def said(text: str) -> list[str]:
    return [
        f"{d.place.line}:{d.place.column} {d.code} {d.message}; {d.help}"
        for d in validate_workspace(parse(text.encode(), file="workspace.toml"))
    ]


@pytest.mark.parametrize(
    "text",
    ["", 'name = "acme"\nprojects = []\ncacheDir = ".cache"\n', 'projects = ["apps/*", "libs/*"]\n'],
)
def test_workspace_file_is_accepted(text: str) -> None:
    assert said(text) == []


WRONG = {
    'project = ["apps/*"]\n': ['1:1 VX101 unknown key "project"; did you mean "projects"?'],
    'cache_dir = ".x"\n': ['1:1 VX101 unknown key "cache_dir"; did you mean "cacheDir"?'],
    "[sandbox]\n": [
        '1:2 VX101 unknown key "sandbox"; nothing is inherited: a sandbox block belongs to each task\'s exec'
    ],
    'projects = "apps/*"\n': [
        '1:12 VX102 projects must be a list of non-empty strings, not a string; write a list: ["apps/*"]'
    ],
    'projects = ["", 7]\n': [
        "1:13 VX106 projects must be a list of non-empty strings, and entry [0] is empty; remove the entry",
        '1:17 VX102 projects must be a list of non-empty strings, and entry [1] is a number; write it in quotes: "7"',
    ],
    'name = ""\ncacheDir = ""\n': [
        "1:8 VX106 name must not be empty; remove the key, or give it a value",
        "2:12 VX106 cacheDir must not be empty; remove the key, or give it a value",
    ],
    "name = 7\ncacheDir = true\n": [
        '1:8 VX102 name must be a non-empty string, not a number; write it in quotes: "7"',
        '2:12 VX102 cacheDir must be a non-empty string, not true; write it in quotes: "true"',
    ],
}


@pytest.mark.parametrize(("text", "expected"), WRONG.items(), ids=lambda v: v if isinstance(v, str) else "")
def test_workspace_file_is_refused_in_words(text: str, expected: list[str]) -> None:
    assert said(text) == expected


def test_workspace_file_nested_too_deep_is_refused_once() -> None:
    assert [line.split()[1] for line in said("projects = " + "[" * 40 + "]" * 40)] == ["VX006"]


def _loosened() -> list[tuple[str, ...]]:
    fields = schema_files.load("workspace")["properties"]
    within = [("properties", f, k) for f, node in fields.items() for k in node if k in {"type", "minLength", "items"}]
    items = [("properties", "projects", "items", k) for k in ("type", "minLength")]
    return [("additionalProperties",), *within, *items, *(("properties", f) for f in fields)]


@pytest.mark.parametrize("path", _loosened(), ids="/".join)
def test_taking_out_a_constraint_changes_a_verdict(path: tuple[str, ...]) -> None:
    mutant: Any = copy.deepcopy(schema_files.load("workspace"))
    parent = mutant
    for key in path[:-1]:
        parent = parent[key]
    del parent[path[-1]]
    texts = [*WRONG, 'name = "a"\nprojects = ["b"]\ncacheDir = "c"\n']
    data = [parse(text.encode(), file="workspace.toml").data for text in texts]

    def verdicts(root: schema_files.Schema) -> list[set[tuple[str, Any]]]:
        return [{(f.code, f.path) for f in schema_findings(d, "toml", "workspace", root)} for d in data]

    assert verdicts(mutant) != verdicts(schema_files.load("workspace"))
