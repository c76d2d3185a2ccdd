"""`vxconf run` of several tasks, through real processes: order, verdicts, one summary, one document."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Tree

_LIB = """
[tasks.build]
exec.command = "sleep 0.2; echo built > dist/money.txt; echo lib says hi"
exec.sandbox.allow.write = ["dist/"]
cache.outputs.files = ["dist/**"]
"""
_SHOP = """
[tasks.build]
dependsOn = ["^build"]
exec.command = "cat ../../libs/money/dist/money.txt; echo to err >&2"
exec.sandbox.allow.read = ["../../libs/money/dist/"]
[tasks.test]
dependsOn = ["build"]
exec.command = "cat secret"
exec.sandbox = {}
[tasks.late]
dependsOn = ["test"]
exec.command = "echo never"
exec.sandbox = {}
[tasks.plain]
exec.command = "echo plain $0"
[tasks.all]
dependsOn = ["build", "plain"]
"""
_TREE: Tree = {
    "package.json": '{"workspaces": ["apps/*", "libs/*"]}',
    "libs/money/package.json": '{"name": "@acme/money"}',
    "libs/money/vx.toml": _LIB,
    "apps/shop/package.json": '{"name": "shop", "dependencies": {"@acme/money": "*"}}',
    "apps/shop/vx.toml": _SHOP,
    "apps/shop/secret": "s\n",
}


@pytest.fixture
def root(workspace_factory: Callable[[Tree], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    (tmp_path / "temp").mkdir()
    monkeypatch.setenv("VX_TMPDIR", str(tmp_path / "temp"))
    return workspace_factory(_TREE)


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "vxconf", "run", *words]


def _run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_command(*words), cwd=cwd, capture_output=True, text=True, check=False, timeout=120)


def _document(*words: str, cwd: Path) -> dict[str, Any]:
    done = _run(*words, "--format", "json", cwd=cwd)
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["exitCode"] == done.returncode, done.stderr
    return document


@pytest.mark.parametrize("jobs", ["1", "4"])
def test_what_a_task_needs_runs_first_and_each_verdict_is_its_own(root: Path, jobs: str) -> None:
    document = _document("build", "plain", "-j", jobs, cwd=root / "apps/shop")
    assert [(one["task"], one["passed"]) for one in document["tasks"]] == [
        ("libs/money#build", True),
        ("apps/shop#build", True),
        ("apps/shop#plain", True),
    ]
    assert (document["passed"], document["failed"], document["skipped"], document["exitCode"]) == (3, 0, 0, 0)
    assert [one["sandboxed"] for one in document["tasks"]] == [True, True, False]


def test_a_task_that_fails_keeps_those_that_wait_for_it_from_running_and_no_others(root: Path) -> None:
    document = _document("late", "plain", "-j", "2", cwd=root / "apps/shop")
    by_name = {one["task"]: one for one in document["tasks"]}
    assert by_name["apps/shop#test"]["violations"][0]["path"] == str(root / "apps/shop/secret")
    late = by_name["apps/shop#late"]
    assert (late["passed"], late["started"], late["skipped"]) == (False, False, "apps/shop#test did not pass")
    assert by_name["apps/shop#plain"]["passed"]
    assert (document["passed"], document["failed"], document["skipped"], document["exitCode"]) == (3, 1, 1, 1)


def test_lines_of_tasks_that_run_together_carry_their_names_and_a_summary_ends_it(root: Path) -> None:
    done = _run("all", "test", "-j", "3", cwd=root / "apps/shop")
    assert done.returncode == 1
    assert "apps/shop#build: built\n" in done.stdout
    assert "libs/money#build: lib says hi\n" in done.stdout
    assert "apps/shop#build: to err\n" in done.stderr
    assert "apps/shop#test did not pass: exit 1\n" in done.stderr
    assert done.stderr.endswith("5 tasks: 4 passed, 1 failed (apps/shop#test)\n")
    assert "\x1b" not in done.stdout + done.stderr


def test_one_at_a_time_the_output_is_untouched(root: Path) -> None:
    done = _run("plain", "build", "-j", "1", cwd=root / "apps/shop")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "plain /bin/sh\nlib says hi\nbuilt\n"


def test_all_takes_every_project_and_bare_names_choose_tasks(root: Path) -> None:
    named = _document("build", "--all", cwd=root)
    assert [one["task"] for one in named["tasks"]] == ["libs/money#build", "apps/shop#build"]
    every = _document("--all", cwd=root)
    assert {one["task"].split("#")[1] for one in every["tasks"]} == {"build", "test", "late", "plain", "all"}
    assert every["exitCode"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing", "build"], "no task"),
        (["--all", "apps/shop#build"], "--all takes bare task names"),
        (["build", "plain", "--", "x"], "arguments after -- take one task"),
        (["build", "plain", "-j", "0"], "-j 0 is not a number of tasks"),
        (["build", "-j", "1.5"], "-j 1.5 is not a number of tasks"),
        ([], "name a task, or run them --all"),
    ],
)
def test_wrong_usage_is_one_line_and_2(root: Path, words: list[str], said: str) -> None:
    done = _run(*words, cwd=root / "apps/shop")
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_tasks_of_two_projects_that_wait_for_each_other_are_named(root: Path) -> None:
    (root / "libs/money/vx.toml").write_text(
        '[tasks.build]\ndependsOn = ["apps/shop#build"]\nexec.command = "true"\n', encoding="utf-8"
    )
    done = _run("build", "plain", cwd=root / "apps/shop")
    assert done.returncode == 2
    assert "apps/shop#build -> libs/money#build -> apps/shop#build is a cycle" in done.stderr


def test_a_refused_block_among_them_keeps_everything_from_running(root: Path) -> None:
    (root / "libs/money/vx.toml").write_text(
        '[tasks.build]\nexec.command = "touch ran"\nexec.sandbox.allow.reed = []\n', encoding="utf-8"
    )
    document = _document("build", "plain", cwd=root / "apps/shop")
    assert document["exitCode"] == 125
    assert document["tasks"][0]["refusals"][0]["path"] == "tasks.build.exec.sandbox.allow.reed"
    assert not any(one["started"] for one in document["tasks"])
    assert not (root / "libs/money/ran").exists()


_SERVED = """
[tasks.serve]
exec.command = "echo up; trap 'echo down; exit 0' TERM; while :; do sleep 0.05; done"
exec.sandbox = {}
exec.persistent.readyWhen.output = "^up$"
[tasks.use]
dependsOn = ["serve"]
exec.command = "echo used"
exec.sandbox = {}
[tasks.broken]
exec.command = "exit 4"
exec.sandbox = {}
exec.persistent.readyWhen.output = "never"
[tasks.waits]
dependsOn = ["broken"]
exec.command = "echo never"
exec.sandbox = {}
"""


def test_a_server_is_up_for_those_that_need_it_and_goes_when_they_have_ended(root: Path) -> None:
    (root / "apps/shop/vx.toml").write_text(_SERVED, encoding="utf-8")
    done = _run("use", "-j", "2", cwd=root / "apps/shop")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "apps/shop#serve: up\napps/shop#use: used\napps/shop#serve: down\n"
    document = _document("use", "waits", cwd=root / "apps/shop")
    by_name = {one["task"]: one for one in document["tasks"]}
    assert by_name["apps/shop#broken"]["exitCode"] == 4
    assert by_name["apps/shop#waits"]["skipped"] == "apps/shop#broken did not pass"
    assert by_name["apps/shop#serve"]["passed"]


@contextlib.contextmanager
def _running(root: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A run that goes on, ended whatever comes of it: a task that does not start leaves others saying nothing more."""
    process = subprocess.Popen(
        # whoever runs the tests may ignore signals, as a shell's `&` does
        ["env", "--default-signal", *_command(*words)],
        cwd=root / "apps/shop",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_reaches_every_command_and_no_more_are_started(
    root: Path, number: signal.Signals, status: int
) -> None:
    (root / "apps/shop/vx.toml").write_text(
        """
[tasks.a]
exec.command = "trap 'echo heard; exit 5' INT TERM; echo up; while :; do sleep 0.05; done"
exec.sandbox = {}
[tasks.b]
exec.command = "trap 'echo heard; exit 5' INT TERM; echo up; while :; do sleep 0.05; done"
[tasks.c]
dependsOn = ["a"]
exec.command = "echo never"
exec.sandbox = {}
""",
        encoding="utf-8",
    )
    with _running(root, "b", "c", "-j", "2") as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(2)]
        assert sorted(said) == ["apps/shop#a: up\n", "apps/shop#b: up\n"]
        process.send_signal(number)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == status, errors
    assert sorted(rest.splitlines()) == ["apps/shop#a: heard", "apps/shop#b: heard"]
    assert "1 not run (apps/shop#c)" in errors


@pytest.mark.parametrize("words", [("use", "serve", "-j", "2"), ("serve", "use", "-j", "1")])
def test_a_server_that_was_asked_for_is_stopped_once_everything_else_has_ended(root: Path, words: list[str]) -> None:
    (root / "apps/shop/vx.toml").write_text(_SERVED, encoding="utf-8")
    done = _run(*words, cwd=root / "apps/shop")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("down")
    assert done.stderr.endswith("2 tasks: 2 passed\n")


def test_all_tasks_of_a_workspace_with_a_server_end(root: Path) -> None:
    (root / "apps/shop/vx.toml").write_text(_SERVED.partition("[tasks.broken]")[0], encoding="utf-8")
    document = _document("--all", cwd=root)
    assert {one["task"] for one in document["tasks"] if one["passed"]} == {
        "libs/money#build",
        "apps/shop#serve",
        "apps/shop#use",
    }
    assert document["exitCode"] == 0


def test_an_interrupt_stops_all_servers_that_are_up(root: Path) -> None:
    server = """
[tasks.{}]
exec.command = "trap 'echo down; exit 0' INT TERM; echo up; while :; do sleep 0.05; done"
exec.sandbox = {{}}
exec.persistent.readyWhen.output = "^up$"
"""
    (root / "apps/shop/vx.toml").write_text(server.format("a") + server.format("b"), encoding="utf-8")
    with _running(root, "a", "b", "-j", "2") as process:
        assert process.stdout is not None
        assert sorted(process.stdout.readline() for _ in range(2)) == ["apps/shop#a: up\n", "apps/shop#b: up\n"]
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert sorted(rest.splitlines()) == ["apps/shop#a: down", "apps/shop#b: down"]
    assert "error" not in errors
    assert "2 tasks: " in errors


_UNREADABLE = {
    "not TOML": "oops\n",
    "tasks under another key": '[taks.build]\nexec.command = "touch ran"\n',
    "tasks that are no table": "tasks = 5\n",
    "a directory": None,
    "a dangling link": "",
}


@pytest.mark.parametrize(
    ("words", "what"),
    [
        *((("--all",), what) for what in _UNREADABLE),
        (("--all", "plain"), "a directory"),
        (("apps/shop#build", "apps/shop#plain"), "not TOML"),
        (("libs/money#build", "-j", "1"), "tasks under another key"),
    ],
)
def test_a_file_that_cannot_be_read_keeps_everything_from_running(root: Path, words: list[str], what: str) -> None:
    file = root / "libs/money/vx.toml"
    file.unlink()
    text = _UNREADABLE[what]
    if text is None:
        file.mkdir()
    elif text:
        file.write_text(text, encoding="utf-8")
    else:
        file.symlink_to("nowhere")
    done = _run(*words, cwd=root)
    assert done.returncode == 125, done.stderr
    assert "libs/money/vx.toml:1:" in done.stderr
    assert "refused: nothing was run" in done.stderr
    document = _document(*words, cwd=root)
    refused = [one for one in document["tasks"] if one["refusals"]]
    assert {one["task"].partition("#")[0] for one in refused} == {"libs/money"}
    assert not any(one["started"] for one in document["tasks"])


def test_a_name_no_project_has_is_told_of_all(root: Path) -> None:
    done = _run("--all", "biuld", cwd=root / "apps/shop")
    assert done.returncode == 2
    assert done.stderr == f'error: no project of {root} has a task "biuld"; did you mean build?\n'
