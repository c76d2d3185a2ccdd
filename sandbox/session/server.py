"""EFFECT: a command that stays up while others use it: when it is ready, how it is stopped, and its result."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from sandbox.contract.errors import SandboxError
from sandbox.contract.run_options import GRACE
from sandbox.session.background_run import BackgroundRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from sandbox.contract.results import RunResult
    from sandbox.contract.run_options import Running, RunOptions

#: The seconds a server may take to be ready, where nobody says otherwise.
READY_SECONDS = 60.0

_POLL_SECONDS = 0.02
# The most bytes of a line without an end that are searched.
_LONGEST_LINE = 64 << 10
# Colours in the middle of `http://localhost:5173` are not part of the text.
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LISTENING = "0A"
# Statuses of a command that ended by the signal it was stopped with.
_STOPPED = frozenset(128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


class NotReady(SandboxError):
    """A server that did not become ready; `result` is the result of its run, `None` while it still runs."""

    def __init__(self, message: str, *, hint: str = "", result: RunResult | None = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The sign that a server is ready; without either, it is ready once its command runs.

    Attributes:
        output: a regular expression searched for in each line of either stream, colours left out.
        port: a TCP port it listens on, on any address of its own network.
        timeout: seconds from its start.
    """

    output: str = ""
    port: int | None = None
    timeout: float = READY_SECONDS

    def __str__(self) -> str:
        """The sign as a clause."""
        if self.port is not None:
            return f"it listens on port {self.port}"
        return f"a line matches {self.output}" if self.output else "its command runs"


class Server:
    """One running server; leaving its context stops it."""

    def __init__(self, make: Callable[[RunOptions], Running], options: RunOptions, ready: Ready | None = None) -> None:
        """Start the server.

        Raises:
            SandboxError: `ready.output` is no regular expression.
        """
        self._ready = ready or Ready()
        self._changed = threading.Condition()
        self._pid = 0
        self._is_ready = False
        self._stopping = False
        try:
            self._pattern = re.compile(self._ready.output) if self._ready.output else None
        except re.error as error:
            message = f"readyWhen.output is no regular expression: {error}"
            raise SandboxError(message, hint="escape what is meant literally") from None
        self._began = time.monotonic()
        self._on_start = options.get("on_start")
        options = {
            **options,
            "on_stdout": _Lines(self._said, options.get("on_stdout")),
            "on_stderr": _Lines(self._said, options.get("on_stderr")),
            "on_start": self._started,
        }
        self._run = make(options)
        self._background = BackgroundRun("the server", self._run, on_end=self._wake)
        self._background.start()

    def __enter__(self) -> Self:
        """The server itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the server."""
        self.stop()

    @property
    def running(self) -> bool:
        """Whether the server has not ended yet."""
        return self._background.running

    @property
    def ready(self) -> bool:
        """Whether the server has been seen to be ready."""
        return self._is_ready

    def wait_ready(self) -> None:
        """Wait until the server is ready.

        Raises:
            NotReady: it ended before, or its time is over; it is left as it is.
        """
        deadline = self._began + self._ready.timeout
        while not self._is_ready:
            if not self.running:
                result = self.wait()
                raise NotReady(
                    f"the server ended with {result.exit_code} before {self._ready}",
                    hint="see its output and its violations",
                    result=result,
                )
            left = deadline - time.monotonic()
            if left <= 0:
                raise NotReady(
                    f"the server was not ready within {self._ready.timeout:g} s: it waited until {self._ready}",
                    hint="correct exec.persistent.readyWhen, or give it more time with exec.persistent.timeout",
                )
            self._look()
            with self._changed:
                if not self._is_ready and self.running:
                    self._changed.wait(min(left, _POLL_SECONDS if self._ready.port is not None else left))

    async def aready(self) -> None:
        """Wait until the server is ready, in an event loop."""
        await asyncio.to_thread(self.wait_ready)

    def signal(self, number: int) -> None:
        """Send a signal to the server's command; `SIGKILL` ends the whole sandbox."""
        self._run.signal(number)

    def stop(self, *, grace: float = GRACE) -> RunResult:
        """End the server: TERM to the command, KILL after `grace` seconds; the result, violations included."""
        self._stopping = True
        if self.running:
            self._run.signal(signal.SIGTERM) if self._pid else self._run.stop()
            self._background.join(grace)
            if self.running:
                self._run.stop()
        return self.wait()

    async def astop(self, *, grace: float = GRACE) -> RunResult:
        """Stop the server, in an event loop."""
        return await asyncio.to_thread(lambda: self.stop(grace=grace))

    def wait(self, timeout: float | None = None) -> RunResult:
        """Wait until the server has ended by itself.

        Raises:
            TimeoutError: it still runs after `timeout` seconds.
        """
        return self._told(self._background.result(timeout))

    def _told(self, result: RunResult) -> RunResult:
        """The result, without hints where the server did its work and was stopped: that is no failure."""
        stopped = self._stopping and self._is_ready and result.command_exit_code in _STOPPED
        if not stopped or result.violations or result.trace == "partial":
            return result
        return dataclasses.replace(result, hints=())

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _started(self, pid: int) -> None:
        with self._changed:
            self._pid = pid
            self._is_ready = self._pattern is None and self._ready.port is None
            self._changed.notify_all()
        if self._on_start is not None:
            self._on_start(pid)

    def _said(self, line: str) -> None:
        if self._pattern is not None and not self._is_ready and self._pattern.search(line):
            with self._changed:
                self._is_ready = True
                self._changed.notify_all()

    def _look(self) -> None:
        if self._ready.port is not None and self._pid and listens(self._pid, self._ready.port):
            self._is_ready = True


class _Lines:
    """A listener that passes chunks on as they are, and hands over every line once it is whole or has gone quiet."""

    def __init__(self, take: Callable[[str], None], heard: Callable[[bytes], object] | None) -> None:
        self._take = take
        self._heard = heard
        self._line = b""

    def __call__(self, chunk: bytes) -> None:
        if self._heard is not None:
            self._heard(chunk)
        *lines, rest = (self._line + chunk).split(b"\n")
        # A prompt or a progress line may never end: the part that is there counts too.
        for line in (*lines, rest):
            self._take(_COLOURS.sub("", line.decode("utf-8", "replace")).rstrip("\r"))
        self._line = rest[-_LONGEST_LINE:]


def listens(pid: int, port: int) -> bool:
    """Whether something listens on a TCP port in the network of a process; on macOS, where it is the host's, on it."""
    if sys.platform == "darwin":
        for address in ("127.0.0.1", "::1"):
            with contextlib.suppress(OSError), socket.create_connection((address, port), _POLL_SECONDS):
                return True
        return False
    for table in ("tcp", "tcp6"):
        # A process that is gone has no ports: those of the host are not its own.
        try:
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as lines:
                next(lines, None)
                for line in lines:
                    _, local, _, state, *_ = line.split()
                    if state == _LISTENING and int(local.rpartition(":")[2], 16) == port:
                        return True
        except OSError:
            continue
    return False
