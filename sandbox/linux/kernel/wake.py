"""EFFECT: a pipe that ends a poll from a signal handler or another thread."""

from __future__ import annotations

import contextlib
import os
import signal


class Wake:
    """A pipe that becomes readable when a child ends or another thread rings."""

    def __init__(self) -> None:
        self.descriptor, self._inside = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._inside, warn_on_full_buffer=False)

    def ring(self) -> None:
        """End the poll, from any thread."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._inside, b"\0")

    def clear(self) -> None:
        """Empty the pipe after its poll has ended."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.descriptor, 4096)

    def close(self) -> None:
        """Close both ends, in a fork that is not to hold them."""
        os.close(self.descriptor)
        os.close(self._inside)
