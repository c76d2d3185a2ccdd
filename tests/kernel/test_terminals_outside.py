"""A task with a terminal where the caller has one: `vxconf run` in a shell's window, and a wrapped run's relay."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox import Session
from sandbox.terminal.terminal_modes import resize
from tests.conftest import REPOSITORY
from tests.support.talks import Desk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Tree
    from tests.kernel.conftest import Workspace

    Factory = Callable[[Tree], Path]

pytestmark = pytest.mark.skipif(shutil.which("setsid") is None, reason="setsid is not installed")

_VXCONF = (sys.executable, "-m", "vxconf", "run", "t")
_ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}"}
_RAW = termios.ICANON | termios.ECHO | termios.ISIG


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.close()


def project(make: Factory, command: str) -> Path:
    text = (
        f"[tasks.t.exec]\ncommand = '''{command}'''\n[tasks.t.exec.sandbox.allow]\npty = true\nread = [\"notes.md\"]\n"
    )
    return make({"p/vx.toml": text, "p/notes.md": "notes\n", ".git/HEAD": "ref: refs/heads/main\n"}) / "p"


def test_a_task_in_a_window_has_its_size_its_keys_and_leaves_it_as_it_was(
    workspace_factory: Factory, desk: Desk
) -> None:
    before = desk.modes()
    where = project(
        workspace_factory, 'stty size; read line; echo got $line; exec env PS1="ready> " bash --norc --noprofile -i'
    )
    running = desk.on(*_VXCONF, cwd=where, env=_ENVIRONMENT)

    def say(text: str) -> None:
        # what is typed while a shell takes the terminal back from a job may be dropped
        desk.until("ready> ")
        desk.say(text)

    desk.until("33 101")
    desk.say("words\r")
    desk.until("got words")
    assert not desk.modes()[3] & _RAW
    say("sh -c 'echo up-$((1+1)); exec sleep 1000'\r")
    desk.until("up-2")
    desk.say("\x03")
    say("echo status-$?-end; trap 'stty size' WINCH\r")
    desk.until("status-130-end")
    desk.until("ready> ")
    resize(desk.far, 44, 120)
    desk.say("\r")
    desk.until("44 120")
    say("exit 6\r")
    assert running.wait(60) == 6
    assert desk.modes() == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT])
def test_a_signal_to_the_run_ends_the_task_and_gives_the_window_back(
    workspace_factory: Factory, desk: Desk, number: signal.Signals
) -> None:
    before = desk.modes()
    running = desk.on(*_VXCONF, cwd=project(workspace_factory, "echo up; exec sleep 1000"), env=_ENVIRONMENT)
    desk.until("up")
    assert not desk.modes()[3] & _RAW
    running.send_signal(number)
    assert running.wait(60) == 128 + number
    assert desk.modes() == before


def killed(desk: Desk, where: Path, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Run a task from a shell in the window, kill the run, and wait until nothing of it is left."""
    shell = desk.on("/bin/sh", "-c", f"{' '.join(_VXCONF)}; read end", cwd=where, env=_ENVIRONMENT)
    desk.until("up")
    assert not desk.modes()[3] & _RAW
    meanwhile()
    (run,) = children(shell.pid)
    (supervisor,) = children(run)
    with gone(supervisor):
        os.kill(run, signal.SIGKILL)
    desk.say("end\r")
    # a terminal is of one session at a time
    assert shell.wait(60) == 0


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


@contextlib.contextmanager
def gone(pid: int) -> Iterator[None]:
    """Leave once a process has ended."""
    handle = os.pidfd_open(pid)
    try:
        yield
        assert select.select([handle], [], [], 60)[0], f"{pid} is still there"
    finally:
        os.close(handle)


def test_a_killed_run_gives_the_window_back(workspace_factory: Factory, desk: Desk) -> None:
    before = desk.modes()
    where = project(workspace_factory, "echo up; exec sleep 1000")
    for _ in range(3):
        killed(desk, where)
        assert desk.modes() == before


def test_a_window_that_another_has_set_meanwhile_is_left_to_it(workspace_factory: Factory, desk: Desk) -> None:
    other = desk.modes()
    other[3] &= ~termios.ICANON
    killed(
        desk,
        project(workspace_factory, "echo up; exec sleep 1000"),
        lambda: termios.tcsetattr(desk.near, termios.TCSANOW, other),
    )
    assert desk.modes()[:6] == other[:6]


def test_a_task_run_by_script_believes_in_its_terminal(workspace_factory: Factory, tmp_path: Path) -> None:
    where = project(workspace_factory, "test -t 0 && test -t 1 && test -t 2 && /usr/bin/tty")
    command = f"{sys.executable} -m vxconf run t"
    done = subprocess.run(
        ("script", "-qec", command, str(tmp_path / "typescript")),
        cwd=where,
        env=_ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout.decode()
    assert b"/dev/pts/0" in done.stdout


def test_without_a_window_the_task_still_has_one(workspace_factory: Factory) -> None:
    where = project(workspace_factory, "test -t 1 && /usr/bin/stty size && /usr/bin/cat")
    done = subprocess.run(
        _VXCONF, cwd=where, env=_ENVIRONMENT, input=b"piped\n", capture_output=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, b"24 80\r\npiped\r\n"), done.stderr.decode()


def test_a_wrapped_runs_relay_lends_its_terminal(quick_shop: Workspace, desk: Desk) -> None:
    before = desk.modes()
    command = "trap 'stty size' WINCH; stty size; until read line; do :; done; echo got $line; exec sleep 1000"
    with Session() as session, session.wrap(quick_shop.request(pty=True), command=command) as wrapped:
        relay = desk.on(*wrapped.argv, env=wrapped.env, cwd=wrapped.cwd, pass_fds=wrapped.pass_fds)
        wrapped.attach(relay.pid)
        desk.until("33 101")
        resize(desk.far, 44, 120)
        desk.until("44 120")
        desk.say("words\r")
        desk.until("got words")
        assert not desk.modes()[3] & _RAW
        desk.say("\x03")
        assert relay.wait(60) == -signal.SIGINT
        assert wrapped.result(60).signal == "SIGINT"
    assert desk.modes() == before


def test_a_relay_that_is_killed_gets_its_terminal_back(quick_shop: Workspace, desk: Desk) -> None:
    before = desk.modes()
    with Session() as session, session.wrap(quick_shop.request(pty=True), command="echo up; sleep 1000") as wrapped:
        relay = desk.on(*wrapped.argv, env=wrapped.env, cwd=wrapped.cwd, pass_fds=wrapped.pass_fds)
        wrapped.attach(relay.pid)
        desk.until("up")
        relay.kill()
        assert wrapped.result(60).signal == "SIGKILL"
    assert desk.modes() == before


def test_a_wrapped_run_without_a_terminal_outside_has_one_inside(quick_shop: Workspace) -> None:
    with Session() as session, session.wrap(quick_shop.request(pty=True), command="tty; cat; exit 4") as wrapped:
        relay = subprocess.Popen(
            wrapped.argv,
            env=wrapped.env,
            cwd=wrapped.cwd,
            pass_fds=wrapped.pass_fds,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        wrapped.attach(relay.pid)
        output, _ = relay.communicate(b"fed\n", 60)
        assert (output, relay.returncode) == (b"/dev/pts/0\r\nfed\r\n", 4)
