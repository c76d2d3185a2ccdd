"""The cases under fixtures/explain and fixtures/resolved, in workspaces of their own; UPDATE_GOLDEN=1 rewrites them.

The files spell the machine's directories as `/ws`, `/home/mel` and `/tmp/vx`.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import jsonschema
import pytest

from sandbox.machine import ask_facts
from sandbox.request import credential_stores
from tests.conftest import REPOSITORY, Link, Tree, make_tree
from vxconf.cli.commands import explain, resolve
from vxconf.schema import schema_files

if TYPE_CHECKING:
    from pathlib import Path

    from vxconf.cli.arguments import Arguments

_EXPLAIN = sorted((REPOSITORY / "fixtures" / "explain").glob("*.toml"))
_RESOLVED = sorted((REPOSITORY / "fixtures" / "resolved").glob("*.toml"))
_UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"

_TREE: Tree = {
    ".vx/workspace.toml": "",
    ".git/HEAD": "",
    "base.toml": "",
    "node_modules/left-pad/index.js": "",
    "libs/money/src/coin.py": "",
    "apps/shop/lib/cart.py": "",
    "apps/shop/lib/tax.py": "",
    "apps/shop/notes.md": "",
    "apps/shop/target/x": "",
    "apps/shop/alias": Link("target"),
    "apps/shop/leads-out": Link("../../libs/money"),
    "apps/shop/stickers/vx.toml": "",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of the cases, with an empty home and an empty temporary directory."""
    base = tmp_path.resolve()
    make_tree(base / "home", {".npmrc": "", ".cache/x": ""})
    (base / "tmp").mkdir()
    # the system's secrets, and whether they can be read, differ between machines
    monkeypatch.setattr(credential_stores, "system", lambda _files: ())
    monkeypatch.setattr(ask_facts, "other_homes", lambda _home: ())
    monkeypatch.setenv("HOME", str(base / "home"))
    monkeypatch.setenv("VX_TMPDIR", str(base / "tmp"))
    make_tree(base / "ws", _TREE)
    monkeypatch.chdir(base / "ws" / "apps" / "shop")
    return base / "ws" / "apps" / "shop"


def _told(text: str, project: Path) -> str:
    base = project.parents[2]
    for place, name in (
        (base / "tmp" / f"vx-{os.getuid()}", "/tmp/vx"),
        (base / "ws", "/ws"),
        (base / "home", "/home/mel"),
        (base, "/base"),
    ):
        text = text.replace(str(place), name)
    return text


def _hold(expected: Path, found: str) -> None:
    if _UPDATE:
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


def _explained(project: Path, case: Path, capsys: pytest.CaptureFixture[str], form: str, why: str | None = None) -> str:
    (project / "vx.toml").write_text(case.read_text())
    words: Arguments = {"task": "build", "platform": "all", "format": form, "why": why, "mechanism": False, "C": None}
    status = explain.main(words)
    text = capsys.readouterr().out
    assert status == (1 if case.stem == "refused" else 0)
    return text


@pytest.mark.parametrize("case", _EXPLAIN, ids=lambda case: case.stem)
def test_an_explanation_is_as_it_was(case: Path, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _hold(case.with_suffix(".txt"), _told(_explained(project, case, capsys, "text"), project))


@pytest.mark.parametrize("case", _EXPLAIN, ids=lambda case: case.stem)
def test_its_json_has_the_keys_of_the_contract(case: Path, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(_explained(project, case, capsys, "json"))
    assert {"task", "project", "workspace", "command", "sandboxed", "grants", "implied", "refusals"} <= set(data)
    assert (data["task"], data["project"]) == ("apps/shop#build", "apps/shop")
    lines = case.read_text().splitlines()
    for grant in data["grants"]:
        assert {"path", "value", "file", "line", "linux", "macos", "notes"} <= set(grant)
        if isinstance(grant["value"], str):
            assert f'"{grant["value"]}"' in lines[grant["line"] - 1]
    for item in data["implied"]:
        assert item["reason"]
        assert {"linux", "macos", "notes"} <= set(item)
    places = [(grant["line"], grant["path"]) for grant in data["grants"]]
    assert [line for line, _ in places] == sorted(line for line, _ in places)


@pytest.mark.parametrize("case", _RESOLVED, ids=lambda case: case.stem)
def test_a_resolved_config_is_canonical_and_as_it_was(
    case: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "vx.toml").write_text(case.read_text())
    assert resolve.main({"task": "build", "platform": "linux", "C": None}) == 0
    text = _told(capsys.readouterr().out, project)
    data = json.loads(text)
    jsonschema.validate(data, schema_files.load("resolved"))
    assert text == json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n"
    _hold(case.with_suffix(".json"), json.dumps(data, indent=2, sort_keys=True) + "\n")


@pytest.mark.parametrize(
    ("target", "allowed", "source"),
    [
        ("lib/cart.py", (True, False), "tasks.build.exec.sandbox.allow.read[0]"),
        ("notes.md", (True, False), "tasks.build.exec.sandbox.allow.read[1]"),
        ("dist/new.js", (True, True), "tasks.build.exec.sandbox.allow.write[0]"),
        ("../../base.toml", (True, False), "tasks.build.exec.sandbox.allow.read[2]"),
        ("target/x", (False, False), "nothing in the workspace exists unless it is granted"),
        ("stickers/vx.toml", (False, False), "the nested project"),
        ("../../.git/HEAD", (False, False), "the repository's data"),
        ("~/.npmrc", (False, False), "the credential store"),
        ("/etc/passwd", (True, False), "what is outside the workspace may be read"),
        ("missing.txt", (False, False), "nothing in the workspace exists unless it is granted"),
        ("../../node_modules/left-pad/index.js", (True, False), "the dependencies in"),
    ],
)
def test_why_answers_by_line_or_by_rule(
    project: Path, capsys: pytest.CaptureFixture[str], target: str, allowed: tuple[bool, bool], source: str
) -> None:
    case = REPOSITORY / "fixtures" / "explain" / "reads-and-writes.toml"
    data = json.loads(_explained(project, case, capsys, "json", target))
    assert data["target"] == target
    assert (data["read"]["allowed"], data["write"]["allowed"]) == allowed
    by = data["read"]["by"]
    assert source in (by.get("path") or by["reason"])
    assert "line" in by
    assert "file" in by
    assert (data["read"]["nearest"] is None) or not allowed[0]


def test_why_names_the_nearest_miss(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = REPOSITORY / "fixtures" / "explain" / "reads-and-writes.toml"
    data = json.loads(_explained(project, case, capsys, "json", "lib/cart.py"))
    assert data["write"]["by"]["reason"] == "no write grant covers it"
    assert data["write"]["nearest"]["path"] == "tasks.build.exec.sandbox.allow.write[0]"


@pytest.mark.parametrize("target", ["pkg.test", "pkg.test:443", "localhost:80", "[::1]:443"])
def test_why_a_host_is_refused_where_none_is_listed(
    project: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    case = REPOSITORY / "fixtures" / "explain" / "reads-and-writes.toml"
    data = json.loads(_explained(project, case, capsys, "json", target))
    assert data["network"]["allowed"] is False
    reason = "lists no host" if target.startswith("pkg.test") else "the task has a loopback of its own"
    assert reason in data["network"]["by"]["reason"]


def test_a_task_without_a_block_may_do_everything(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = REPOSITORY / "fixtures" / "explain" / "unsandboxed.toml"
    data = json.loads(_explained(project, case, capsys, "json", "/etc/shadow"))
    assert data["read"]["allowed"]
    assert data["write"]["allowed"]


def test_the_mechanism_is_the_literal_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "vx.toml").write_text((REPOSITORY / "fixtures" / "explain" / "reads-and-writes.toml").read_text())
    words: Arguments = {"task": "build", "platform": "all", "format": "json", "why": None, "mechanism": True, "C": None}
    explain.main(words)
    linux = json.loads(capsys.readouterr().out)["mechanism"]["linux"]
    assert f"bind directory {project}/dist writable" in linux["operations"]
    assert "--disable-userns" in linux["argv"]
    assert any(line.startswith("refuse mount ") for line in linux["filter"])
    assert "127.0.0.1:3128 inside: HTTP proxy" in linux["listeners"]
