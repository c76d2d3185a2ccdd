"""The runner, driven by stand-ins for `sandbox-exec` and `log`: it has never run on a Mac."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sandbox
from sandbox.contract.config import Ignore
from sandbox.macos import system_tools
from sandbox.macos.run import MacRun
from tests.conftest import REPOSITORY
from tests.support.fake_mac import FakeMac, Sessionless, mac_request
from tests.support.seatbelt import Profile

if TYPE_CHECKING:
    from sandbox.contract.results import RunResult

_LONG = 60.0


@pytest.fixture
def mac(tmp_path: Path) -> FakeMac:
    return FakeMac.at(tmp_path / "mac")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "ws" / "shop"
    (path / "src").mkdir(parents=True)
    (path / "src" / "a.txt").write_text("a\n", encoding="utf-8")
    (path / "notes.md").write_text("n\n", encoding="utf-8")
    return path


def _run(mac: FakeMac, project: Path, command: str, fields: dict[str, Any] | None = None, **options: Any) -> RunResult:
    request = mac_request(project, project.parents[1] / "temp", workspace=project.parent, **(fields or {}))
    return MacRun(Sessionless(), request, command, options, system=mac.tools)()  # type: ignore[arg-type]


def test_a_command_runs_with_its_output_its_variables_and_its_directory(mac: FakeMac, project: Path) -> None:
    heard: list[bytes] = []
    result = _run(
        mac,
        project,
        'cat; echo "$WHO $PWD"; echo "$TMPDIR" >&2; test -d "$TMPDIR"; printf %s',
        {"allow_read": (f"{project}/src/",)},
        env={"WHO": "me"},
        stdin=b"in\n",
        args=("it's",),
        on_stdout=heard.append,
    )
    assert result.exit_code == result.command_exit_code == 0
    assert result.stdout == f"in\nme {project}\nit's".encode() == b"".join(heard)
    assert (result.observer, result.trace, result.violations) == ("log", "complete", ())
    assert b"/task-" in result.stderr
    assert result.cpu_ms is not None
    assert result.peak_rss_bytes is not None
    assert result.peak_rss_bytes > 100_000
    assert not os.listdir(project.parents[1] / "temp")


def test_the_profile_is_of_this_task(mac: FakeMac, project: Path) -> None:
    _run(mac, project, "true", {"allow_read": (f"{project}/src/",), "allow_write": (f"{project}/dist/",)})
    profile = Profile.of(mac.profile)
    assert profile.allows("file-read-data", f"{project}/src/a.txt")
    assert not profile.allows("file-read-data", f"{project}/notes.md")
    assert profile.allows("file-write-create", f"{project}/dist/x")
    assert all(rule.message for rule in profile.rules if rule.action == "deny")
    assert (project / "dist").is_dir()


def test_a_denial_in_the_project_fails_a_command_that_passed(mac: FakeMac, project: Path) -> None:
    mac.denies(
        f"Sandbox: node(1) deny(1) file-read-data {project}/notes.md",
        f"Sandbox: node(1) deny(1) file-read-data {project}/notes.md",
        f"Sandbox: node(1) deny(1) file-read-data {project.parent}/elsewhere.md",
    )
    told: list[object] = []
    result = _run(mac, project, "true", on_violation=told.append)
    assert (result.exit_code, result.command_exit_code) == (1, 0)
    (violation,) = result.violations
    assert told == [violation]
    assert (violation.kind, violation.path, violation.errno) == ("read", f"{project}/notes.md", "EPERM")
    assert result.fix is not None
    assert result.fix.allow.read == ("notes.md",)


def test_what_is_ignored_is_not_reported(mac: FakeMac, project: Path) -> None:
    mac.denies(
        f"Sandbox: node(1) deny(1) file-write-create {project}/out.part",
        "Sandbox: bun(1) deny(1) sysctl-read hw.optional.neon",
        "Sandbox: bun(1) deny(1) sysctl-read kern.iossupportversion",
    )
    ignore = Ignore(write=("*.part",), system_info=("hw.optional.*",))
    assert _run(mac, project, "true", {"ignore": ignore}).violations == ()


def test_a_pass_needs_a_log_that_told_all(mac: FakeMac, project: Path) -> None:
    mac.having("silent")
    result = _run(mac, project, "true")
    assert (result.exit_code, result.trace) == (1, "partial")
    assert "told of no denial" in result.trace_reason
    assert "not all it did was seen" in result.hints[0].line


def test_without_an_observer_the_log_is_not_asked(mac: FakeMac, project: Path) -> None:
    mac.having("silent")
    result = _run(mac, project, "true", observer="none")
    assert (result.exit_code, result.observer, result.trace) == (0, "none", "none")


def test_another_observer_is_refused_by_name(mac: FakeMac, project: Path) -> None:
    result = _run(mac, project, "true", observer="mask")
    assert result.exit_code == 125
    assert "'mask'" in result.refusals[0].message


def test_inside_another_sandbox_nothing_runs(mac: FakeMac, project: Path) -> None:
    mac.having("nested")
    result = _run(mac, project, "touch ran")
    assert result.exit_code == 125
    assert "in a sandbox already" in result.refusals[0].message
    assert not (project / "ran").exists()


def test_a_profile_the_system_refuses_is_not_the_commands_fault(mac: FakeMac, project: Path) -> None:
    mac.having("malformed")
    result = _run(mac, project, "touch ran", {"allow_write": (f"{project}/dist/",)})
    assert (result.exit_code, result.started) == (125, False)
    assert "exceeds maximum" in result.refusals[0].message
    assert not (project / "dist").exists()


def test_a_command_that_ends_as_sandbox_exec_might_keeps_its_status(mac: FakeMac, project: Path) -> None:
    result = _run(mac, project, "echo mine >&2; exit 71")
    assert (result.exit_code, result.started) == (71, True)


def test_time_runs_out_and_the_group_ends(mac: FakeMac, project: Path) -> None:
    result = _run(mac, project, "sleep 1000 & echo $!; wait", timeout=0.2)
    assert (result.exit_code, result.timed_out) == (124, True)
    assert result.command_exit_code == 143
    assert result.signal == "SIGTERM"


def test_what_a_command_leaves_running_ends_with_it(mac: FakeMac, project: Path) -> None:
    result = _run(mac, project, "sleep 1000 > kept & echo $! > pid", {"allow_write": (f"{project}/",)})
    assert result.exit_code == 0
    pid = int((project / "pid").read_text(encoding="utf-8"))
    for _ in range(2000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except OSError:
            break
        if state.rpartition(")")[2].split()[0] == "Z":
            break
        threading.Event().wait(0.01)
    else:
        pytest.fail("it still runs")


def test_a_signal_reaches_the_command(mac: FakeMac, project: Path) -> None:
    request = mac_request(project, project.parents[1] / "temp", workspace=project.parent)
    ready = threading.Event()
    command = "trap 'echo caught; exit 7' USR1; echo ready; while :; do sleep 0.05; done"
    run = MacRun(
        Sessionless(), request, command, {"on_stdout": lambda _: ready.set(), "timeout": _LONG}, system=mac.tools
    )
    results: list[RunResult] = []
    thread = threading.Thread(target=lambda: results.append(run()))
    thread.start()
    assert ready.wait(_LONG)
    run.signal(signal.SIGUSR1)
    thread.join()
    assert (results[0].exit_code, results[0].stdout) == (7, b"ready\ncaught\n")


def test_a_run_that_was_stopped_before_starts_nothing(mac: FakeMac, project: Path) -> None:
    request = mac_request(project, project.parents[1] / "temp", workspace=project.parent)
    run = MacRun(Sessionless(), request, "touch ran", {}, system=mac.tools)
    run.stop()
    assert run().exit_code == 125
    assert not (project / "ran").exists()


def test_a_session_runs_a_request_of_macos_on_macos(
    mac: FakeMac, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_tools, "SYSTEM", mac.tools)
    request = mac_request(project, project.parents[1] / "temp", workspace=project.parent)
    with sandbox.Session() as session:
        assert session.run(request, command="echo $0 $((1+1))").stdout.endswith(b"2\n")
        assert asyncio.run(session.arun(request, command="exit 3")).exit_code == 3


def test_no_linux_room_is_needed_on_macos(mac: FakeMac, project: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from tests.support.fake_mac import FakeMac, mac_request\n"
        "from sandbox.macos import system_tools; import sandbox\n"
        f"mac = FakeMac(Path({str(mac.state)!r})); system_tools.SYSTEM = mac.tools\n"
        f"project = Path({str(project)!r})\n"
        "request = mac_request(project, project.parents[1] / 'temp', workspace=project.parent, pty=True)\n"
        "with sandbox.Session() as session:\n"
        "    assert session.run(request, command='true').exit_code == 0\n"
        "print([name for name in sys.modules if name.startswith('sandbox.linux')])\n"
    )
    done = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
