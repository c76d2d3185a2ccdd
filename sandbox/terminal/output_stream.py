"""What becomes of a command's output: who hears each chunk, and what is kept. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Of each stream at most this many bytes are kept in a result.
CAPTURE_LIMIT = 16 << 20
#: Of its end, kept or not, at least so many; how the command cut them into writes does not matter.
TAIL_LIMIT = 64 << 10


@dataclass(slots=True)
class OutputStream:
    """One output stream: who hears each chunk, and what is kept."""

    heard: Callable[[bytes], object] | None = None
    keep: bool = True
    _kept: bytearray = field(default_factory=bytearray)
    _dropped: int = 0
    _last: bytearray = field(default_factory=bytearray)

    def take(self, chunk: bytes) -> None:
        """One chunk, in order."""
        self._last += chunk
        if len(self._last) > 4 * TAIL_LIMIT:
            del self._last[:-TAIL_LIMIT]
        if self.keep:
            room = CAPTURE_LIMIT - len(self._kept)
            self._kept += chunk[:room]
            self._dropped += max(0, len(chunk) - room)
        if self.heard is not None:
            self.heard(chunk)

    def tail(self) -> bytes:
        """The end of what came."""
        return bytes(self._last[-TAIL_LIMIT:])

    def kept(self) -> bytes:
        """What was kept, with a notice where something was not."""
        if not self._dropped:
            return bytes(self._kept)
        return bytes(self._kept) + f"\n[{self._dropped} more bytes were not kept]\n".encode()
