"""A conversation with a command: what it is told, and waiting for what it answers."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import termios
import threading
from typing import TYPE_CHECKING, Any

from sandbox.terminal.terminal_modes import resize

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox import RunResult

_PATIENCE = 60.0


def in_background(run: Callable[[], RunResult]) -> Callable[[], RunResult]:
    """Begin a run; what comes back waits for its result."""
    results: list[RunResult] = []
    thread = threading.Thread(target=lambda: results.append(run()), daemon=True)
    thread.start()

    def wait() -> RunResult:
        thread.join(_PATIENCE)
        assert results, "it still runs"
        return results[0]

    return wait


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


class Desk(Talk):
    """A terminal with somebody at it; `near` is what programs are started on, with `on`."""

    def __init__(self, rows: int = 33, columns: int = 101) -> None:
        super().__init__()
        self.far, self.near = pty.openpty()
        self._started: list[subprocess.Popen[bytes]] = []
        resize(self.near, rows, columns)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while chunk := os.read(self.far, 65536):
                self.heard(chunk)

    def say(self, text: str) -> None:
        os.write(self.far, text.encode())

    def modes(self) -> list[Any]:
        return termios.tcgetattr(self.near)

    def on(self, *command: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start a program with this terminal as its own; its number is that of the returned process."""
        streams = {"stdin": self.near, "stdout": self.near, "stderr": self.near}
        # whoever runs the tests may ignore signals, as nohup and a shell's `&` do
        words = ("env", "--default-signal", "setsid", "--ctty", *command)
        started: subprocess.Popen[bytes] = subprocess.Popen(words, **{**streams, **options})
        self._started.append(started)
        return started

    def close(self) -> None:
        for started in self._started:
            started.kill()
            started.wait(60)
        # the last descriptor of the near side ends the reader
        os.close(self.near)
        self._reader.join(60)
        os.close(self.far)
        super().close()
