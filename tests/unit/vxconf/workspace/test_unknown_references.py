"""References to other projects that name nothing: told by a check, and refused wherever the task would run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import vxconf
from tests.conftest import REPOSITORY, Tree

Factory = Callable[[Tree], Path]

_BUILD = '[tasks.build.exec]\ncommand = "true"\n'


def _task(*lines: str) -> str:
    return "\n".join(("[tasks.t]", *lines, 'exec.command = "echo it ran"', ""))


def _vx(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vxconf", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )


def _told(root: Path) -> list[tuple[str, str]]:
    return [(one.path, one.help) for one in vxconf.load(str(root)).diagnostics if one.code == "VX312"]


@pytest.mark.parametrize(
    ("line", "path", "remedy"),
    [
        ('dependsOn = ["^build", "^bulid"]', "tasks.t.dependsOn[1]", 'did you mean "^build"?'),
        ('cache.inputs.tasks = ["q#biuld"]', "tasks.t.cache.inputs.tasks[0]", "did you mean build?"),
        ('cache.inputs.tasks = ["^nothing"]', "tasks.t.cache.inputs.tasks[0]", "check the spelling"),
        ('dependsOn = ["@x/nope#build"]', "tasks.t.dependsOn[0]", "check the spelling"),
    ],
)
def test_a_reference_that_names_nothing_is_told_in_both_lists(
    workspace_factory: Factory, line: str, path: str, remedy: str
) -> None:
    root = workspace_factory({"p/vx.toml": _task(line), "q/vx.toml": _BUILD})
    assert _told(root) == [(path, remedy)]


def test_a_task_that_any_project_has_may_be_asked_of_the_dependencies(workspace_factory: Factory) -> None:
    # a package without dependencies, or whose dependencies have no such task, has nothing to wait for
    root = workspace_factory({"p/vx.toml": _task('dependsOn = ["^t", "^build"]'), "q/vx.toml": _BUILD})
    assert _told(root) == []
    hidden = workspace_factory({"p/vx.toml": _task('dependsOn = ["^lint"]'), "q/vx.toml": "no toml"})
    assert _told(hidden) == []


@pytest.mark.parametrize(
    "line", ['dependsOn = ["^bulid"]', 'dependsOn = ["q#bulid"]', 'cache.inputs.tasks = ["nope#build"]']
)
@pytest.mark.parametrize("block", ["", "exec.sandbox = {}"])
@pytest.mark.parametrize("words", [("run", "t"), ("run", "--all", "t"), ("run", "-j1", "t", "q#build")])
def test_a_task_with_such_a_reference_runs_nothing(
    workspace_factory: Factory, line: str, block: str, words: tuple[str, ...]
) -> None:
    root = workspace_factory({"p/vx.toml": _task(line, block), "q/vx.toml": _BUILD})
    done = _vx(*words, cwd=root / "p")
    assert done.returncode == 125
    assert "VX312" in done.stderr
    assert "it ran" not in done.stdout


def test_the_library_and_explain_refuse_it_as_well(workspace_factory: Factory) -> None:
    root = workspace_factory({"p/vx.toml": _task('dependsOn = ["^bulid"]', "exec.sandbox = {}"), "q/vx.toml": _BUILD})
    with pytest.raises(vxconf.Refused) as refused:
        vxconf.load(str(root)).task("p#t").request()
    assert [one.code for one in refused.value.diagnostics] == ["VX312"]
    done = _vx("explain", "t", "--format", "json", cwd=root / "p")
    assert (done.returncode, [one["code"] for one in json.loads(done.stdout)["refusals"]]) == (1, ["VX312"])


@pytest.mark.parametrize(
    "text", ["tasks = 7\n", 'task.t.dependsOn = ["^x"]\n', "[tasks]\nt = 1\n", "[tasks.t]\ncache = []\n"]
)
def test_a_file_of_another_shape_has_no_references(workspace_factory: Factory, text: str) -> None:
    root = workspace_factory({"p/vx.toml": text})
    for words in (("check",), ("run", "t"), ("run", "--all"), ("explain", "t"), ("resolve", "t")):
        done = _vx(*words, cwd=root / "p")
        assert done.returncode in {1, 125}, done
        assert "unexpected" not in done.stderr


def test_a_check_of_a_changed_file_tells_what_it_breaks_in_others(workspace_factory: Factory) -> None:
    tree: Tree = {
        "app/vx.toml": _task('dependsOn = ["lib#build", "@x/lib#build"]'),
        "lib/vx.toml": 'name = "@x/lib"\n' + _BUILD.replace("build", "make"),
        "other/vx.toml": _task('dependsOn = ["app#nothing"]'),
    }
    root = workspace_factory(tree)
    done = _vx("check", "lib/vx.toml", cwd=root)
    assert done.returncode == 1
    found = [line.partition(": ")[0] for line in done.stdout.splitlines() if " error " in line]
    # what is wrong with a task of an unchanged project was there before
    assert found == ["app/vx.toml:2:14", "app/vx.toml:2:27"]
    assert '2 | dependsOn = ["lib#build", "@x/lib#build"]' in done.stdout


def test_a_changed_name_and_a_task_that_only_dependants_wait_for_are_broken_as_well(workspace_factory: Factory) -> None:
    app = _task('dependsOn = ["@x/lib#build", "^build"]')
    root = workspace_factory({"app/vx.toml": app, "lib/vx.toml": _BUILD.replace("build", "make")})
    done = _vx("check", "lib/vx.toml", "--format", "json", cwd=root)
    data = json.loads(done.stdout)
    assert [one["path"] for one in data["diagnostics"]] == ["tasks.t.dependsOn[0]", "tasks.t.dependsOn[1]"]
    assert (data["files"], data["errors"]) == (1, 2)
    both = json.loads(_vx("check", "lib/vx.toml", "app/vx.toml", "--format", "json", cwd=root).stdout)
    assert both["errors"] == 2
