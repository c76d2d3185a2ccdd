"""The deadlines of a task: a real child that SIGTERM does not end stands in for its command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from sandbox.linux.warden.command_timeout import CommandTimeout
from sandbox.linux.warden.signal_and_kill_task import NotStartedYet, TaskProcesses

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="a process is held by a pidfd, as Linux has them")
_STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
)


@pytest.fixture
def command() -> Iterator[subprocess.Popen[bytes]]:
    """A process group of its own that SIGTERM does not end."""
    child = subprocess.Popen((sys.executable, "-c", _STUBBORN), stdout=subprocess.PIPE, start_new_session=True)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        yield child
        child.kill()


def test_a_sandbox_that_does_not_stand_in_time_is_given_up() -> None:
    with pytest.raises(NotStartedYet):
        CommandTimeout(None, 0.05).expire(TaskProcesses(0))


def test_a_sandbox_has_a_time_to_stand_in_and_a_command_its_own() -> None:
    limit = CommandTimeout(None, 0.05)
    left = limit.seconds_left()
    assert left is not None
    assert left > 1
    limit.begin()
    assert limit.seconds_left() is None
    assert not limit.overdue


def test_a_command_that_takes_too_long_is_asked_to_end_and_then_killed(command: subprocess.Popen[bytes]) -> None:
    limit = CommandTimeout(0.01, 0.05)
    held = TaskProcesses(0, on_kill=limit.killed)
    held.forked(command.pid)
    limit.begin()
    _wait_until_overdue(limit)
    limit.expire(held)
    assert (limit.timed_out, held.killed, command.poll()) == (True, False, None)
    _wait_until_overdue(limit)
    limit.expire(held)
    assert (limit.timed_out, held.killed) == (True, True)
    assert command.wait(10) == -signal.SIGKILL


def _wait_until_overdue(limit: CommandTimeout) -> None:
    end = time.monotonic() + 10
    while not limit.overdue:
        assert time.monotonic() < end
        time.sleep(0.005)
