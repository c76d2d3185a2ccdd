"""EFFECT: the timeout of a command: TERM, KILL after a grace, and the end of waiting for output others hold open."""

from __future__ import annotations

import signal
import time

# The most seconds to wait for output that a process outside the group still holds open.
_DRAIN_SECONDS = 2.0


class MacCommandTimeout:
    """The clock of one attempt.

    Args:
        timeout: seconds for the command, `None` for no limit.
        grace: seconds between TERM and KILL of a command that took too long.
        began: when the command was started, by `time.monotonic`.

    Attributes:
        ran_out: whether the command took longer than its timeout.
        drain: when to wait no longer for output, by `time.monotonic`.
    """

    def __init__(self, timeout: float | None, grace: float, began: float) -> None:
        self._signals = [] if timeout is None else [(began + timeout, signal.SIGTERM)]
        self._grace = grace
        self.ran_out = False
        self.drain = float("inf")

    def due(self, now: float) -> int:
        """The signal to send now; 0 for none."""
        if not self._signals or now < self._signals[0][0]:
            return 0
        _, number = self._signals.pop(0)
        self.ran_out = True
        if number == signal.SIGTERM:
            self._signals.append((now + self._grace, signal.SIGKILL))
        return number

    def wait(self, now: float, pause: float | None) -> float | None:
        """Seconds until something is due; `None` when nothing will be."""
        due = min([self.drain, *(when for when, _ in self._signals)])
        left = [] if due == float("inf") else [max(0.0, due - now)]
        return min(left if pause is None else [*left, pause], default=None)

    def ended(self) -> None:
        """Send nothing more, since the command has ended."""
        self._signals.clear()
        self.drain = time.monotonic() + _DRAIN_SECONDS
