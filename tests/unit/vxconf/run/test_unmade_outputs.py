"""Outputs that a task which passed did not make are told after its run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import vxconf
from tests.conftest import Tree
from vxconf.cli.commands import run
from vxconf.run.unmade_outputs import unmade_outputs_text

Factory = Callable[[Tree], Path]


@pytest.mark.parametrize(
    ("outputs", "told"),
    [
        ('"dist/**", "dist/x.js", "dist/*.css", "dist/"', []),
        ('"dsit/**", "!gone/**", "dist/y.js"', ["dsit/**", "dist/y.js"]),
        ('"{a,dist}/x.js", "{a,b}/x"', ["{a,b}/x"]),
    ],
)
def test_an_output_that_was_not_made_is_told(workspace_factory: Factory, outputs: str, told: list[str]) -> None:
    text = f'[tasks.t]\nexec.command = "true"\ncache.outputs.files = [{outputs}]\n'
    root = workspace_factory({"p/vx.toml": text, "p/dist/x.js": ""})
    lines = unmade_outputs_text(vxconf.load(str(root)).task("p#t")).splitlines()
    assert [line.split('"')[1] for line in lines] == told


@pytest.mark.parametrize(("command", "told"), [("true", True), ("false", False), ("mkdir dist", False)])
@pytest.mark.parametrize("jobs", [None, 1.0])
def test_a_run_that_failed_tells_its_failure_alone(
    workspace_factory: Factory,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    command: str,
    *,
    told: bool,
    jobs: float | None,
) -> None:
    text = f'[tasks.t]\nexec.command = "{command}"\ncache.outputs.files = ["dist/**"]\n'
    monkeypatch.chdir(workspace_factory({"p/vx.toml": text}) / "p")
    words = {"task": ["t"], "all": False, "jobs": jobs, "format": "text", "timeout": None, "args": []}
    run.main(words | dict.fromkeys(("fix", "fix_network", "verbose", "C")) | {"observer": "auto"})  # type: ignore[arg-type]
    assert ("took no file" in capfd.readouterr().err) is told
