"""EFFECT: one attempt on the executor's side: it hands a spec to a warden, moves bytes and hears the warden."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.linux.inside import pty
from sandbox.linux.run import awaited_input
from sandbox.linux.run.standard_streams import StandardStreams, empty
from sandbox.linux.warden_messages import Decoder, Failed, Finished, SeenAccesses, Signal, Spec, Started, encode
from sandbox.run.ending_signals import ends
from sandbox.terminal import terminal_relay

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.contract.results import Access
    from sandbox.terminal.output_stream import OutputStream
    from sandbox.terminal.terminal_relay import Lend

_CHUNK = 65536
# the most bytes of output that are taken at once: as many as its pipe holds
_OUTPUT = 256 << 10
# No process of the sandbox outlives its warden: once the warden is gone, bytes left in a pipe are there already.
_DRAIN_SECONDS = 2.0


@dataclass(slots=True)
class Report:
    """The messages of one attempt, not judged yet.

    Attributes:
        tail: the end of both streams, kept or not.
        lost: see `CommandEnd`.
    """

    started: Started | None = None
    finished: Finished | None = None
    failed: Failed | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    tail: bytes = b""
    lost: str = ""


@dataclass(slots=True)
class _Pipe:
    stream: OutputStream

    def ready(self, fd: int, _events: int) -> bool:
        """Take the bytes that are there; false at the end."""
        chunk = os.read(fd, _OUTPUT)
        if chunk:
            self.stream.take(chunk)
        return bool(chunk)


class Attempt:
    """One attempt at running a command.

    Args:
        spec: what the warden builds and runs.
        stdin: a descriptor that is read for the command, bytes, or `None` for an empty input.
        stdout: who hears and keeps what it writes, or a descriptor that is written for it; likewise `stderr`.
        on_access: called with every distinct access, as it happens.
        on_start: called with the command's process number on the host.
        caller: the caller's terminal, for a spec with a screen.
    """

    def __init__(
        self,
        spec: Spec,
        *,
        stdin: int | bytes | None,
        stdout: OutputStream | int,
        stderr: OutputStream | int,
        on_access: Callable[[Access], object],
        on_start: Callable[[int], object] | None = None,
        caller: int | None = None,
    ) -> None:
        self._spec = spec
        self._stdin = stdin
        self._streams = (stdout, stderr)
        self._on_access = on_access
        self._on_start = on_start
        self._caller = caller
        self._terminal: terminal_relay.TerminalRelay | None = None
        self._line: socket.socket | None = None
        self._lock = threading.RLock()
        self._control: socket.socket | None = None
        self._stopped = False
        self._first = 0
        self._relayed: StandardStreams | None = None

    def signal(self, number: int) -> None:
        """Send a signal to the command's group, from any thread; `SIGKILL` ends the whole sandbox.

        One that ends processes ends the attempt where it comes before there is a warden to tell.
        """
        with self._lock:
            self._stopped = self._stopped or number == signal.SIGKILL or (self._control is None and ends(number))
            if self._terminal is not None and self._terminal.signal(number):
                return
            if self._control is not None:
                try:
                    self._control.send(encode(Signal(number=number)), socket.MSG_NOSIGNAL)
                except OSError:  # it has ended by itself
                    return

    def run(self, hand_over: Callable[[list[int]], None], lend: Lend | None = None) -> Report:
        """Run to the end.

        Args:
            hand_over: gives the supervisor the control socket and the three standard streams.
            lend: tells it of the caller's terminal.

        Raises:
            OSError: no descriptors are left to talk with.
        """
        ours, theirs = socket.socketpair()
        inside: list[int] = [theirs.detach()]
        try:
            inside += self._streams_inside()
            hand_over(inside)
        except BaseException:
            ours.close()
            self._close()
            raise
        finally:
            for fd in inside:
                os.close(fd)
        try:
            # a warden takes the first words for the spec: signals are sent from then on
            _send(ours, self._spec)
            with self._lock:
                self._control = ours
                stopped = self._stopped
            if stopped:
                return Report(failed=Failed(reason="the run was stopped before the command started"))
            typed = self._caller if self._caller == self._stdin else None
            with terminal_relay.raw(typed, lend):
                report = self._pump(ours)
            if self._relayed is not None:
                late = report.finished is not None and report.finished.timed_out
                self._relayed.end(lambda: self._stopped or late)
                report.lost = self._relayed.lost()
            return report
        finally:
            with self._lock:
                self._control = None
            ours.close()
            self._close()

    def _streams_inside(self) -> list[int]:
        """The command's ends of its three streams."""
        if self._spec.screen is not None:
            return self._terminal_line()
        self._relayed = StandardStreams(
            self._stdin, *self._streams, lambda pipe: awaited_input.is_awaited(self._first, pipe)
        )
        return self._relayed.inside

    def _terminal_line(self) -> list[int]:
        """Three streams to hand over in place of the terminal's own; the terminal's ends come back over the first."""
        ours, theirs = socket.socketpair()
        stdout, _ = self._streams
        self._line = ours
        self._terminal = terminal_relay.TerminalRelay(
            stdin=self._stdin,
            out=stdout,
            caller=self._caller,
            # A window that closes ends its terminal's programs so (termios(3), modem disconnect).
            on_gone=lambda: self.signal(signal.SIGHUP),
        )
        return [theirs.detach(), empty(), empty()]

    def _close(self) -> None:
        if self._relayed is not None:
            self._relayed.close()
        if self._terminal is not None:
            self._terminal.close()
        if self._line is not None:
            self._line.close()

    def _pump(self, control: socket.socket) -> Report:
        report, decoder = Report(), Decoder()
        deadline: float | None = None
        # The input of a terminal may be a regular file, which epoll_ctl(2) refuses with EPERM.
        kind = selectors.DefaultSelector if self._terminal is None else selectors.PollSelector
        with kind() as selector:
            selector.register(control, selectors.EVENT_READ)
            for reading, stream in () if self._relayed is None else self._relayed.heard:
                selector.register(reading, selectors.EVENT_READ, _Pipe(stream))
            pause: float | None = None
            while deadline is None or selector.get_map():
                left = pause if deadline is None else deadline - time.monotonic()
                if left is not None and left < 0:
                    break
                if self._move(selector, left, control, report, decoder):
                    # The warden need not be gone as well.
                    deadline = time.monotonic() + _DRAIN_SECONDS
                if self._terminal is not None:
                    pause = self._terminal.watch(selector)
        report.stdout, report.stderr = (b"" if isinstance(s, int) else s.kept() for s in self._streams)
        report.tail = b"\n".join(stream.tail() for stream in self._streams if not isinstance(stream, int))
        return report

    def _move(
        self,
        selector: selectors.BaseSelector,
        left: float | None,
        control: socket.socket,
        report: Report,
        decoder: Decoder,
    ) -> bool:
        """Move the bytes that come within so many seconds; whether the warden has said its last word."""
        ended = False
        for key, events in selector.select(left):
            if key.data is None:
                ended = self._last_word(control, report, decoder)
                if ended:
                    selector.unregister(control)
            elif not key.data.ready(key.fd, events):
                selector.unregister(key.fd)
        return ended

    def _last_word(self, control: socket.socket, report: Report, decoder: Decoder) -> bool:
        """Take the warden's messages; whether it has said its last word."""
        data = _received(control)
        for message in decoder.feed(data):
            self._hear(report, message)
        if data and not report.finished and not report.failed:
            return False
        if self._terminal is not None:
            self._terminal.finish()
        return True

    def _hear(self, report: Report, message: object) -> None:
        match message:
            case SeenAccesses(accesses=accesses):
                for access in accesses:
                    self._on_access(access)
            case Started(pid=pid):
                report.started = message
                if self._terminal is not None and self._line is not None:
                    self._terminal.open(*pty.received(self._line))
                if self._relayed is not None:
                    self._first = awaited_input.process_above(pid)
                    self._relayed.begin()
                if self._on_start is not None:
                    self._on_start(pid)
            case Finished():
                report.finished = message
            case Failed():
                report.failed = message
            case _:
                pass


def _send(control: socket.socket, spec: Spec) -> None:
    """Send the spec; a warden that is gone already may have said why, which is read like its other words."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        control.sendall(encode(spec))


def _received(control: socket.socket) -> bytes:
    try:
        return control.recv(_CHUNK)
    except ConnectionResetError:  # it died with words of ours unread
        return b""
