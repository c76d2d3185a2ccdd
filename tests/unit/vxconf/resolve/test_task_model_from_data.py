"""Valid data becomes a model with every field."""

from __future__ import annotations

from tests.support.task_data import as_data
from vxconf.resolve.task_model import FileModel
from vxconf.resolve.task_model_from_data import fill_defaults

_EVERY_FIELD = {
    "name": "@acme/shop",
    "tasks": {
        "serve": {
            "exec": {
                "command": "serve",
                "timeout": 3,
                "persistent": {"readyWhen": {"port": 80}, "timeout": 1.5},
                "env": {"define": {"B": "2", "A": "1"}, "passThrough": ["CC"]},
            }
        },
        "build": {
            "dependsOn": ["^build", "gen"],
            "exec": {
                "command": "make",
                "sandbox": {
                    "allow": {
                        "read": ["a", "b", "a"],
                        "write": ["dist/"],
                        "network": ["pkg.test"],
                        "systemInfo": ["hw.ncpu"],
                        "unixSockets": ["/run/x.sock"],
                        "localBinding": [80, 81],
                        "machLookup": ["com.apple.x"],
                        "pty": True,
                        "gitConfig": True,
                    },
                    "deny": {"network": ["*"]},
                    "ignore": {"read": ["r"], "write": ["w"], "systemInfo": ["s"], "network": ["n"]},
                    "hermetic": True,
                    "weakerWhenNested": True,
                    "weakerNetworkIsolation": True,
                },
            },
            "cache": {
                "inputs": {"files": ["f"], "workspaceFiles": ["w"], "tasks": ["t"], "env": ["E"], "runtime": ["r"]},
                "outputs": {"files": ["o"]},
            },
        },
    },
}


def test_every_field_of_the_file_reaches_the_model_and_comes_back() -> None:
    model = fill_defaults(_EVERY_FIELD)
    assert fill_defaults(as_data(model)) == model
    block = model.tasks[0].exec.sandbox if model.tasks[0].exec else None
    assert block is not None
    untouched = [name for name, default in block._field_defaults.items() if getattr(block, name) == default]
    assert untouched == []


def test_each_entry_keeps_its_place_in_the_file() -> None:
    block = fill_defaults(_EVERY_FIELD).tasks[0].exec
    assert block is not None
    assert block.sandbox is not None
    assert block.sandbox.read[2].path == ("tasks", "build", "exec", "sandbox", "allow", "read", 2)
    assert block.sandbox.ignore_network[0].path == ("tasks", "build", "exec", "sandbox", "ignore", "network", 0)


def test_an_absent_block_is_no_sandbox_and_an_empty_one_the_baseline() -> None:
    model = fill_defaults({"tasks": {"a": {"exec": {"command": "x"}}, "b": {"exec": {"command": "x", "sandbox": {}}}}})
    a, b = model.tasks
    assert a.exec is not None
    assert a.exec.sandbox is None
    assert b.exec is not None
    assert b.exec.sandbox is not None
    assert (b.exec.sandbox.read, b.exec.sandbox.write, b.exec.sandbox.network) == ((), (), None)


def test_a_cache_table_grants_nothing() -> None:
    cache = {"inputs": {"files": ["lib/**"]}, "outputs": {"files": ["out/**"]}}
    model = fill_defaults({"tasks": {"a": {"exec": {"command": "x", "sandbox": {}}, "cache": cache}}})
    run = model.tasks[0].exec
    assert run is not None
    assert run.sandbox is not None
    assert run.sandbox.read == run.sandbox.write == ()


def test_an_empty_file_has_no_tasks() -> None:
    assert fill_defaults({}) == FileModel()
