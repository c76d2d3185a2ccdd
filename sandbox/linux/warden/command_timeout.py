"""EFFECT: the timeout of a task's command and the deadlines around it: for its sandbox to stand, and for it to end."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from sandbox.linux.warden.signal_and_kill_task import NotStartedYet

if TYPE_CHECKING:
    from sandbox.linux.warden.signal_and_kill_task import TaskProcesses

#: Seconds for the sandbox to be built, from the warden's start to the command's.
SETUP_SECONDS = 30.0
# process 1 kills and reaps what the command left; one that does not come to it is killed itself
_REAP_SECONDS = 5.0


class CommandTimeout:
    """The deadline of one task, which moves as the task goes on.

    Args:
        timeout: seconds for the command, `None` for no limit.
        grace: seconds between SIGTERM and SIGKILL of a command that took too long.

    Attributes:
        began: when the command was let go, by `time.monotonic`; 0.0 before that.
        timed_out: whether the command took longer than its timeout.
    """

    def __init__(self, timeout: float | None, grace: float) -> None:
        self.began = 0.0
        self.timed_out = False
        self._timeout = timeout
        self._grace = grace
        self._deadline = time.monotonic() + SETUP_SECONDS

    def begin(self) -> None:
        """The command is let go: from now on its own timeout counts."""
        self.began = time.monotonic()
        self._deadline = self.began + self._timeout if self._timeout is not None else 0.0

    def killed(self) -> None:
        """The command was sent SIGKILL: process 1 has a while to end what it left."""
        self._deadline = time.monotonic() + _REAP_SECONDS

    def seconds_left(self) -> float | None:
        """Seconds until `overdue`, `None` where nothing is timed."""
        return max(0.0, self._deadline - time.monotonic()) if self._deadline else None

    @property
    def overdue(self) -> bool:
        """Whether a deadline has passed."""
        return bool(self._deadline) and time.monotonic() >= self._deadline

    def expire(self, processes: TaskProcesses) -> None:
        """Act on a passed deadline: SIGTERM to the command, then SIGKILL, then SIGKILL to process 1.

        Raises:
            NotStartedYet: the command has not begun.
        """
        if processes.killed:
            self._deadline = 0.0
            processes.end_first()
        elif not self.began:
            raise NotStartedYet(f"the sandbox did not stand within {SETUP_SECONDS:.0f} s")
        elif self.timed_out:
            self._deadline = 0.0
            processes.kill()
        else:
            self.timed_out = True
            self._deadline = time.monotonic() + self._grace
            processes.signal(signal.SIGTERM)
