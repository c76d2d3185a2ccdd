from __future__ import annotations

import json
import pickle
from typing import Any

import jsonschema
import pytest

from sandbox.contract.config import Ignore, ResolvedSandboxConfig
from sandbox.contract.errors import RequestRefused
from sandbox.wire.config_json import from_dict, from_json, to_dict, to_json
from tests.conftest import REPOSITORY

SCHEMA = REPOSITORY / "schema" / "resolved.schema.json"

FULL = ResolvedSandboxConfig(
    platform="linux",
    workspace="/ws",
    project="/ws/p",
    allow_read=("/ws/p/", "/ws/p/caf\udce9", r"/ws/p/\[id\]", "/ws/p/**/*.py"),
    allow_write=("/ws/p/out/",),
    network=("pkg.test:443",),
    deny_network=("*:22",),
    system_info=("hw.ncpu",),
    unix_sockets=("/run/x.sock",),
    local_binding=(8000,),
    mach_lookup=("com.apple.x",),
    pty=True,
    git_config=True,
    weaker_when_nested=True,
    weaker_network_isolation=True,
    hermetic=True,
    ignore=Ignore(read=("/a",), write=("/b",), system_info=("c",), network=("d:1",)),
)
BARE = ResolvedSandboxConfig(platform="macos", workspace="/ws", project="/ws")


def refused(data: object) -> list[tuple[str, str]]:
    with pytest.raises(RequestRefused) as caught:
        from_dict(data)
    assert all(refusal.code == "VX315" and refusal.hint for refusal in caught.value.refusals)
    return [(refusal.field, refusal.message) for refusal in caught.value.refusals]


@pytest.mark.parametrize("config", [FULL, BARE])
def test_a_config_comes_back_from_its_json(config: ResolvedSandboxConfig) -> None:
    assert from_json(to_json(config)) == config
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301  our own bytes
    assert hash(from_json(to_json(config))) == hash(config)


@pytest.mark.parametrize("config", [FULL, BARE])
def test_the_json_is_valid_against_the_schema_and_its_keys_are_sorted(config: ResolvedSandboxConfig) -> None:
    jsonschema.validate(to_dict(config), json.loads(SCHEMA.read_text(encoding="utf-8")))
    text = to_json(config)
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    text.encode("ascii")


def test_keys_are_those_other_programs_read() -> None:
    assert sorted(to_dict(BARE)) == sorted(
        [
            "version",
            "platform",
            "workspace",
            "project",
            "allowRead",
            "allowWrite",
            "network",
            "denyNetwork",
            "systemInfo",
            "unixSockets",
            "localBinding",
            "machLookup",
            "pty",
            "gitConfig",
            "weakerWhenNested",
            "weakerNetworkIsolation",
            "hermetic",
            "ignore",
        ]
    )
    assert sorted(to_dict(BARE)["ignore"]) == ["network", "read", "systemInfo", "write"]


WRONG: list[tuple[str, object]] = [
    ("version", 2),
    ("version", True),
    ("platform", "windows"),
    ("workspace", "ws"),
    ("project", None),
    ("allowRead", "/ws"),
    ("allowRead", ["lib"]),
    ("allowWrite", [7]),
    ("network", False),
    ("network", [""]),
    ("network", "pkg.test"),
    ("denyNetwork", None),
    ("systemInfo", [1]),
    ("unixSockets", ["run/x"]),
    ("unixSockets", False),
    ("localBinding", []),
    ("localBinding", [0]),
    ("localBinding", [65536]),
    ("localBinding", [True]),
    ("localBinding", 8000),
    ("machLookup", {}),
    ("pty", "yes"),
    ("gitConfig", 1),
    ("weakerWhenNested", None),
    ("weakerNetworkIsolation", 0),
    ("hermetic", []),
    ("ignore", []),
]


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_a_wrong_value_is_named_and_the_schema_agrees(key: str, value: object) -> None:
    data = to_dict(FULL) | {key: value}
    ((field, message),) = refused(data)
    assert field == key
    assert message.startswith(f'"{key}" is not ')
    schema: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    # draft-07 has one number type, and Python takes true for 1
    if value is not True:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(data, schema)


@pytest.mark.parametrize("key", sorted(to_dict(FULL)))
def test_a_missing_key_is_named(key: str) -> None:
    data = to_dict(FULL)
    del data[key]
    assert refused(data) == [(key, f'key "{key}" is missing')]


def test_unknown_keys_and_wrong_parts_of_ignore_are_named_together() -> None:
    data = to_dict(FULL) | {"extra": 1, "ignore": {"read": ["x"], "write": "y", "system_info": []}}
    assert [field for field, _ in refused(data)] == [
        "ignore.write",
        "ignore.systemInfo",
        "ignore.network",
        "ignore.system_info",
        "extra",
    ]


@pytest.mark.parametrize("data", [None, [], "x", 1])
def test_what_is_no_object_is_refused(data: object) -> None:
    assert refused(data) == [("", "the resolved config is not an object")]


@pytest.mark.parametrize("text", ["", "{", '{"version":1,"version":1}', "[" * 100_000])
def test_text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(RequestRefused, match="the resolved config is not JSON: "):
        from_json(text)
