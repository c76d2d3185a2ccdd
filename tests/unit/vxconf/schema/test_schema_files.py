"""The schemas themselves: valid, strict, documented, loadable from a checkout and from a wheel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft7Validator

from vxconf.schema import schema_files

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES: tuple[schema_files.Name, ...] = ("vx", "workspace", "resolved")


def _tables(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield node
        for key, child in node.items():
            if key not in {"examples", "default"}:
                yield from _tables(child)
    elif isinstance(node, list):
        for child in node:
            yield from _tables(child)


@pytest.mark.parametrize("name", NAMES)
def test_schema_is_valid_draft_07(name: schema_files.Name) -> None:
    assert schema_files.load(name)["$schema"] == "http://json-schema.org/draft-07/schema#"
    Draft7Validator.check_schema(schema_files.load(name))


@pytest.mark.parametrize("name", NAMES)
def test_no_table_takes_a_key_it_does_not_know(name: schema_files.Name) -> None:
    for table in _tables(schema_files.load(name)):
        assert table.get("additionalProperties") is not True
        assert "additionalProperties" in table


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_documented_with_examples_that_are_valid(name: schema_files.Name) -> None:
    root = schema_files.load(name)
    fields = [
        (path, node) for path, node in schema_files.walk(root) if "description" in node or path[-1] != schema_files.ANY
    ]
    assert len(fields) > 2
    for path, node in fields:
        assert node["description"].endswith("."), path
        assert node["markdownDescription"].replace("`", "") == node["description"].replace("`", ""), path
        assert node["examples"], path
        validator = Draft7Validator({**node, "definitions": root.get("definitions", {})})
        for example in [*node["examples"], *([node["default"]] if "default" in node else [])]:
            assert not list(validator.iter_errors(example)), (path, example)


def test_platform_notes_are_on_the_fields_of_one_platform() -> None:
    noted = {
        path[-1]: node["x-platform"]
        for path, node in schema_files.walk(schema_files.load("vx"))
        if "x-platform" in node
    }
    assert noted == {
        "systemInfo": "macos",
        "machLookup": "macos",
        "weakerNetworkIsolation": "macos",
        "weakerWhenNested": "linux",
    }


def test_resolved_schema_wants_every_key_of_the_contract() -> None:
    root = schema_files.load("resolved")
    assert set(root["required"]) == set(root["properties"])
    assert set(root["properties"]) == {
        *("version", "platform", "workspace", "project", "allowRead", "allowWrite", "network", "denyNetwork"),
        *("systemInfo", "unixSockets", "localBinding", "machLookup", "pty", "gitConfig", "weakerWhenNested"),
        *("weakerNetworkIsolation", "hermetic", "ignore"),
    }
    assert root["properties"]["ignore"]["required"] == ["read", "write", "systemInfo", "network"]
    validator = Draft7Validator(root)
    (good,) = root["examples"]
    assert validator.is_valid(good)
    for key in good:
        assert not validator.is_valid({k: v for k, v in good.items() if k != key})
    wrong: list[dict[str, Any]] = [
        {"network": False},
        {"network": "pkg.test"},
        {"network": [""]},
        {"localBinding": []},
        {"localBinding": [0]},
        {"localBinding": None},
        {"unixSockets": ["relative"]},
        {"allowRead": ["relative"]},
        {"workspace": "relative"},
        {"platform": "windows"},
        {"version": 2},
        {"pty": 1},
        {"extra": 1},
        {"ignore": {}},
    ]
    for change in wrong:
        assert not validator.is_valid(good | change), change
    for right in ({"network": True}, {"network": ["pkg.test"]}, {"localBinding": True}, {"unixSockets": ["/x"]}):
        assert validator.is_valid(good | right)


def test_lookup_follows_names_and_lists() -> None:
    root = schema_files.load("vx")
    assert schema_files.lookup(root, ("tasks", "any name", "exec", "sandbox", "allow", "read", 3)) == {
        "type": "string",
        "minLength": 1,
    }
    assert schema_files.lookup(root, ("tasks", "x", "nope")) is None
    port = schema_files.lookup(root, ("tasks", "x", "exec", "sandbox", "allow", "localBinding", 0))
    assert port is not None
    assert port["type"] == "integer"


def test_schema_is_found_in_a_wheel(tmp_path: Path) -> None:
    # a wheel has the schemas inside the package, a checkout beside it
    package = tmp_path / "vxconf"
    (package / "_schema").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "schema.py").write_bytes(Path(schema_files.__file__).read_bytes())
    (package / "_schema" / "vx.schema.json").write_text('{"title": "from the wheel"}')
    code = "from vxconf import schema; print(schema.load('vx')['title'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "from the wheel\n"


@pytest.mark.parametrize("name", NAMES)
def test_schema_text_is_laid_out_as_the_repository_lays_json_out(name: schema_files.Name) -> None:
    text = schema_files.text(name)
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


def test_judging_a_healthy_file_loads_no_schema_library() -> None:
    code = (
        "import sys\n"
        "from vxconf.document.parse import parse\n"
        "from vxconf.validate.validate import validate\n"
        'raw = b\'[tasks.a.exec]\\ncommand = "x"\\nsandbox.allow.network = ["pkg.test"]\\n\'\n'
        "assert validate(parse(raw, file='vx.toml')) == ()\n"
        "heavy = {'jsonschema', 'fastjsonschema', 'tree_sitter', 'rich', 'typer', 'difflib', "
        "'vxconf.diagnostics.codes.all_codes'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
