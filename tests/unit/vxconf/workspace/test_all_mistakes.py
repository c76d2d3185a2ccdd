"""A mistake in a task hides none of its others, and never makes a task look as if it had no sandbox block."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import vxconf
from tests.conftest import Link, Tree
from vxconf.cli.commands import explain, run

if TYPE_CHECKING:
    from vxconf.cli.arguments import Arguments

Factory = Callable[[Tree], Path]

_TASK = '[tasks.t]\nexec.command = "true"\n'
_OUT = 'exec.sandbox.allow.write = ["out/x"]\n'


def _found(root: Path) -> list[tuple[int, str]]:
    return [(one.place.line, one.code) for one in vxconf.load(str(root)).diagnostics if one.is_error]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (_TASK + 'exec.timeout = "soon"\n' + _OUT, [(3, "VX102"), (4, "VX301")]),
        (_TASK + "exec.timout = 20\n" + _OUT, [(3, "VX101"), (4, "VX301")]),
        (_TASK.replace('"true"', '["make"]') + _OUT, [(2, "VX102"), (3, "VX301")]),
        ("[tasks.t]\n" + _OUT, [(2, "VX104"), (2, "VX301")]),
        (_TASK + "exec.sandbox.allow.write = [\n1,\n'out/x',\n'out/y']\n", [(4, "VX102"), (5, "VX301"), (6, "VX301")]),
        (_TASK + 'exec.sandbox.allow.network = ["a b"]\n' + _OUT, [(3, "VX103"), (4, "VX301")]),
        (_TASK + 'dependsOn = [1, "nope#x"]\n' + _OUT, [(3, "VX102"), (3, "VX312"), (4, "VX301")]),
        (_TASK + 'exec.persistent.readyWhen = {port = 1, output = "x"}\n' + _OUT, [(3, "VX109"), (4, "VX301")]),
        (_TASK.replace(".t]", '."#"]') + _OUT, [(1, "VX108"), (3, "VX301")]),
    ],
)
def test_every_mistake_of_a_task_is_told_at_once(
    workspace_factory: Factory, text: str, found: list[tuple[int, str]]
) -> None:
    root = workspace_factory({"p/vx.toml": text, "p/out": Link("../elsewhere"), "elsewhere": None})
    assert sorted(_found(root)) == found


def test_a_run_that_is_refused_tells_every_mistake(workspace_factory: Factory) -> None:
    text = _TASK + 'exec.timeout = "soon"\n' + _OUT + 'dependsOn = ["^nothing"]\n'
    root = workspace_factory({"p/vx.toml": text, "p/out": Link("../elsewhere"), "elsewhere": None})
    with pytest.raises(vxconf.Refused) as refused:
        vxconf.load(str(root)).task("p#t").resolve()
    assert [one.code for one in refused.value.diagnostics] == ["VX102", "VX301", "VX312"]


_SEVERAL = """
[tasks.block.exec]
command = "true"
sandbox = true
[tasks.misspelt.exec]
command = "true"
sandbx = {}
[tasks.string]
exec = "make"
[tasks.misplaced]
exec.command = "true"
sandbox = {}
[tasks.rest.exec]
command = 3
sandbox.allow.read = ["src/", 3]
"""


@pytest.mark.parametrize("task", ["block", "misspelt", "string", "misplaced", "rest", "hidden"])
@pytest.mark.parametrize("why", [None, "src/a", "pkg.test:443"])
def test_a_task_with_mistakes_is_never_called_unsandboxed(
    workspace_factory: Factory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    task: str,
    why: str | None,
) -> None:
    text = _SEVERAL if task != "hidden" else "[tasks.hidden"
    monkeypatch.chdir(workspace_factory({"p/vx.toml": text, "p/src/a": ""}) / "p")
    words: Arguments = {"task": task, "platform": "all", "format": "text", "why": why, "mechanism": False, "C": None}
    assert explain.main(words) == 1
    told = capsys.readouterr().out
    assert "everything this user may do" not in told
    assert "no sandbox block" not in told
    if task == "rest" and why is None:
        assert 'allow.read[0] = "src/"' in told
    assert explain.main({**words, "format": "json"}) == 1
    data: Any = json.loads(capsys.readouterr().out)
    if why is None:
        assert data["sandboxed"] is True
        assert data["refusals"]
    elif why == "src/a":
        assert data["read"]["allowed"] is (task == "rest")


def test_a_task_with_mistakes_is_refused_with_the_whole_json(
    workspace_factory: Factory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workspace_factory({"p/vx.toml": _SEVERAL, "p/src/a": ""}) / "p")
    words: Arguments = {"task": ["block"], "all": False, "jobs": None, "format": "json", "timeout": None, "C": None}
    assert run.main(words) == 125
    data = json.loads(capsys.readouterr().out)
    assert (data["sandboxed"], data["started"], data["exitCode"], data["commandExitCode"]) == (True, False, 125, None)
    assert [one["code"] for one in data["refusals"]] == ["VX102", "VX101", "VX102", "VX101", "VX102", "VX102"]
    assert all({"message", "hint", "line", "path"} <= one.keys() for one in data["refusals"])
