"""strace as the observer: when it is chosen, what it is to the task, and what its loss means."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY
from tests.kernel.conftest import Workspace, shown, violated

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed here")

_SECONDS = 60


@pytest.fixture
def traced(quick_shop: Workspace) -> Workspace:
    quick_shop.observer = "strace"
    return quick_shop


def _tracer(command: int) -> int:
    """The strace attached to a process, as the kernel says."""
    with open(f"/proc/{command}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("TracerPid:"))


# below a listener of somebody else's: such a filter is inherited, and the kernel allows one
_BELOW = """
import json, sys
from sandbox import ResolvedSandboxConfig, Session
from sandbox.linux.kernel import bpf, kernel_calls as kernel
root, project, observer = sys.argv[1:]
kernel.install_filter(bpf.assemble(bpf.returns(bpf.ALLOW)), listener=True)
config = ResolvedSandboxConfig(platform="linux", workspace=root, project=project, allow_read=(project + "/lib/",))
with Session() as session:
    request = session.request(config, workspace_root=root)
    for _ in range(2):
        result = session.run(request, command="cat lib/cart.py; cat notes.md; true", observer=observer)
        found = [violation.path for violation in result.violations]
        print(json.dumps([result.exit_code, result.observer, result.trace, found, list(map(str, result.refusals))]))
"""


def _below(shop: Workspace, observer: str, path: str = "") -> list[list[object]]:
    done = subprocess.run(
        (sys.executable, "-c", _BELOW, str(shop.root), str(shop.project), observer),
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **({"PATH": path} if path else {})},
        capture_output=True,
        text=True,
        check=True,
        timeout=2 * _SECONDS,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_strace_observes_where_the_kernel_gives_a_filter_no_listener(quick_shop: Workspace) -> None:
    seen = [1, "strace", "complete", [str(quick_shop.project / "notes.md")], []]
    assert _below(quick_shop, "auto") == [seen, seen]


def test_doctor_says_which_observer_there_is_and_why(quick_shop: Workspace) -> None:
    script = (
        "import sys; from sandbox.linux.kernel import bpf, kernel_calls as kernel; from vxconf.__main__ import main;"
        "kernel.install_filter(bpf.assemble(bpf.returns(bpf.ALLOW)), listener=True); sys.exit(main())"
    )
    done = subprocess.run(
        (sys.executable, "-c", script, "doctor"),
        cwd=quick_shop.project,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(REPOSITORY), *sys.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * _SECONDS,
    )
    assert done.stdout.startswith("sandboxes run here, watched by: strace"), done
    assert "the kernel gives its filter no listener" in done.stdout


@pytest.mark.parametrize("observer", ["notify", "mask"])
def test_an_observer_that_was_asked_for_is_not_replaced(quick_shop: Workspace, observer: str) -> None:
    for code, _, _, _, refusals in _below(quick_shop, observer):
        assert code == 125
        assert "use the observer auto or strace" in str(refusals)


def test_a_task_cannot_see_signal_or_trace_its_tracer(traced: Workspace) -> None:
    command = """
        grep TracerPid /proc/self/status
        cat /proc/[0-9]*/comm
        ls /proc/self/fd
        kill -9 -1
        true
    """
    result = traced.run(command)
    lines = result.stdout.decode().splitlines()
    assert lines[0].split() == ["TracerPid:", "0"]
    assert not [line for line in lines if "strace" in line]
    # what it holds: its streams, and the directory it lists
    assert set(lines) & {str(n) for n in range(4, 100)} == set()
    assert b"No such process" in result.stderr, "there was somebody to signal"
    assert (result.exit_code, result.trace) == (0, "complete"), shown(result)


def test_what_forbids_being_read_is_read(traced: Workspace) -> None:
    script = "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); open('notes.md')"
    result = traced.run(f'{sys._base_executable} -I -S -c "{script}"; true')  # type: ignore[attr-defined]
    assert violated(result, traced.project) == [("read", "notes.md")], shown(result)
    assert result.trace == "complete"


def test_a_tracer_that_is_killed_is_no_pass_and_its_attempt_is_made_once_more(traced: Workspace) -> None:
    for kills, code in ((1, 0), (2, 1)):
        shutil.rmtree(traced.project / "out", ignore_errors=True)
        started: list[int] = []

        def killed(pid: int, started: list[int] = started, kills: int = kills) -> None:
            started.append(pid)
            if len(started) <= kills:
                os.kill(_tracer(pid), signal.SIGKILL)
            else:
                (traced.project / "out/go").touch()

        result = traced.run("while [ ! -e out/go ]; do sleep 0.01; done", on_start=killed, write=["out/"])
        assert len(started) == 2, shown(result)
        assert (result.exit_code == 0) is (code == 0), shown(result)
        assert result.trace == ("complete" if code == 0 else "partial"), shown(result)


def test_a_tracer_that_is_killed_takes_the_command_with_it(traced: Workspace) -> None:
    started: list[int] = []

    def killed(pid: int) -> None:
        started.append(pid)
        os.kill(_tracer(pid), signal.SIGKILL)

    # nothing but the end of strace ends it
    result = traced.run("while :; do :; done", on_start=killed, timeout=4 * _SECONDS)
    assert (result.trace, result.timed_out, len(started)) == ("partial", False, 2), shown(result)
    assert result.exit_code not in (0, 124), shown(result)


def test_a_tracer_killed_after_a_violation_leaves_it_told_and_nothing_is_run_again(traced: Workspace) -> None:
    started: list[int] = []

    def end(_: object) -> None:
        os.kill(_tracer(started[0]), signal.SIGKILL)

    result = traced.run("cat notes.md; while :; do :; done", on_start=started.append, on_violation=end)
    assert violated(result, traced.project) == [("read", "notes.md")]
    assert (len(started), result.trace) == (1, "partial"), shown(result)
    assert result.exit_code != 0


def test_what_is_left_running_keeps_no_run_from_its_end(traced: Workspace) -> None:
    assert traced.passes("sleep 1000 & echo ended") == "ended\n"


@pytest.mark.parametrize("end", ["exec true", "exit 0", "(exit 0)"])
def test_however_a_command_ends_its_trace_does(traced: Workspace, end: str) -> None:
    traced.passes(f"true; {end}")


def test_a_thread_may_end_the_command(traced: Workspace) -> None:
    script = "import os, threading, time; threading.Thread(target=lambda: os._exit(0)).start(); time.sleep(100)"
    traced.passes(f'{sys._base_executable} -I -S -c "{script}"')  # type: ignore[attr-defined]


def test_each_violation_is_told_as_it_happens(traced: Workspace) -> None:
    fifo = traced.project / "out" / "go"
    (traced.project / "out").mkdir()
    os.mkfifo(fifo)
    heard: list[str] = []
    # held open: what nobody holds a pipe for is lost
    descriptor = os.open(fifo, os.O_RDWR)

    def hear(violation: object) -> None:
        heard.append(str(violation))
        os.write(descriptor, b"x\n")

    result = traced.run("cat notes.md; read _ < out/go; true", write=["out/"], on_violation=hear, timeout=_SECONDS)
    os.close(descriptor)
    assert (len(heard), result.timed_out) == (1, False), shown(result)


def test_a_missing_strace_is_said(quick_shop: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.machine.required_programs._USUAL", ())
    bwrap = shutil.which("bwrap")
    monkeypatch.setattr("sandbox.linux.run.prepare.find_bwrap", lambda *_: bwrap)
    monkeypatch.setenv("PATH", str(quick_shop.base))
    result = quick_shop.run("true", observer="strace")
    assert (result.exit_code, result.started) == (125, False)
    assert "strace is not installed" in result.refusals[0].message
