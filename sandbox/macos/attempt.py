"""EFFECT: a command under `sandbox-exec`: its streams, its signals, its time, and the end of its process group."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sandbox.macos.tools import NESTED_WORDS
from sandbox.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_CHUNK = 65536
# what a process outside its group still holds open is not waited for longer
_DRAIN_SECONDS = 2.0
#: How `sandbox-exec` ends when it could not begin: wrong usage, no profile, a refusal of the kernel, no program.
_NOT_BEGUN = range(64, 79)
_WORDS = b"sandbox-exec: "
_REASON_LIMIT = 500
_KIB = 1024


class Usage(NamedTuple):
    """What the command and all it waited for used; bytes and milliseconds."""

    cpu_ms: float
    peak_rss_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What became of it.

    Attributes:
        status: the wait status; `None` when it never ran.
        refused: why `sandbox-exec` ran nothing, empty when it did.
        tail: the end of both streams, kept or not.
    """

    status: int | None
    refused: str = ""
    timed_out: bool = False
    duration_ms: float = 0.0
    usage: Usage | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    tail: bytes = b""

    @property
    def started(self) -> bool:
        """Whether the command was executed."""
        return self.status is not None and not self.refused


class Attempt:
    """One command.

    Args:
        command: the whole argument list.
        environment: exactly its variables.
        cwd: absolute.
        stdin: a descriptor, bytes, or `None` for an empty input.
        stdout: who hears and keeps what it writes, or a descriptor it writes to itself; likewise `stderr`.
        timeout: seconds, or none; `grace`: seconds between TERM and KILL.
        on_start: called with its process number.
    """

    def __init__(
        self,
        *,
        command: tuple[str, ...],
        environment: Mapping[str, str],
        cwd: str,
        stdin: int | bytes | None,
        stdout: Stream | int,
        stderr: Stream | int,
        timeout: float | None,
        grace: float,
        on_start: Callable[[int], object] | None,
    ) -> None:
        self._command = command
        self._environment = dict(environment)
        self._cwd = cwd
        self._stdin = stdin
        self._streams = (stdout, stderr)
        self._timeout = timeout
        self._grace = grace
        self._on_start = on_start
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._reaped = False

    def signal(self, number: int) -> None:
        """Send a signal to the command's group, from any thread; nothing starts after `SIGKILL`."""
        with self._lock:
            self._stopped = self._stopped or number == signal.SIGKILL
            if self._process is not None and not self._reaped:
                self._send(self._process.pid, number)

    def run(self) -> Ended:
        """Run to the end, and end what is left of its group."""
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            given = _input(self._stdin, stack)
            outputs = [one if isinstance(one, int) else subprocess.PIPE for one in self._streams]
            with self._lock:
                if self._stopped:
                    return Ended(status=None, refused="the run was stopped before the command started")
                process = subprocess.Popen(
                    self._command,
                    stdin=given,
                    stdout=outputs[0],
                    stderr=outputs[1],
                    cwd=self._cwd,
                    env=self._environment,
                    start_new_session=True,
                )
                self._process = process
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    stack.enter_context(pipe)
            try:
                if self._on_start is not None:
                    self._on_start(process.pid)
                return self._pumped(process, began)
            finally:
                self._end(process)

    def _pumped(self, process: subprocess.Popen[bytes], began: float) -> Ended:
        reading, writing = os.pipe()
        reaped: list[tuple[int, Usage]] = []
        waiter = threading.Thread(target=self._wait, args=(process, writing, reaped), name="vx-wait", daemon=True)
        waiter.start()
        try:
            timed_out = self._pump(process, reading, began)
        except BaseException:
            with self._lock:
                if not self._reaped:
                    self._send(process.pid, signal.SIGKILL)
            raise
        finally:
            waiter.join()
            os.close(reading)
        status, usage = reaped[0]
        kept = [one.kept() if isinstance(one, Stream) else b"" for one in self._streams]
        tails = [one.tail() if isinstance(one, Stream) else b"" for one in self._streams]
        return Ended(
            status=status,
            refused=_refused(status, *tails),
            timed_out=timed_out,
            duration_ms=(time.monotonic() - began) * 1000,
            usage=usage,
            stdout=kept[0],
            stderr=kept[1],
            tail=b"".join(tails),
        )

    def _wait(self, process: subprocess.Popen[bytes], writing: int, reaped: list[tuple[int, Usage]]) -> None:
        """Wait for the command itself, then end its group: a sandbox lives no longer than its command."""
        _, status, used = os.wait4(process.pid, 0)
        with self._lock:
            self._reaped = True
            # the number stays the group's as long as anything is in it
            self._send(process.pid, signal.SIGKILL)
        process.returncode = os.waitstatus_to_exitcode(status)
        peak = used.ru_maxrss if sys.platform == "darwin" else used.ru_maxrss * _KIB
        reaped.append((status, Usage((used.ru_utime + used.ru_stime) * 1000, peak)))
        os.close(writing)

    def _pump(self, process: subprocess.Popen[bytes], ended: int, began: float) -> bool:
        """Move bytes until the command has ended and its pipes are dry; whether its time ran out."""
        deadlines = [] if self._timeout is None else [(began + self._timeout, signal.SIGTERM)]
        timed_out, drain = False, float("inf")
        with selectors.DefaultSelector() as selector:
            selector.register(ended, selectors.EVENT_READ)
            for pipe, stream in zip((process.stdout, process.stderr), self._streams, strict=True):
                if pipe is not None:
                    selector.register(pipe.fileno(), selectors.EVENT_READ, stream)
            while selector.get_map():
                now = time.monotonic()
                if now >= drain:
                    break
                if deadlines and now >= deadlines[0][0]:
                    _, number = deadlines.pop(0)
                    timed_out = True
                    self.signal(number)
                    if number == signal.SIGTERM:
                        deadlines.append((now + self._grace, signal.SIGKILL))
                    continue
                due = min([drain, *(when for when, _ in deadlines)])
                for key, _ in selector.select(None if due == float("inf") else max(0.0, due - now)):
                    if key.data is None:
                        selector.unregister(ended)
                        deadlines.clear()
                        drain = time.monotonic() + _DRAIN_SECONDS
                    elif chunk := os.read(key.fd, _CHUNK):
                        key.data.take(chunk)
                    else:
                        selector.unregister(key.fd)
        return timed_out

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            if not self._reaped:
                self._send(process.pid, signal.SIGKILL)

    @staticmethod
    def _send(group: int, number: int) -> None:
        # on macOS a group of nothing but the dead answers with EPERM
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _refused(status: int, stdout: bytes, stderr: bytes) -> str:
    """Why `sandbox-exec` ran nothing; empty when it did."""
    code = os.waitstatus_to_exitcode(status)
    if code not in _NOT_BEGUN or stdout or not stderr.startswith(_WORDS):
        return ""
    said = stderr.decode("utf-8", "replace").strip()[:_REASON_LIMIT]
    if NESTED_WORDS in said:
        return f"this process is in a sandbox already, and nested ones are refused: {said}"
    return f"macOS refused the profile: {said}"


def _input(stdin: int | bytes | None, stack: contextlib.ExitStack) -> int:
    if stdin is None:
        return subprocess.DEVNULL
    if isinstance(stdin, int):
        return stdin
    # a file, so that nobody has to write while it reads
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  the stack is its context
    file.write(stdin)
    file.seek(0)
    return file.fileno()
