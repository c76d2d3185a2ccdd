"""EFFECT: a pipe that ends a poll."""

from __future__ import annotations

import contextlib
import os
import signal


class Wake:
    """A pipe that ends a poll when a child has ended, or another thread has something."""

    def __init__(self) -> None:
        self.descriptor, self._inside = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._inside, warn_on_full_buffer=False)

    def ring(self) -> None:
        """End the poll."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._inside, b"\0")

    def hush(self) -> None:
        """Empty the pipe."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.descriptor, 4096)

    def close(self) -> None:
        """Let go of it, in a fork."""
        os.close(self.descriptor)
        os.close(self._inside)
