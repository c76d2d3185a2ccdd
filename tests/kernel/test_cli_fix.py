"""`vxconf run --fix` through real processes: the file it leaves lets the next run pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, Tree

Factory = Callable[[Tree], Path]

_COMMAND = "cat src/x notes.md; cat optional.ini; mkdir -p gen && echo a > gen/a; echo b > log.txt; true"
_HEAD = f"[tasks.t.exec]\ncommand = {json.dumps(_COMMAND)}\n"
_BLOCKS = {
    "headers": f"{_HEAD}\n[tasks.t.exec.sandbox.allow]\nread = ['src/'] # sources\n\n# the end\n",
    "dotted": f"{_HEAD}sandbox.allow.read = [\n  'src/',\n]\n",
    "inline": f"{_HEAD}sandbox = {{ allow = {{ read = ['src/'] }} }}\n",
    "cached": f"{_HEAD}sandbox.allow.read = ['src/']\n\n[tasks.t.cache]\noutputs.files = ['gen/**']\n",
}


def _run(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "vxconf", *words]
    return subprocess.run(
        command, cwd=project, env=env, capture_output=True, check=False, text=True, stdin=subprocess.DEVNULL
    )


def _project(make: Factory, text: str, name: str = "vx.toml") -> Path:
    return make({f"p/{name}": text, "p/src/x": "x\n", "p/notes.md": "notes\n"}) / "p"


@pytest.mark.parametrize("shape", _BLOCKS)
def test_a_failed_run_is_fixed_and_the_next_one_passes(workspace_factory: Factory, shape: str) -> None:
    project = _project(workspace_factory, _BLOCKS[shape])
    failed = _run(project, "run", "t", "--fix")
    assert failed.returncode == 1, failed.stderr
    for entry, field in (("notes.md", "allow.read"), ("gen", "allow.write"), ("log.txt", "allow.write")):
        assert f': added "{entry}" to tasks.t.exec.sandbox.{field}' in failed.stderr
    assert ': added "optional.ini" to tasks.t.exec.sandbox.ignore.read' in failed.stderr
    assert ": add " not in failed.stderr
    assert (': added "notes.md" to tasks.t.cache.inputs.files' in failed.stderr) is (shape == "cached")
    assert _run(project, "check").returncode == 0
    passed = _run(project, "run", "t", "--fix")
    assert (passed.returncode, passed.stdout) == (0, "x\nnotes\n"), passed.stderr
    assert "added" not in passed.stderr
    assert ((project / "gen/a").read_text(), (project / "log.txt").read_text()) == ("a\n", "b\n")


def test_the_json_has_what_was_changed_beside_what_was_suggested(workspace_factory: Factory) -> None:
    text = json.dumps({"tasks": {"t": {"exec": {"command": "cat notes.md; true", "sandbox": {}}}}}, indent=2)
    project = _project(workspace_factory, text, "vx.json")
    data = json.loads(_run(project, "run", "t", "--fix", "--format", "json").stdout)
    assert data["fix"]["allow"]["read"] == ["notes.md"]
    assert data["unfixed"] is None
    where = {"file": "vx.json", "line": 8, "path": "tasks.t.exec.sandbox.allow.read", "entry": "notes.md"}
    assert data["changes"] == [where]
    assert data["violations"][0]["class"] == "grant"
    again = json.loads(_run(project, "run", "t", "--fix", "--format", "json").stdout)
    assert (again["exitCode"], again["changes"], again["unfixed"]) == (0, [], None)


def test_a_failure_that_no_entry_cures_writes_nothing_and_says_so(workspace_factory: Factory) -> None:
    project = _project(workspace_factory, _HEAD.replace(_COMMAND, "exit 3") + "sandbox = {}\n")
    before = (project / "vx.toml").read_bytes()
    done = _run(project, "run", "t", "--fix")
    assert done.returncode == 3
    assert "nothing was written: nothing was denied: exit 3 is the command's own" in done.stderr
    assert (project / "vx.toml").read_bytes() == before


@pytest.mark.parametrize("outputs", ["", "cache.outputs.files = ['build/**']\n"])
@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("mkdir build && echo 1 > build/1", True),
        ("mkdir build && mkdir build/b && echo 1 > build/b/x", True),
        ("mkdir -p build && echo 1 > build/1 && rm -r build", False),
    ],
)
def test_a_directory_the_task_makes_is_granted_so_that_it_can(
    workspace_factory: Factory, command: str, left: bool, outputs: str
) -> None:
    text = f"[tasks.t]\n{outputs}exec.command = {json.dumps(command)}\nexec.sandbox = {{}}\n"
    project = _project(workspace_factory, text)
    failed = _run(project, "run", "t", "--fix")
    assert ': added "build" to tasks.t.exec.sandbox.allow.write' in failed.stderr, failed.stderr
    passed = _run(project, "run", "t")
    assert passed.returncode == 0, passed.stderr
    assert (project / "build").exists() is left


def test_a_name_other_programs_execute_is_written_into_no_file(workspace_factory: Factory) -> None:
    command = "echo 1 > .bashrc; mkdir .vscode; true"
    project = _project(workspace_factory, _HEAD.replace(json.dumps(_COMMAND), json.dumps(command)) + "sandbox = {}\n")
    data = json.loads(_run(project, "run", "t", "--fix", "--format", "json").stdout)
    assert [violation["class"] for violation in data["violations"]] == ["tool-fault", "tool-fault"]
    assert (data["fix"], data["changes"]) == (None, [])
    assert data["unfixed"]["message"] == "no entry would let the task pass"


def test_without_the_flag_nothing_is_written(workspace_factory: Factory) -> None:
    project = _project(workspace_factory, _BLOCKS["headers"])
    done = _run(project, "run", "t")
    assert done.returncode == 1
    assert 'add "notes.md" to tasks.t.exec.sandbox.allow.read' in done.stderr
    assert (project / "vx.toml").read_text() == _BLOCKS["headers"]
