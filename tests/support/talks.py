"""A conversation with a command: what it is told, and waiting for what it answers."""

from __future__ import annotations

import os
import threading

_PATIENCE = 60.0


class Talk:
    """The command reads `stdin`; its output comes to `heard`."""

    def __init__(self) -> None:
        self.stdin, self._says = os.pipe()
        self._said = b""
        self._more = threading.Condition()

    def heard(self, chunk: bytes) -> None:
        with self._more:
            self._said += chunk
            self._more.notify_all()

    def say(self, text: str) -> None:
        os.write(self._says, text.encode())

    def until(self, text: str) -> None:
        """Wait until it says this; what came up to there is passed over."""
        wanted = text.encode()
        with self._more:
            assert self._more.wait_for(lambda: wanted in self._said, _PATIENCE), self._said
            self._said = self._said.partition(wanted)[2]

    def close(self) -> None:
        for fd in (self.stdin, self._says):
            os.close(fd)
