"""A run as something to spawn: the relay's streams, signals and end are the command's."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from sandbox import NotStarted, Session
from tests.conftest import make_tree
from tests.kernel.conftest import SHOP, Workspace, shown, violated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sandbox import Wrapped


@pytest.fixture
def shop(places: Path) -> Iterator[Workspace]:
    root = make_tree(places / "ws", SHOP)
    with Session() as session:
        yield Workspace(session, places, root, root / "apps" / "shop", places / "home")


def spawn(wrapped: Wrapped, *, stdin: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        wrapped.argv,
        env=wrapped.env,
        cwd=wrapped.cwd,
        pass_fds=wrapped.pass_fds,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wrapped.attach(process.pid)
    return process


def test_the_relays_streams_are_the_commands_own_and_it_ends_as_the_command_did(shop: Workspace) -> None:
    with shop.session.wrap(shop.request(["notes.md"]), command="cat notes.md -; echo err >&2; exit 5") as wrapped:
        process = spawn(wrapped)
        assert process.communicate(b"fed\n", 60) == (b"notes\nfed\n", b"err\n")
        assert process.returncode == 5
        result = wrapped.result(60)
        assert (result.exit_code, result.trace, result.violations) == (5, "complete", ()), shown(result)
        assert result.stdout == b""


def test_a_violation_over_a_pass_is_the_relays_end_too(shop: Workspace) -> None:
    with shop.session.wrap(shop.request(), command="cat lib/cart.py; exit 0") as wrapped:
        process = spawn(wrapped)
        process.communicate(timeout=60)
        assert process.returncode == 1
        assert violated(wrapped.result(60), shop.project) == [("read", "lib/cart.py")]


def test_signals_to_the_relay_reach_the_commands_traps(shop: Workspace) -> None:
    command = "trap 'echo heard; exit 9' TERM; echo up; while :; do sleep 0.05; done"
    with shop.session.wrap(shop.request(), command=command) as wrapped:
        process = spawn(wrapped)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.terminate()
        assert process.communicate(timeout=60)[0] == b"heard\n"
        assert process.returncode == 9


def test_a_command_that_a_signal_ended_ends_the_relay_by_the_same(shop: Workspace) -> None:
    with shop.session.wrap(shop.request(), command="kill -SEGV $$") as wrapped:
        process = spawn(wrapped)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGSEGV
        assert wrapped.result(60).signal == "SIGSEGV"


def test_the_relays_death_ends_everything_inside(shop: Workspace) -> None:
    with shop.session.wrap(shop.request(), command="echo up; sleep 300") as wrapped:
        process = spawn(wrapped)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.kill()
        process.communicate(timeout=60)
        assert wrapped.result(60).signal == "SIGKILL"


def test_a_release_ends_what_runs_and_the_relay_with_it(shop: Workspace) -> None:
    wrapped = shop.session.wrap(shop.request(), command="echo up; sleep 300")
    process = spawn(wrapped)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    wrapped.release()
    wrapped.release()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert wrapped.result().signal == "SIGKILL"


def test_a_wrapped_command_that_nobody_spawns_runs_nothing_and_leaves_nothing(shop: Workspace) -> None:
    before = set(os.listdir("/proc/self/fd"))
    wrapped = shop.session.wrap(shop.request(write=["made"]), command="touch made")
    wrapped.release()
    with pytest.raises(NotStarted, match="no streams"):
        wrapped.result(60)
    assert not (shop.project / "made").exists()
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_relay_that_died_before_it_spoke_is_told(shop: Workspace) -> None:
    with shop.session.wrap(shop.request(), command="true") as wrapped:
        process = subprocess.Popen(("true",), pass_fds=wrapped.pass_fds)
        process.wait(60)
        with pytest.raises(NotStarted, match=f"process {process.pid} is gone"):
            wrapped.attach(process.pid)


def test_a_refused_run_says_why_on_the_relays_errors_and_ends_with_125(shop: Workspace) -> None:
    with shop.session.wrap(shop.request(), command="true", cwd=str(shop.project / "gone")) as wrapped:
        wrapped.cwd = str(shop.project)
        process = spawn(wrapped)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 125
        assert said.startswith(b"error: the working directory ")


def test_a_closed_input_is_an_empty_one(shop: Workspace) -> None:
    with shop.session.wrap(shop.request(), command="cat; echo end") as wrapped:
        process = spawn(wrapped, stdin=subprocess.DEVNULL)
        assert process.communicate(timeout=60)[0] == b"end\n"


def test_the_session_that_closes_ends_the_relay(shop: Workspace) -> None:
    wrapped = shop.session.wrap(shop.request(), command="echo up; sleep 300")
    process = spawn(wrapped)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    shop.session.close()
    process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGKILL, 125)
    wrapped.release()


def test_a_timeout_is_the_relays_124(shop: Workspace) -> None:
    with shop.session.wrap(shop.request(), command="sleep 300", timeout=0.2) as wrapped:
        process = spawn(wrapped)
        process.communicate(timeout=60)
        assert process.returncode == 124
        assert wrapped.result(60).timed_out
