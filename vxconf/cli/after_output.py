"""EFFECT: standard error after a command's own output: a report begins on a line and in a colour of its own."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from vxconf.cli.console import err, raw

if TYPE_CHECKING:
    from collections.abc import Callable

# The end of a string that a terminal takes in without showing it (a title, which may have been left open), then letters
# and colours as they are at the start: what terminfo calls sgr0.
_PLAIN = "\x1b\\\x1b(B\x0f\x1b[0m"
_KEPT = 64
# an end of a line, and colours behind it, which take no room
_AT_START = re.compile(rb"(?:^|[\r\n])(?:\x1b\[[0-9;:]*m|\x0f|\x1b\(B)*\Z")
_OUTPUT, _ERRORS = 1, 2


class AfterOutput:
    """Standard error, as a command left it."""

    def __init__(self) -> None:
        self._end = b""
        self._spoke = False
        self._unheard = False
        self._together = _same_place()

    def hear(self, stream: int, chunk: bytes) -> None:
        """Hear what the command writes to a descriptor of this process."""
        if chunk:
            self._spoke = True
            if stream == _ERRORS or self._together:
                self._end = (self._end + chunk)[-_KEPT:]

    def heard(self, stream: int, write: Callable[[bytes], object]) -> Callable[[bytes], None]:
        """A writer of chunks that are heard as well."""

        def both(chunk: bytes) -> None:
            write(chunk)
            self.hear(stream, chunk)

        return both

    def not_heard(self) -> None:
        """Take note that a command writes here itself, and may leave anything."""
        self._unheard = True

    def begin(self) -> str:
        """The bytes before a report; none where no command spoke since the last one."""
        spoke, end = self._spoke or self._unheard, self._end
        line = "\n" if self._unheard or (spoke and not _AT_START.search(end)) else ""
        self._spoke, self._end = False, b""
        return (_PLAIN if spoke and os.isatty(_ERRORS) else "") + line

    def err(self, text: str) -> None:
        """Write a report's text, as `console.err` does."""
        if text:
            raw(self.begin())
            self._unheard = False
            err(text)


def _same_place() -> bool:
    """Whether the output and the errors of this process are seen in one place."""
    try:
        return os.path.samestat(os.fstat(_OUTPUT), os.fstat(_ERRORS))
    except OSError:
        return False
