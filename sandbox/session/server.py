"""EFFECT: a command that stays up while others use it: how it is started, waited for and stopped, and its result."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import signal
import threading
import time
from typing import TYPE_CHECKING, Self

from sandbox.contract.errors import SandboxError
from sandbox.contract.run_options import GRACE
from sandbox.session.background_run import BackgroundRun
from sandbox.session.server_readiness import POLL_SECONDS, NotReady, OutputLines, Ready, listens

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from sandbox.contract.results import RunResult
    from sandbox.contract.run_options import Running, RunOptions

# Statuses of a command that ended by the signal it was stopped with.
_STOPPED = frozenset(128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


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
        # Watchers stop when their input ends: a server that is given none has one that stays open, with nothing in it.
        self._input = os.pipe() if options.get("stdin") is None else ()
        self._on_start = options.get("on_start")
        options = {
            **options,
            "stdin": self._input[0] if self._input else options.get("stdin"),
            "on_stdout": OutputLines(self._said, options.get("on_stdout")),
            "on_stderr": OutputLines(self._said, options.get("on_stderr")),
            "on_start": self._started,
        }
        self._run = make(options)
        self._background = BackgroundRun("the server", self._run, on_end=self._ended)
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
                    self._changed.wait(min(left, POLL_SECONDS if self._ready.port is not None else left))

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

    def _ended(self) -> None:
        for fd in self._input:
            os.close(fd)
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
