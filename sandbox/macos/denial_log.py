"""The denials that macOS's log tells, as accesses. Pure.

`log stream --style ndjson` writes a JSON object a line. The kernel's part of a denial is one message:

    Sandbox: NAME(PID) deny(N) OPERATION[ TARGET]
    TAG

The tag is the profile's own `(with message ...)`; a word after it, `TAG-end`, marks a denial that was provoked on
purpose. Messages that repeat may come as `N duplicate reports for Sandbox:`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The longest line that may be a denial.
LINE_LIMIT = 1 << 20

_MESSAGE = re.compile(
    r"(?:[0-9]+ duplicate reports? for )?Sandbox: (?P<process>.*)\((?P<pid>[0-9]+)\) deny\([0-9]+\)"
    r" (?P<operation>[A-Za-z0-9*-]+)(?: (?P<target>.*))?",
    re.DOTALL,
)
_WORD = re.compile(r"(?:-([a-z]+))?\s*\Z")
#: The sysctl that every program asks for as it starts, and whose answer none needs.
_NOISE = "kern.iossupportversion"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedDenial:
    """One refusal as the log has it.

    Attributes:
        target: a path, a name, `host:port`; empty where the log names none.
    """

    process: str
    pid: int
    operation: str
    target: str


def denial(message: str, tag: str) -> tuple[LoggedDenial, str] | None:
    """The denial in a message, and the word after the tag that says whose it is: empty for the task's own.

    `None` stands for any other message, one of another run, and a denial nobody needs to hear of.
    """
    before, mark, after = message.rpartition(tag)
    if not mark or _NOISE in before:
        return None
    found = _MESSAGE.match(before.rstrip())
    word = _WORD.match(after)
    if found is None or word is None:
        return None
    return _denial(found), word[1] or ""


def _denial(found: re.Match[str]) -> LoggedDenial:
    return LoggedDenial(
        process=found["process"],
        pid=int(found["pid"]),
        operation=found["operation"],
        target=(found["target"] or "").strip(),
    )


def predicate(tag: str) -> str:
    """The argument of `log stream --predicate`: the kernel's messages with the run's own tag."""
    return f'processID == 0 AND eventMessage CONTAINS "Sandbox:" AND eventMessage CONTAINS "{tag}"'


@dataclass(slots=True)
class LogLines:
    """Records out of the log's output, however it was cut.

    Attributes:
        tag: the run's own.
    """

    tag: str
    _rest: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> Iterator[tuple[LoggedDenial, str]]:
        """Every denial that `data` completes, each with the word after the tag."""
        self._rest += data
        *lines, rest = self._rest.split(b"\n")
        self._rest = rest if len(rest) <= LINE_LIMIT else bytearray()
        for line in lines:
            found = self._record(bytes(line))
            if found is not None:
                yield found

    def _record(self, line: bytes) -> tuple[LoggedDenial, str] | None:
        # The first line names the filter and is no JSON.
        if not line.startswith(b"{") or len(line) > LINE_LIMIT:
            return None
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return None
        message = record.get("eventMessage") if isinstance(record, dict) else None
        return denial(message, self.tag) if isinstance(message, str) else None
