"""EFFECT: the monitor that hears of denials from macOS's log while a task runs, and knows whether it heard of all.

The log tells late, in order, and not at all while `log stream` still starts. So a denial of the monitor's own is
provoked before the task starts, again and again until it is heard, and once more at the end: every denial before that
one has been told by then.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Self

from sandbox.macos.denial_log import LogLines, predicate
from sandbox.planning.macos.profile_text import quoted

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from sandbox.macos.denial_log import LoggedDenial
    from sandbox.macos.system_tools import SystemTools

_CHUNK = 65536
_START_SECONDS = 10.0
_END_SECONDS = 10.0
_AGAIN_SECONDS = 0.25
#: The file whose refusal is provoked; every Mac has it, and nobody minds.
_KNOCKED = "/private/etc/hosts"


class LogMonitor:
    """The log of one run.

    Args:
        tools: the programs.
        tag: the run's own; letters, digits and `-`.
        hear: called with each denial, in another thread.
    """

    def __init__(self, tools: SystemTools, tag: str, hear: Callable[[LoggedDenial], object]) -> None:
        self._tools = tools
        self._tag = tag
        self._hear = hear
        self._heard: set[str] = set()
        self._told = threading.Condition()
        self._ended = False
        self._stream: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        #: The reason why not everything was heard; empty while nothing is known to be missing.
        self.missing = ""

    def __enter__(self) -> Self:
        """Start listening; returns once something was heard, or it is known that nothing will be."""
        command = (self._tools.log, "stream", "--style", "ndjson", "--predicate", predicate(self._tag))
        try:
            self._stream = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={"LC_ALL": "C"},
            )
        except OSError as error:
            self.missing = f"{self._tools.log} did not start: {error.strerror}"
            return self
        self._thread = threading.Thread(target=self._listen, args=(self._stream,), name="vx-log", daemon=True)
        self._thread.start()
        if not self._knock("begin", _START_SECONDS):
            self.missing = f"{self._tools.log} told of no denial, so none of the task's would have been heard of"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        stream = self._stream
        if stream is None:
            return
        with contextlib.suppress(ProcessLookupError):
            stream.kill()
        stream.wait()
        if self._thread is not None:
            self._thread.join()
        if stream.stdout is not None:
            stream.stdout.close()

    def settle(self) -> None:
        """Wait until all earlier denials have been told."""
        if not self.missing and not self._knock("end", _END_SECONDS):
            self.missing = f"{self._tools.log} stopped telling of denials before the task's end"

    def _knock(self, word: str, seconds: float) -> bool:
        """Provoke a denial until it is heard; false where it never is."""
        message = f"{self._tag}-{word}"
        profile = (
            f"(version 1)(allow default)(deny file-read* (literal {quoted(_KNOCKED)}) (with message {quoted(message)}))"
        )
        command = (self._tools.sandbox_exec, "-p", profile, self._tools.cat, _KNOCKED)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=seconds,
                    check=False,
                    env={"LC_ALL": "C"},
                )
            with self._told:
                if self._told.wait_for(lambda: word in self._heard or self._ended, _AGAIN_SECONDS):
                    return word in self._heard
        return False

    def _listen(self, stream: subprocess.Popen[bytes]) -> None:
        lines = LogLines(self._tag)
        assert stream.stdout is not None  # noqa: S101  it was asked for
        while data := os.read(stream.stdout.fileno(), _CHUNK):
            for found, word in lines.feed(data):
                if not word:
                    self._hear(found)
                    continue
                with self._told:
                    self._heard.add(word)
                    self._told.notify_all()
        with self._told:
            self._ended = True
            self._told.notify_all()
