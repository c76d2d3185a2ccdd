"""Implied items follow from a task's place and its cache key; each has a reason, and `--why` gives the same one."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import Link, make_tree
from vxconf.cli.commands import explain

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Tree
    from vxconf.cli.arguments import Arguments

_BUILD = (
    '[tasks.build]\ncache = {{}}\ndependsOn = [{needs}]\n[tasks.build.exec]\ncommand = "x"\nsandbox = {{ {block} }}\n'
)
_DATES = '[tasks.build]\nexec.command = "x"\ncache.outputs.files = ["dist/**"]\n'
_TREE: Tree = {
    "libs/money/vx.toml": "",
    "libs/money/src/coin.py": "",
    "libs/dates/vx.toml": _DATES,
    "libs/dates/dist/d.js": "",
    "libs/dates/kit/vx.toml": "",
    "vendor/x/i.js": "",
    "vendor/x/package.json": '{"name": "x"}',
    "libs/money/package.json": '{"name": "@acme/money"}',
    "libs/dates/package.json": '{"name": "dates"}',
    "node_modules/@acme/money": Link("../../libs/money"),
    "node_modules/dates": Link("../libs/dates"),
    "node_modules/x": Link("../vendor/x"),
}


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with its workspace in a subdirectory."""
    base = tmp_path.resolve()
    make_tree(base, {"home/.npmrc": "", "tmp/x": "", "repo/.git/HEAD": "", "repo/tools/t": "", "else/y": ""})
    make_tree(base / "repo/ws", {".vx/workspace.toml": "", **_TREE})
    (base / "repo/ws/apps/shop").mkdir(parents=True)
    monkeypatch.chdir(base / "repo/ws/apps/shop")
    monkeypatch.setenv("HOME", str(base / "home"))
    monkeypatch.setenv("VX_TMPDIR", str(base / "tmp"))
    return base / "repo"


def explained(
    repo: Path, capsys: pytest.CaptureFixture[str], *, needs: str = "", block: str = "", why: str | None = None
) -> dict[str, Any]:
    make_tree(repo / "ws", {"apps/shop/vx.toml": _BUILD.format(needs=needs, block=block)})
    words: Arguments = {
        "task": "build",
        "platform": "linux",
        "format": "json",
        "why": why,
        "mechanism": False,
        "C": None,
    }
    explain.main(words)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def told(repo: Path, data: dict[str, Any]) -> dict[str, tuple[str, list[str]]]:
    """The reason and the notes of each implied item, by path from the repository."""
    return {
        os.path.relpath(item["value"], repo) if item["value"].startswith("/") else item["value"]: (
            item["reason"],
            item["notes"],
        )
        for item in data["implied"]
    }


def test_packages_outputs_and_walls_are_told_with_their_reasons(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(repo, explained(repo, capsys, needs='"libs/dates#build"'))
    assert found["ws/libs/dates"][0] == f"the package dates linked in {repo}/ws/node_modules"
    assert found["ws/libs/dates/kit"][0] == "the nested project is a wall"
    assert found[".git"][0] == "the repository's data is a wall"
    assert found["."][0] == "the rest of the repository's checkout is a wall"
    reason, notes = found["ws/libs/money"]
    assert reason == "the package @acme/money is withheld: the task's cache key answers for no task of it"
    assert notes[0] == f"linked by {repo}/ws/node_modules/@acme/money"
    assert notes[1].startswith("add a task of libs/money that has a cache to dependsOn, or grant it with allow.read")
    assert notes[1].endswith("name libs/money/** in cache.inputs.workspaceFiles")
    # a directory without a project has no task to depend on
    assert not any("dependsOn" in note for note in found["ws/vendor/x"][1])
    assert found["ws/libs/dates/dist"][0] == "a refused read in it is reported, as in the project"


def test_names_other_programs_execute_are_told_where_a_task_may_write(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def names(block: str) -> list[str]:
        implied = explained(repo, capsys, block=block)["implied"]
        return [item["value"] for item in implied if "other programs execute" in item["reason"]]

    (listed,) = names('allow.write = ["dist/"]')
    assert {".bashrc", ".vscode/", ".git/hooks/", ".git/config"} <= set(listed.split(", "))
    (listed,) = names('allow.write = ["dist/"], allow.gitConfig = true')
    assert ".git/config" not in listed.split(", ")
    assert names('allow.read = ["."]') == []


def test_flags_that_are_enforced_say_what_they_do(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = explained(repo, capsys, block="hermetic = true, allow.gitConfig = true")
    notes = {grant["path"].rpartition(".")[2]: grant["notes"] for grant in data["grants"]}
    assert "hooks never" in notes["gitConfig"][0]
    assert "outside the workspace only granted paths exist" in notes["hermetic"][0]
    assert data["refusals"] == []


@pytest.mark.parametrize(
    ("target", "block", "allowed", "reason"),
    [
        ("../../libs/money/src/coin.py", "", (False, False), "the package @acme/money is withheld"),
        ("../../libs/dates/dist/d.js", "", (True, False), "the package dates linked in"),
        ("../../libs/dates/kit/x", "", (False, False), "the nested project"),
        ("../../../.git/HEAD", "", (False, False), "the repository's data"),
        ("../../../tools/t", "", (False, False), "the rest of the repository's checkout"),
        ("dist/.vscode/x", 'allow.write = ["dist/"]', (True, False), "allow.write[0]"),
        ("dist/sub/.bashrc", 'allow.write = ["dist/"]', (True, False), "allow.write[0]"),
        ("dist/x", 'allow.write = ["dist/"]', (True, True), "allow.write[0]"),
        ("../../../../else/y", "", (True, False), "what is outside the workspace may be read"),
        ("../../../../else/y", "hermetic = true", (False, False), "the task is hermetic"),
        ("/etc/passwd", "hermetic = true", (True, False), "a process needs it to start"),
        ("/proc/self/status", "hermetic = true", (True, False), "every sandbox has its own"),
    ],
)
def test_why_answers_for_what_is_implied(  # noqa: PLR0917  a row of the table
    repo: Path,
    capsys: pytest.CaptureFixture[str],
    target: str,
    block: str,
    allowed: tuple[bool, bool],
    reason: str,
) -> None:
    data = explained(repo, capsys, needs='"libs/dates#build"', block=block, why=target)
    assert (data["read"]["allowed"], data["write"]["allowed"]) == allowed
    by = data["read"]["by"]
    assert reason in (by.get("reason") or by["path"])
    if allowed == (True, False) and "write" in block:
        refused = "other programs execute the content of this file: no task may make or change it"
        assert data["write"]["by"]["reason"] == refused
