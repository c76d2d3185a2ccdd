"""A signal that comes before a run's command starts ends the run: the command never starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import Session
from sandbox.linux.run import attempt
from tests.conftest import REPOSITORY
from tests.kernel.conftest import Workspace, shown

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sandbox.linux.warden_messages import Base
    from tests.conftest import Tree

pytestmark = pytest.mark.one_user

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGKILL)
STOPPED = "the run was stopped before the command started"


class Handing(Session):
    """A session that is sent a signal around the hand-over of a run to its warden."""

    def __init__(self, number: int, *, after: bool) -> None:
        super().__init__()
        self._number = number
        self._after = after

    def hand_over(self, base: Base, fds: list[int]) -> None:
        if not self._after:
            self.signal(self._number)
        super().hand_over(base, fds)
        if self._after:
            self.signal(self._number)


def asked(act: Callable[[], object]) -> Iterator[str]:
    """Names of variables for a run, which does something as it prepares them."""
    act()
    yield "LANG"


def runs_nothing(shop: Workspace, **options: Any) -> None:
    (shop.project / "out").mkdir(exist_ok=True)
    result = shop.run("touch out/made; echo ran", write=["out/"], **options)
    assert (result.started, result.exit_code, result.stdout) == (False, 125, b""), shown(result)
    assert [refusal.message for refusal in result.refusals] == [STOPPED]
    assert not (shop.project / "out" / "made").exists()


@pytest.mark.parametrize("number", ENDING)
def test_while_a_run_is_prepared(quick_shop: Workspace, number: int) -> None:
    runs_nothing(quick_shop, pass_through=asked(lambda: quick_shop.session.signal(number)))
    assert quick_shop.passes("echo on") == "on\n", "no other run is affected"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_while_it_is_handed_to_its_warden(quick_shop: Workspace, number: int, *, after: bool) -> None:
    with Handing(number, after=after) as quick_shop.session:
        runs_nothing(quick_shop)


def test_while_its_sandbox_is_built(quick_shop: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"many/{n}" for n in range(1000)]
    (quick_shop.project / "many").mkdir()
    for name in names:
        (quick_shop.project / name).touch()
    with Session() as quick_shop.session:
        pump = attempt.Attempt._pump

        def told(self: attempt.Attempt, control: socket.socket) -> attempt.Report:
            quick_shop.session.signal(signal.SIGINT)
            return pump(self, control)

        monkeypatch.setattr(attempt.Attempt, "_pump", told)
        runs_nothing(quick_shop, read=names)


@pytest.mark.parametrize("number", [signal.SIGWINCH, signal.SIGCONT])
def test_what_ends_no_process_ends_no_run(quick_shop: Workspace, number: int) -> None:
    assert quick_shop.passes("echo ran", pass_through=asked(lambda: quick_shop.session.signal(number))) == "ran\n"


def test_after_an_interrupt_no_run_begins(quick_shop: Workspace) -> None:
    with Session() as quick_shop.session:
        assert quick_shop.passes("echo on") == "on\n"
        quick_shop.session.interrupt(signal.SIGWINCH)
        assert quick_shop.passes("echo on") == "on\n"
        quick_shop.session.interrupt(signal.SIGTERM)
        runs_nothing(quick_shop)


_EARLY = """
import os, signal, sys
from vxconf.cli import forward_signals
entered = forward_signals.SignalForwarder.__enter__
def early(self):
    entered(self)
    os.kill(os.getpid(), signal.{name})
    return self
forward_signals.SignalForwarder.__enter__ = early
from vxconf.__main__ import main
sys.exit(main(["run", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("words", [["t"], ["--all", "t"]], ids=["one", "several"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_to_vxconf_itself(workspace_factory: Callable[[Tree], Path], words: list[str], name: str) -> None:
    text = '[tasks.t.exec]\ncommand = "echo ran"\nsandbox = {}\n'
    root = workspace_factory({"p/vx.toml": text, ".git/HEAD": "ref: refs/heads/main\n"})
    done = subprocess.run(
        [sys.executable, "-c", _EARLY.format(name=name), *words],
        cwd=root / "p",
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert b"ran" not in done.stdout, done.stderr.decode()
    if len(words) == 1:
        assert done.returncode == 125
        assert STOPPED in done.stderr.decode()
