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

from sandbox.macos import pty as leading
from sandbox.macos.command_timeout import MacCommandTimeout
from sandbox.macos.system_tools import NESTED_WORDS
from sandbox.run.ending_signals import ends
from sandbox.terminal import terminal_relay
from sandbox.terminal.output_stream import OutputStream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_CHUNK = 65536
#: Statuses of `sandbox-exec` when it could not begin: wrong usage, no profile, a refusal of the kernel, no program.
_NOT_BEGUN = range(64, 79)
_WORDS = b"sandbox-exec: "
_REASON_LIMIT = 500
_KIB = 1024


class Usage(NamedTuple):
    """The time and the memory that the command and all it waited for used; milliseconds and bytes."""

    cpu_ms: float
    peak_rss_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedCommand:
    """The end of one command.

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


class MacAttempt:
    """One attempt at running a command.

    Args:
        command: the whole argument list.
        environment: exactly its variables.
        cwd: absolute.
        stdin: a descriptor, bytes, or `None` for an empty input.
        stdout: who hears and keeps what it writes, or a descriptor it writes to itself; likewise `stderr`.
        pty: whether it gets a terminal: `stdin` is typed there, and all it shows is for `stdout`.
        caller: the caller's terminal, whose size and modes that one has.
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
        stdout: OutputStream | int,
        stderr: OutputStream | int,
        timeout: float | None,
        grace: float,
        on_start: Callable[[int], object] | None,
        pty: bool = False,
        caller: int | None = None,
    ) -> None:
        self._command = command
        self._environment = dict(environment)
        self._cwd = cwd
        self._stdin = stdin
        self._streams = (stdout, stderr)
        self._timeout = timeout
        self._grace = grace
        self._on_start = on_start
        self._pty = pty
        self._caller = caller
        self._terminal: terminal_relay.TerminalRelay | None = None
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._reaped = False

    def signal(self, number: int) -> None:
        """Send a signal to the command's group, from any thread; nothing starts after `SIGKILL`, or another that ends.

        A signal that a key sends goes to the foreground group of the command's terminal. A signal that ends goes there
        as well.
        """
        with self._lock:
            self._stopped = self._stopped or number == signal.SIGKILL or (self._process is None and ends(number))
            if self._process is None or self._reaped:
                return
            if self._terminal is not None and number == signal.SIGWINCH:
                self._terminal.resize()
                return
            own = self._process.pid
            foreground = (self._terminal.foreground() if self._terminal is not None else 0) or own
            for group in {foreground} if number in terminal_relay.FROM_THE_KEYBOARD else {own, foreground}:
                self._send(group, number)

    def run(self) -> EndedCommand:
        """Run to the end, and end the rest of the command's group."""
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            start = self._on_a_terminal(stack) if self._pty else self._on_streams(stack)
            with self._lock:
                if self._stopped:
                    return EndedCommand(status=None, refused="the run was stopped before the command started")
                process = start()
                self._process = process
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    stack.enter_context(pipe)
            try:
                if self._on_start is not None:
                    self._on_start(process.pid)
                with terminal_relay.raw(self._caller if self._pty and self._caller == self._stdin else None):
                    return self._pumped(process, began)
            finally:
                self.signal(signal.SIGKILL)

    def _on_streams(self, stack: contextlib.ExitStack) -> Callable[[], subprocess.Popen[bytes]]:
        stdin = _input(self._stdin, stack)
        stdout, stderr = (one if isinstance(one, int) else subprocess.PIPE for one in self._streams)
        return lambda: subprocess.Popen(
            self._command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=self._cwd,
            env=self._environment,
            start_new_session=True,
        )

    def _on_a_terminal(self, stack: contextlib.ExitStack) -> Callable[[], subprocess.Popen[bytes]]:
        master, slave = leading.ends(self._caller, self._stdin)
        terminal = terminal_relay.TerminalRelay(
            stdin=self._stdin,
            out=self._streams[0],
            caller=self._caller,
            # A window that closes ends its terminal's programs so (termios(4)).
            on_gone=lambda: self.signal(signal.SIGHUP),
        )
        terminal.open(master, slave)
        stack.callback(terminal.close)
        command, inherited = leading.led(self._command, self._environment, stack)
        self._terminal = terminal
        return lambda: subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=self._cwd,
            env=leading.ENVIRONMENT,
            pass_fds=(inherited,),
            start_new_session=True,
        )

    def _pumped(self, process: subprocess.Popen[bytes], began: float) -> EndedCommand:
        reading, writing = os.pipe()
        reaped: list[tuple[int, Usage]] = []
        waiter = threading.Thread(target=self._wait, args=(process, writing, reaped), name="vx-wait", daemon=True)
        waiter.start()
        try:
            timed_out = self._pump(process, reading, began)
        except BaseException:
            self.signal(signal.SIGKILL)
            raise
        finally:
            waiter.join()
            os.close(reading)
        status, usage = reaped[0]
        kept = [one.kept() if isinstance(one, OutputStream) else b"" for one in self._streams]
        tails = [one.tail() if isinstance(one, OutputStream) else b"" for one in self._streams]
        return EndedCommand(
            status=status,
            refused=_refused(status, b"", tails[0]) if self._pty else _refused(status, *tails),
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
            # The number stays the group's as long as any process is in it.
            self._send(process.pid, signal.SIGKILL)
        process.returncode = os.waitstatus_to_exitcode(status)
        peak = used.ru_maxrss if sys.platform == "darwin" else used.ru_maxrss * _KIB
        reaped.append((status, Usage((used.ru_utime + used.ru_stime) * 1000, peak)))
        os.close(writing)

    def _pump(self, process: subprocess.Popen[bytes], ended: int, began: float) -> bool:
        """Move bytes until the command has ended and its pipes are dry; whether its time ran out."""
        time_left = MacCommandTimeout(self._timeout, self._grace, began)
        # Only `select` waits for terminals and files on macOS.
        kind = selectors.DefaultSelector if self._terminal is None else selectors.SelectSelector
        with kind() as selector:
            selector.register(ended, selectors.EVENT_READ)
            for pipe, stream in zip((process.stdout, process.stderr), self._streams, strict=True):
                if pipe is not None:
                    selector.register(pipe.fileno(), selectors.EVENT_READ, stream)
            pause = self._watch(selector)
            while selector.get_map():
                now = time.monotonic()
                if now >= time_left.drain:
                    break
                if number := time_left.due(now):
                    self.signal(number)
                    continue
                for key, events in selector.select(time_left.wait(now, pause)):
                    if key.data is None:
                        selector.unregister(ended)
                        time_left.ended()
                        if self._terminal is not None:
                            self._terminal.finish()
                    elif not _moved(key, events):
                        selector.unregister(key.fd)
                pause = self._watch(selector)
        return time_left.ran_out

    def _watch(self, selector: selectors.BaseSelector) -> float | None:
        return None if self._terminal is None else self._terminal.watch(selector)

    @staticmethod
    def _send(group: int, number: int) -> None:
        # A group of nothing but the dead answers with EPERM on macOS.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _moved(key: selectors.SelectorKey, events: int) -> bool:
    """Take the bytes that are there; false at the end of a pipe."""
    if isinstance(key.data, terminal_relay.TerminalRelay):
        return key.data.ready(key.fd, events)
    chunk = os.read(key.fd, _CHUNK)
    if chunk:
        key.data.take(chunk)
    return bool(chunk)


def _refused(status: int, stdout: bytes, stderr: bytes) -> str:
    """The reason why `sandbox-exec` ran nothing; empty when it ran the command."""
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
    # A file is read without anybody who writes meanwhile.
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  the stack is its context
    file.write(stdin)
    file.seek(0)
    return file.fileno()
