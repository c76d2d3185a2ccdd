"""`vxconf run` through real processes: streams, statuses, signals, the report and the JSON."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY, Tree

Factory = Callable[[Tree], Path]

_KEYS = {
    "task",
    "sandboxed",
    "exitCode",
    "commandExitCode",
    "signal",
    "timedOut",
    "started",
    "durationMs",
    "cpuMs",
    "peakRssBytes",
    "observer",
    "trace",
    "traceReason",
    "protections",
    "violations",
    "hints",
    "fix",
    "refusals",
}
_BLOCK = '[tasks.t.exec.sandbox.allow]\nread = ["src/"]\nwrite = ["dist/"]\n'
_BOTH = pytest.mark.parametrize("block", ["", _BLOCK], ids=["plain", "sandboxed"])


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "vxconf", "run", "t", *words]


def _environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}", **more}


def _run(project: Path, *words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    options.setdefault("stdin", subprocess.DEVNULL)
    if "input" in options:
        del options["stdin"]
    env = _environment(**options.pop("env", {}))
    return subprocess.run(_command(*words), cwd=project, env=env, capture_output=True, check=False, **options)


def _project(make: Factory, command: str, block: str = _BLOCK, extra: str = "") -> Path:
    text = f"[tasks.t.exec]\ncommand = {json.dumps(command)}\n{extra}{block}"
    return make({"p/vx.toml": text, "p/src/x": "x\n", "p/notes.md": "notes\n"}) / "p"


def _data(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(done.stdout)
    return data


@_BOTH
def test_streams_and_status_are_the_commands_own(workspace_factory: Factory, block: str) -> None:
    project = _project(workspace_factory, "printf 'a\\0b\\377'; printf err >&2; exit 7", block)
    done = _run(project)
    assert (done.returncode, done.stdout) == (7, b"a\0b\xff")
    assert b"err" in done.stderr


@_BOTH
@pytest.mark.parametrize(
    ("command", "status", "name"),
    [
        ("kill -9 $$", 137, "SIGKILL"),
        ("kill -TERM $$", 143, "SIGTERM"),
        ("exec /nowhere/tool", 127, None),
        ("exec ./src", 126, None),
    ],
)
def test_a_signal_and_a_failed_exec_are_told_as_a_shell_tells_them(
    workspace_factory: Factory, block: str, command: str, status: int, name: str | None
) -> None:
    done = _run(_project(workspace_factory, command, block), "--format", "json")
    data = _data(done)
    assert (done.returncode, data["exitCode"], data["commandExitCode"], data["signal"]) == (
        status,
        status,
        status,
        name,
    )


@_BOTH
def test_arguments_after_the_dashes_reach_the_command_as_they_are(workspace_factory: Factory, block: str) -> None:
    done = _run(_project(workspace_factory, "printf '%s/'", block), "--", "two words", "it's", "--format", "$HOME")
    assert done.stdout == b"two words/it's/--format/$HOME/"


@_BOTH
def test_standard_input_reaches_the_command(workspace_factory: Factory, block: str) -> None:
    assert _run(_project(workspace_factory, "cat", block), input=b"\0abc").stdout == b"\0abc"


@_BOTH
def test_the_environment_is_what_the_file_declares(workspace_factory: Factory, block: str) -> None:
    extra = 'env.define = { OWN = "it\'s" }\nenv.passThrough = ["PASSED"]\n'
    project = _project(workspace_factory, "env", block, extra)
    env = {"PASSED": "yes", "SECRET": "no", "LC_ALL": "C"}
    found = dict(line.split("=", 1) for line in _run(project, env=env).stdout.decode().splitlines())
    assert (found["OWN"], found["PASSED"], found["LC_ALL"]) == ("it's", "yes", "C")
    assert "SECRET" not in found


def test_an_unsandboxed_task_says_so_and_keeps_the_hosts_temporary_directory(workspace_factory: Factory) -> None:
    done = _run(_project(workspace_factory, "echo $TMPDIR", ""), env={"TMPDIR": "/var/tmp"})
    assert done.stdout == b"/var/tmp\n"
    assert b"p#t has no sandbox block" in done.stderr


@_BOTH
def test_the_json_has_every_key_and_stdout_to_itself(workspace_factory: Factory, block: str) -> None:
    done = _run(_project(workspace_factory, "echo out; echo err >&2", block), "--format", "json")
    data = _data(done)
    assert set(data) == _KEYS
    assert (data["task"], data["sandboxed"], data["started"], data["timedOut"]) == ("p#t", bool(block), True, False)
    assert (data["exitCode"], data["violations"], data["fix"], data["refusals"]) == (0, [], None, [])
    assert set(data["protections"]) == {"filesystem", "network", "sockets", "observer", "processes", "landlock"}
    assert data["durationMs"] > 0
    assert b"out" in done.stderr
    assert b"err" in done.stderr


@_BOTH
def test_a_command_that_takes_too_long_is_124(workspace_factory: Factory, block: str) -> None:
    done = _run(_project(workspace_factory, "sleep 1000", block), "--timeout", "0.5", "--format", "json")
    data = _data(done)
    assert (done.returncode, data["exitCode"], data["commandExitCode"], data["timedOut"]) == (124, 124, 143, True)


def test_the_files_own_timeout_counts_and_the_command_lines_wins(workspace_factory: Factory) -> None:
    project = _project(workspace_factory, "sleep 1.2", extra="timeout = 0.3\n")
    assert _run(project).returncode == 124
    assert _run(project, "--timeout", "30").returncode == 0


def test_a_swallowed_denial_fails_the_task_and_names_the_line_to_add(workspace_factory: Factory) -> None:
    project = _project(workspace_factory, "cat src/x; cat notes.md 2>/dev/null || true")
    done = _run(project)
    assert (done.returncode, done.stdout) == (1, b"x\n")
    report = done.stderr.decode()
    assert "1 violation" in report
    assert "may not read notes.md" in report
    assert 'add to vx.toml:4, in [tasks.t.exec.sandbox.allow]\n    read = ["notes.md"]\n' in report
    assert str(project / "notes.md") in _run(project, "--verbose").stderr.decode()
    data = _data(_run(project, "--format", "json"))
    (violation,) = data["violations"]
    assert set(violation) == {"kind", "operation", "target", "path", "errno", "line", "class"}
    assert data["fix"]["allow"] == {"read": ["notes.md"], "write": [], "network": []}
    assert set(data["fix"]) == {"allow", "ignore", "inputs", "withheld", "byHand"}
    assert data["commandExitCode"] == 0


def test_a_refused_block_runs_nothing_and_is_125(workspace_factory: Factory) -> None:
    project = _project(
        workspace_factory,
        "touch ran",
        '[tasks.t.exec.sandbox.allow]\nwrite = ["notes.md/", "."]\n',
    )
    done = _run(project)
    assert (done.returncode, done.stdout) == (125, b"")
    assert b"VX303" in done.stderr
    assert not (project / "ran").exists()
    data = _data(_run(project, "--format", "json"))
    assert set(data) == _KEYS
    assert (data["exitCode"], data["started"], data["commandExitCode"]) == (125, False, None)
    assert [refusal["code"] for refusal in data["refusals"]] == ["VX303"]


def test_a_mistake_anywhere_in_the_file_runs_nothing(workspace_factory: Factory) -> None:
    project = _project(workspace_factory, "touch dist/ran", _BLOCK + "[tasks.other]\nunknown = 1\n")
    assert _run(project).returncode == 125
    assert not (project / "dist").exists()


def test_a_group_runs_what_it_depends_on(workspace_factory: Factory) -> None:
    text = '[tasks.t]\ndependsOn = ["one", "two"]\n' + "".join(
        f'[tasks.{name}.exec]\ncommand = "echo {name}; exit {status}"\nsandbox = {{}}\n'
        for name, status in (("one", 0), ("two", 3))
    )
    project = workspace_factory({"p/vx.toml": text}) / "p"
    done = _run(project)
    assert (done.returncode, sorted(done.stdout.split()[1::2])) == (1, [b"one", b"two"])
    data = json.loads(_run(project, "--format", "json").stdout)
    # the keys of a single task, and those of several
    assert (data["task"], data["exitCode"], data["started"], data["violations"]) == ("p#t", 1, False, [])
    assert {one["task"]: one["exitCode"] for one in data["tasks"]} == {"p#one": 0, "p#two": 3, "p#t": 125}
    (project / "vx.toml").write_text(text.replace("exit 3", "exit 0"), encoding="utf-8")
    assert _run(project).returncode == 0


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed here")
def test_a_run_is_observed_by_whom_it_names(workspace_factory: Factory) -> None:
    done = _run(_project(workspace_factory, "cat hidden; true"), "--observer", "strace", "--format", "json")
    data = json.loads(done.stdout)
    assert (done.returncode, data["observer"], data["trace"]) == (1, "strace", "complete")
    assert [violation["target"] for violation in data["violations"]] == ["hidden"]


@_BOTH
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_us_is_one_to_the_command(
    workspace_factory: Factory, block: str, number: signal.Signals, status: int
) -> None:
    project = _project(
        workspace_factory, "trap 'echo bye; exit 130' INT; echo up; sleep 30 >/dev/null 2>&1 & wait", block
    )
    with subprocess.Popen(
        _command(),
        cwd=project,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"up\n"
        running.send_signal(number)
        assert running.wait(30) == status
        assert running.stdout.read() == (b"bye\n" if number == signal.SIGINT else b"")


def test_odd_names_of_tasks_and_directories_run(workspace_factory: Factory) -> None:
    name = "build 'it' \"now\" ☃"
    head = f"[tasks.{json.dumps(name, ensure_ascii=False)}.exec]"
    text = f"{head}\ncommand = \"cat 'a b/☃'\"\nsandbox.allow.read = ['a b/']\n"
    root = workspace_factory({"p [x] {y} 'z'/vx.toml": text, "p [x] {y} 'z'/a b/☃": "deep\n"})
    done = subprocess.run(
        [sys.executable, "-m", "vxconf", "run", f"p [x] {{y}} 'z'#{name}"],
        cwd=root,
        env=_environment(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"deep\n"), done.stderr


def test_doctor_tells_of_this_machine(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vxconf", "doctor", "--format", "json"],
        cwd=tmp_path,
        env=_environment(),
        capture_output=True,
        check=False,
    )
    data = json.loads(done.stdout)
    assert done.returncode == 0
    assert set(data) == {"available", "reason", "observer", "probes"}
    assert data["available"] is True
    assert all(set(probe) == {"name", "ok", "found", "cause", "fix"} for probe in data["probes"])
    text = subprocess.run(
        [sys.executable, "-m", "vxconf", "doctor"], cwd=tmp_path, env=_environment(), capture_output=True, check=False
    ).stdout.decode()
    assert text.startswith(f"sandboxes run here, watched by: {data['observer']}")


@pytest.mark.parametrize("words", [[], ["--fix"], ["--all"]])
def test_the_report_begins_on_a_line_of_its_own_whatever_the_command_left(
    workspace_factory: Factory, words: list[str]
) -> None:
    project = _project(workspace_factory, "printf 'half\\033[31m'; cat notes.md 2>/dev/null")
    line = [word for word in _command(*words) if words != ["--all"] or word != "t"]
    done = subprocess.run(
        line, cwd=project, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    lines = done.stdout.split(b"\n")
    half = next(number for number, text in enumerate(lines) if text.startswith(b"half"))
    assert lines[half] == b"half\x1b[31m", done.stdout
    assert lines[half + 1].startswith(b"p#t: 1 violation"), done.stdout


@pytest.mark.parametrize("words", [(), ("-j2",)], ids=["alone", "among several"])
def test_output_that_a_full_disk_does_not_take_fails_the_run(
    workspace_factory: Factory, words: tuple[str, ...]
) -> None:
    project = _project(workspace_factory, "echo written")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            _command(*words),
            cwd=project,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    # a command that still writes then gets SIGPIPE
    assert done.returncode in (1, 141), done.stderr
    assert b"could be passed on: No space left on device" in done.stderr
