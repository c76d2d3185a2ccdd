"""Explanations for both platforms from one machine, and the literal macOS profile."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import sandbox
import vxconf
from sandbox.planning.macos.macos_path_reach import MacPlan
from tests.support.seatbelt import Profile, read
from vxconf.cli.commands import explain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Tree
    from vxconf.cli.arguments import Arguments

    Factory = Callable[[Tree], Path]

_BLOCK = """
[tasks.build.exec]
command = "make"
[tasks.build.exec.sandbox]
weakerNetworkIsolation = true
weakerWhenNested = false
hermetic = false
[tasks.build.exec.sandbox.allow]
read = ["lib/", "gone.txt", "*.md"]
write = ["out/", "gen.txt"]
network = ["example.org", "localhost:4173"]
systemInfo = ["hw.ncpu"]
unixSockets = ["/run/x.sock"]
localBinding = [8000]
machLookup = ["com.acme.x"]
pty = true
gitConfig = true
[tasks.build.exec.sandbox.deny]
network = ["ads.example.org"]
"""


@pytest.fixture
def project(workspace_factory: Factory, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = workspace_factory({"p/lib/a.py": "", "p/notes.md": "", "p/vx.toml": _BLOCK})
    monkeypatch.chdir(root / "p")
    return root / "p"


def _explained(capsys: pytest.CaptureFixture[str], platform: str, form: str = "json") -> Any:
    words: Arguments = {
        "task": "build",
        "platform": platform,
        "format": form,
        "why": None,
        "mechanism": True,
        "C": None,
    }
    explain.main(words)
    text = capsys.readouterr().out
    return json.loads(text) if form == "json" else text


def test_every_grant_has_its_rules_or_a_word_why_not(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert project.is_dir()
    data = _explained(capsys, "macos")
    assert len(data["grants"]) == 15
    for item in data["grants"]:
        assert item["linux"] == []
        assert item["macos"], item
        for rule in item["macos"]:
            assert set(rule) == {"rule", "describe"}
            assert rule["describe"]
            assert not rule["rule"] or len(read(rule["rule"])) == 1
        assert not [note for note in item["notes"] if "Linux" in note]


def test_the_literal_profile_holds_every_rule_that_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert project.is_dir()
    data = _explained(capsys, "all")
    profile = data["mechanism"]["macos"]["profile"]
    rules = [f"{rule.action} {rule.operations} {rule.filters}" for rule in Profile.of(profile).rules]
    for item in (*data["grants"], *data["implied"]):
        for rule in item["macos"]:
            if rule["rule"]:
                (form,) = Profile.of(f"(version 1)(deny default){rule['rule']}").rules[1:]
                assert f"{form.action} {form.operations} {form.filters}" in rules
    assert _explained(capsys, "linux")["mechanism"]["macos"]["profile"] == ""


def test_implied_things_say_what_they_are_on_macos(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = str(project.parent)
    items = {(item["value"], item["reason"]): item for item in _explained(capsys, "all")["implied"]}
    nothing, data = "nothing in the workspace exists unless it is granted", "the repository's data is a wall"
    for key in ((root, nothing), (f"{root}/.git", data)):
        assert "deny" in items[key]["macos"][0]["describe"]
    assert any(value == "macOS" and "start" in reason for value, reason in items)


def test_people_are_told_that_it_never_ran_and_what_differs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert project.is_dir()
    text = _explained(capsys, "all", "text")
    assert "it has never run on a Mac" in text
    assert "what differs between the two" in text
    assert "macos profile\n  (version 1)" in text
    assert "macOS" not in _explained(capsys, "linux", "text").replace("macOS alone", "")


def test_a_plan_for_macos_is_made_on_any_machine(project: Path) -> None:
    request = vxconf.load(str(project)).task("p#build").judged("macos")
    assert request is not None
    assert request.request is not None
    plan = sandbox.plan(request.request, platform="macos")
    assert isinstance(plan, MacPlan)
    assert plan.describe()
    assert plan.access(f"{project}/lib/a.py", request.files).value == "read"


@pytest.mark.parametrize(
    ("target", "linux", "macos"),
    [
        # made later: a read grant covers it on macOS
        ("new.md", (False, False), (True, False)),
        ("lib/a.py", (True, False), (True, False)),
        ("out/x", (True, True), (True, True)),
        # beside a granted name a task makes files on Linux alone, and they go with the run
        ("lib/new/.git/config", (True, False), (True, False)),
        ("out/.git/hooks/x", (True, False), (True, False)),
        # the workspace root lists what is granted on Linux, and nothing on macOS
        ("..", (True, False), (False, False)),
        ("vx.toml", (False, False), (False, False)),
    ],
)
@pytest.mark.usefixtures("project")
def test_why_answers_by_the_plan_of_the_platform_asked_about(
    capsys: pytest.CaptureFixture[str],
    target: str,
    linux: tuple[bool, bool],
    macos: tuple[bool, bool],
) -> None:
    for platform, allowed in (("linux", linux), ("all", linux), ("macos", macos)):
        data = _why(capsys, platform, target)
        assert (platform, data["read"]["allowed"], data["write"]["allowed"]) == (platform, *allowed)
        for answer in (data["read"], data["write"]):
            assert answer["by"].keys() >= {"file", "line"}
            assert "nearest" in answer


@pytest.mark.usefixtures("project")
def test_why_names_the_line_or_the_rule_on_macos(capsys: pytest.CaptureFixture[str]) -> None:
    found = _why(capsys, "macos", "new.md")
    assert (found["read"]["by"]["path"], found["read"]["by"]["value"]) == (
        "tasks.build.exec.sandbox.allow.read[2]",
        "*.md",
    )
    assert found["write"]["by"]["reason"] == "nothing in the workspace exists unless it is granted"
    assert _why(capsys, "macos", "out/.git/hooks/x")["write"]["by"]["reason"].startswith("other programs execute")
    # a Mac has one loopback for everybody
    assert _why(capsys, "macos", "localhost:9999")["network"]["allowed"] is True
    assert _why(capsys, "linux", "localhost:9999")["network"]["allowed"] is False


def _why(capsys: pytest.CaptureFixture[str], platform: str, target: str) -> Any:
    words: Arguments = {
        "task": "build",
        "platform": platform,
        "format": "json",
        "why": target,
        "mechanism": False,
        "C": None,
    }
    explain.main(words)
    return json.loads(capsys.readouterr().out)
