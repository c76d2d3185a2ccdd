"""EFFECT: the signs that a server is ready: a line of its output, or a port it listens on."""

from __future__ import annotations

import contextlib
import re
import socket
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.contract.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.contract.results import RunResult

#: The seconds a server may take to be ready, where nobody says otherwise.
READY_SECONDS = 60.0
#: Seconds between two looks at a port.
POLL_SECONDS = 0.02

# The most bytes of a line without an end that are searched.
_LONGEST_LINE = 64 << 10
# Colours in the middle of `http://localhost:5173` are not part of the text.
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LISTENING = "0A"


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


class OutputLines:
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
            with contextlib.suppress(OSError), socket.create_connection((address, port), POLL_SECONDS):
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
