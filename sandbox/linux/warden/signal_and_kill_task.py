"""EFFECT: a task's process 1 and its command, as the warden signals and ends them."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class NotStartedYet(Exception):
    """The task was to be killed before there was anything to kill."""


class TaskProcesses:
    """Two processes of a task, by their numbers on the host.

    Args:
        first: process 1's number, 0 while the joiner has not told it.
        on_kill: called when the command is sent SIGKILL; process 1 has yet to end what the command left.

    Attributes:
        first: process 1's number, 0 while it is not known.
        command: the command's number, 0 while it was not forked.
        ended: whether process 1 told of its command's end.
        gone: whether process 1 told of its own end or was waited for; its number may then be another's.
        killed: whether the warden sent SIGKILL.
    """

    def __init__(self, first: int, *, on_kill: Callable[[], object] = lambda: None) -> None:
        self.first = first
        self.command = 0
        self.ended = self.gone = self.killed = False
        self._on_kill = on_kill
        self._handle = -1

    def forked(self, command: int) -> None:
        """The command's process exists, and waits to be let go."""
        self.command = command
        self._handle = os.pidfd_open(command)

    def kill(self) -> None:
        """End the whole sandbox.

        The command alone is killed where there is one: process 1 then kills the rest and waits for it, since the
        kernel adds the usage of a process to nobody's that did not wait for it (getrusage(2), RUSAGE_CHILDREN).

        Raises:
            NotStartedYet: there is no process 1.
        """
        if self._handle >= 0 and not self.gone:
            self.killed = True
            self._on_kill()
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
