"""EFFECT: a task's process 1 and its command, as the warden signals, times out and ends them."""

from __future__ import annotations

import contextlib
import os
import signal
import time

#: Seconds for the sandbox to be built, from the warden's start to the command's.
SETUP_SECONDS = 30.0
# process 1 kills and reaps what the command left; one that does not come to it is killed itself
_REAP_SECONDS = 5.0


class NotStartedYet(Exception):
    """The task was to be killed before there was anything to kill."""


class TaskProcesses:
    """Two processes of a task, by their numbers on the host.

    Args:
        first: process 1's number, 0 while the joiner has not told it.
        timeout: seconds for the command, `None` for no limit.
        grace: seconds between SIGTERM and SIGKILL of a command that took too long.

    Attributes:
        first: process 1's number, 0 while it is not known.
        command: the command's number, 0 while it was not forked.
        began: when the command was let go, by `time.monotonic`; 0.0 before that.
        ended: whether process 1 told of its command's end.
        gone: whether process 1 told of its own end or was waited for; its number may then be another's.
        killed: whether the warden sent SIGKILL.
        timed_out: whether the command took longer than its timeout.
    """

    def __init__(self, first: int, *, timeout: float | None, grace: float) -> None:
        self.first = first
        self.command = 0
        self.began = 0.0
        self.ended = self.gone = self.killed = self.timed_out = False
        self._timeout = timeout
        self._grace = grace
        self._handle = -1
        self._deadline = time.monotonic() + SETUP_SECONDS

    def forked(self, command: int) -> None:
        """The command's process exists, and waits to be let go."""
        self.command = command
        self._handle = os.pidfd_open(command)

    def begin(self) -> None:
        """The command is let go: from now on its own timeout counts."""
        self.began = time.monotonic()
        self._deadline = self.began + self._timeout if self._timeout is not None else 0.0

    def seconds_left(self) -> float | None:
        """Seconds until `overdue`, `None` where nothing is timed."""
        return max(0.0, self._deadline - time.monotonic()) if self._deadline else None

    @property
    def overdue(self) -> bool:
        """Whether a deadline has passed."""
        return bool(self._deadline) and time.monotonic() >= self._deadline

    def expire(self) -> None:
        """Act on a passed deadline: SIGTERM to the command, then SIGKILL, then SIGKILL to process 1.

        Raises:
            NotStartedYet: the command has not begun.
        """
        if self.killed:
            self._deadline = 0.0
            self.end_first()
        elif not self.began:
            raise NotStartedYet(f"the sandbox did not stand within {SETUP_SECONDS:.0f} s")
        elif self.timed_out:
            self._deadline = 0.0
            self.kill()
        else:
            self.timed_out = True
            self._deadline = time.monotonic() + self._grace
            self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the whole sandbox.

        The command alone is killed where there is one: process 1 then kills the rest and waits for it, since the
        kernel adds the usage of a process to nobody's that did not wait for it (getrusage(2), RUSAGE_CHILDREN).

        Raises:
            NotStartedYet: there is no process 1.
        """
        if self._handle >= 0 and not self.gone:
            self.killed = True
            self._deadline = time.monotonic() + _REAP_SECONDS
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        elif self.first:
            self.end_first()
        else:
            raise NotStartedYet("the run was stopped before the command started")

    def end_first(self) -> None:
        """Kill process 1, and with it everything inside (pid_namespaces(7))."""
        if self.first and not self.gone:
            self.killed = True
            os.kill(self.first, signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Send a signal of the executor's to the command's process group; SIGKILL ends the whole sandbox.

        Raises:
            NotStartedYet: as `kill`.
        """
        if number == signal.SIGWINCH and not self.command:
            return  # a command that has not started asks for the size itself
        if number == signal.SIGKILL or not self.command:
            self.kill()
        elif not self.ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.command, number)
