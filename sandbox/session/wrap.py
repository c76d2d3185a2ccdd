"""EFFECT: a run for an executor that spawns processes itself: it spawns a relay, and the session runs the command."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from typing import TYPE_CHECKING, Self

from sandbox.contract.errors import NotStarted
from sandbox.session.background_run import BackgroundRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from sandbox.contract.results import RunResult
    from sandbox.contract.run_options import Running, RunOptions

_RELAY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wrap_program.py")
_STREAMS = 3
_WORD = 64


class Wrapped:
    """A command as something to spawn: `subprocess.Popen(w.argv, env=w.env, cwd=w.cwd, pass_fds=w.pass_fds)`.

    Nothing is built before the spawned relay speaks. Leaving the context releases the command.

    Attributes:
        argv: the relay and its argument.
        env: exactly the relay's environment; the command's own comes from the request and the options.
        pass_fds: descriptors the relay inherits.
        cwd: absolute, for the relay; the command's is the same.
    """

    def __init__(self, make: Callable[[RunOptions], Running], options: RunOptions, cwd: str) -> None:
        """Prepare the wrapped command; `make` makes the run once the streams are known."""
        self._make = make
        self._options = options
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.argv: tuple[str, ...] = (sys.executable, "-I", "-S", _RELAY, str(self._theirs.fileno()))
        self.env: dict[str, str] = {"LC_ALL": "C.UTF-8"}
        self.pass_fds: tuple[int, ...] = (self._theirs.fileno(),)
        self.cwd = cwd
        self._lock = threading.Lock()
        self._run: Running | None = None
        self._released = False
        self._background = BackgroundRun("the command", self._serve)
        self._background.start()

    def __enter__(self) -> Self:
        """The wrapped command itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the wrapped command."""
        self.release()

    def attach(self, pid: int) -> None:
        """Say which process was spawned: from now on its death ends the run, and its signals reach the command.

        Args:
            pid: the relay's, as this process numbers it.

        Raises:
            NotStarted: there is no such process.
        """
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            self.release()
            raise NotStarted(f"the process {pid} is gone", hint="attach what was spawned from argv") from None
        # A copy on this side would keep the line open when the relay dies.
        self._theirs.close()

    def result(self, timeout: float | None = None) -> RunResult:
        """The result of the run, once the command has ended.

        Raises:
            TimeoutError: it still runs after `timeout` seconds.
            NotStarted: the relay was never spawned, or died before it handed over its streams.
        """
        result = self._background.result(timeout)
        if result is None:
            raise NotStarted("the relay handed over no streams", hint="spawn argv with pass_fds, then attach it")
        return result

    def release(self) -> None:
        """Take everything back and end the run if it still runs; may be called again."""
        with self._lock:
            self._released = True
            run = self._run
        if run is not None:
            run.stop()
        else:
            with contextlib.suppress(OSError):  # it may be closed by now
                self._ours.shutdown(socket.SHUT_RDWR)
        self._background.join()
        self._theirs.close()

    def _serve(self) -> RunResult | None:
        try:
            streams = self._streams()
            return None if streams is None else self._relayed(*streams)
        finally:
            self._ours.close()

    def _streams(self) -> tuple[int, int, int] | None:
        try:
            word, fds, _, _ = socket.recv_fds(self._ours, _WORD, _STREAMS)
        except OSError:
            return None
        for fd in fds:
            os.set_inheritable(fd, False)
        if word != b"streams" or len(fds) != _STREAMS:
            for fd in fds:
                os.close(fd)
            return None
        return fds[0], fds[1], fds[2]

    def _relayed(self, stdin: int, stdout: int, stderr: int) -> RunResult:
        own: RunOptions = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        if os.isatty(stdin):
            own["terminal"] = stdin
        run = self._make({**self._options, **own})
        with self._lock:
            self._run = run
            if self._released:
                run.stop()
        listener = threading.Thread(target=self._hear, args=(run,), name="vxconf-relay", daemon=True)
        listener.start()
        word = b"failed"
        try:
            result = run()
            if not result.started:
                with contextlib.suppress(OSError):  # the relay is gone
                    os.write(stderr, _said(result))
            word = _last_word(result)
        finally:
            for fd in (stdin, stdout, stderr):
                os.close(fd)
            with contextlib.suppress(OSError):
                self._ours.send(word, socket.MSG_NOSIGNAL)
            with contextlib.suppress(OSError):
                self._ours.shutdown(socket.SHUT_RDWR)
            listener.join()
        return result

    def _hear(self, run: Running) -> None:
        """Pass the relay's signals on; without a relay there is nobody left to run for."""
        while True:
            try:
                word = self._ours.recv(_WORD)
            except OSError:
                word = b""
            if not word:
                run.stop()
                return
            kind, _, number = word.partition(b" ")
            if kind == b"signal" and number.isdigit():
                run.signal(int(number))


def _last_word(result: RunResult) -> bytes:
    """The word that has the relay end as the command did, unless the verdict is another."""
    if result.signal is not None and result.exit_code == result.command_exit_code:
        with contextlib.suppress(KeyError):
            return b"killed %d" % signal.Signals[result.signal]
    return b"exit %d" % result.exit_code


def _said(result: RunResult) -> bytes:
    """The refusals of a run that did not start, for whoever reads the relay's errors."""
    return "".join(f"error: {refusal}\n" for refusal in result.refusals).encode("utf-8", "surrogateescape")
