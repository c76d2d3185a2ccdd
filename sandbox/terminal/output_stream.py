"""The output of a command: who hears each chunk, and how much is kept. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: The most bytes of each stream that a result keeps.
CAPTURE_LIMIT = 16 << 20
#: The fewest bytes of a stream's end that are known, kept or not, however the command cuts them into writes.
TAIL_LIMIT = 64 << 10


@dataclass(slots=True)
class OutputStream:
    """One output stream, with who hears each chunk and the bytes that are kept."""

    heard: Callable[[bytes], object] | None = None
    keep: bool = True
    _kept: bytearray = field(default_factory=bytearray)
    _dropped: int = 0
    _last: bytearray = field(default_factory=bytearray)

    def take(self, chunk: bytes) -> None:
        """Take one chunk, in order."""
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
        """The end of the stream."""
        return bytes(self._last[-TAIL_LIMIT:])

    def kept(self) -> bytes:
        """The bytes that are kept, with a notice where some are not."""
        if not self._dropped:
            return bytes(self._kept)
        return bytes(self._kept) + f"\n[{self._dropped} more bytes were not kept]\n".encode()
