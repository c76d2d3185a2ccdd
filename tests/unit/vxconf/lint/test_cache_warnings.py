"""Warnings about a cache whose inputs take nothing, whose outputs nobody may make, or whose key misses what is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import vxconf
from tests.conftest import Tree

Factory = Callable[[Tree], Path]

_TASK = '[tasks.t]\nexec.command = "make"\n'


def _told(root: Path) -> list[tuple[str, str]]:
    found = vxconf.load(str(root)).diagnostics
    return [(one.code, one.path.rpartition("t.")[2]) for one in found if one.code in {"VX420", "VX421", "VX422"}]


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ('files = ["scr/**"]', ["files[0]"]),
        ('files = ["src/**", "src/*.ts", "src/**/*.ts", "!gone/**", "a.json"]', []),
        ('files = ["src/*.py", "src/**/*.css", "b.json"]', ["files[0]", "files[1]", "files[2]"]),
        ('files = ["src/{a,b}.ts", "src/{b,c}.ts"]', ["files[1]"]),
        ('workspaceFiles = ["root.json", "a.json", "p/**"]', ["workspaceFiles[1]"]),
        # what a task makes is missing before it has run
        ('files = ["gen/x.ts", "gen/**"]', []),
        # an entry that is not understood is told as such alone
        ('files = ["$TURBO_DEFAULT$", "src/[slug]/**"]', []),
    ],
)
def test_an_input_that_takes_nothing_is_told(workspace_factory: Factory, inputs: str, told: list[str]) -> None:
    text = _TASK + f'cache.inputs.{inputs}\n[tasks.g]\nexec.command = "x"\ncache.outputs.files = ["gen/**"]\n'
    root = workspace_factory(
        {"p/vx.toml": text, "p/src/deep/a.ts": "", "p/src/a.ts": "", "p/a.json": "", "root.json": ""}
    )
    assert _told(root) == [("VX420", f"cache.inputs.{entry}") for entry in told]


def test_a_pattern_over_very_many_names_is_not_judged(workspace_factory: Factory) -> None:
    tree: Tree = {"p/vx.toml": _TASK + 'cache.inputs.files = ["src/*.css"]\n'} | {f"p/src/{n}": "" for n in range(501)}
    assert _told(workspace_factory(tree)) == []


@pytest.mark.parametrize(
    ("written", "outputs", "told"),
    [
        ('"dist/"', '"dist/**", "dist/a/*.js"', []),
        ('"dist"', '"dist/**"', []),
        ('"dist/*.js"', '"dist/**", "!other/x"', []),
        ('"."', '"dist/**"', []),
        ('"build/"', '"dist/**", "build/x"', [0]),
        ("", '"dist/**"', [0]),
    ],
)
def test_an_output_that_no_grant_makes_is_told(
    workspace_factory: Factory, written: str, outputs: str, told: list[int]
) -> None:
    text = _TASK + f"exec.sandbox.allow.write = [{written}]\ncache.outputs.files = [{outputs}]\n"
    root = workspace_factory({"p/vx.toml": text})
    assert _told(root) == [("VX421", f"cache.outputs.files[{index}]") for index in told]
    unsandboxed = workspace_factory({"p/vx.toml": _TASK + f"cache.outputs.files = [{outputs}]\n"})
    assert _told(unsandboxed) == []


@pytest.mark.parametrize(
    ("read", "inputs", "told"),
    [
        ('"src/", "conf/"', 'files = ["src/**"]', [1]),
        ('"src/", "conf/"', 'files = ["src/**", "conf/x"]', []),
        ('"."', 'files = ["src/**"]', []),
        ('"src/", "conf/x"', 'files = ["**/*.ts"]', []),
        ('"conf/"', 'files = ["*.json"]', [0]),
        ('"../lib/a.ts", "../root.json"', 'files = ["src/**"]\nworkspaceFiles = ["root.json"]', [0]),
        ('"../lib/"', 'files = ["src/**"]\ntasks = ["lib#build"]', []),
        ('"src/", "gen/", "/etc/hosts"', 'files = ["src/**"]', []),
        # a key without files is somebody else's to make
        ('"conf/"', 'env = ["CI"]', []),
    ],
)
def test_a_grant_that_the_key_does_not_hold_is_told(
    workspace_factory: Factory, read: str, inputs: str, told: list[int]
) -> None:
    lines = "".join(f"cache.inputs.{line}\n" for line in inputs.splitlines())
    text = _TASK + f"exec.sandbox.allow.read = [{read}]\n{lines}"
    made = '[tasks.g]\nexec.command = "x"\ncache.outputs.files = ["gen/**"]\n'
    tree: Tree = {
        "p/vx.toml": text + made,
        "p/src/a.ts": "",
        "p/conf/x": "",
        "p/a.json": "",
        "p/gen/x": "",
        "root.json": "",
        "lib/a.ts": "",
        "lib/vx.toml": '[tasks.build]\nexec.command = "x"\ncache = {}\n',
    }
    assert _told(workspace_factory(tree)) == [("VX422", f"exec.sandbox.allow.read[{index}]") for index in told]


def test_a_task_with_mistakes_gets_no_warning_that_they_may_cause(workspace_factory: Factory) -> None:
    text = _TASK + 'exec.sandbox.allow.write = "dist/"\ncache.outputs.files = ["dist/**"]\n'
    assert _told(workspace_factory({"p/vx.toml": text})) == []


def test_a_path_with_nul_in_it_is_refused_as_such(workspace_factory: Factory) -> None:
    text = _TASK + 'exec.sandbox.allow.read = ["a\\u0000"]\ncache.inputs.files = ["gone\\u0000/x", "src/**"]\n'
    root = workspace_factory({"p/vx.toml": text, "p/src/x": ""})
    assert {one.code for one in vxconf.load(str(root)).diagnostics if one.is_error} == {"VX205"}
