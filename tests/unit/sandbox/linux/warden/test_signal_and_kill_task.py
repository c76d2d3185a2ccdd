"""A task's process 1 and its command, signalled and ended: real children stand in for both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

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


def _held(*, first: int = 0) -> TaskProcesses:
    return TaskProcesses(first)


def test_there_is_nothing_to_kill_before_process_1_is_known() -> None:
    held = _held()
    for act in (held.kill, lambda: held.signal(signal.SIGTERM)):
        with pytest.raises(NotStartedYet):
            act()
    held.end_first()
    held.signal(signal.SIGWINCH)
    assert not held.killed


def test_a_signal_reaches_the_command_until_its_end_was_told(command: subprocess.Popen[bytes]) -> None:
    held = _held()
    held.forked(command.pid)
    held.ended = True
    held.signal(signal.SIGUSR1)
    assert command.poll() is None
    held.ended = False
    held.signal(signal.SIGUSR1)
    assert command.wait(10) == -signal.SIGUSR1
    # a group that is gone is nobody's error
    held.signal(signal.SIGUSR1)


def test_a_number_that_may_be_anothers_is_never_killed(command: subprocess.Popen[bytes]) -> None:
    held = _held(first=command.pid)
    held.gone = True
    held.end_first()
    held.kill()
    assert (held.killed, command.poll()) == (False, None)
    held.gone = False
    held.kill()
    assert command.wait(10) == -signal.SIGKILL
