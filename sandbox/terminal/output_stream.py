"""The output of a command: who hears each chunk, and how much is kept. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: The most bytes of each stream that a result keeps.
CAPTURE_LIMIT = 16 << 20
#: The fewest bytes of a stream's end that are known, kept or not, however the command cuts them into writes.
TAIL_LIMIT = 64 << 10
# an object of each byte's own would take far more memory than the bytes
_MOST_CHUNKS = 1024


@dataclass(slots=True)
class OutputStream:
    """One output stream, with who hears each chunk and the bytes that are kept."""

    heard: Callable[[bytes], object] | None = None
    keep: bool = True
    _kept: bytearray = field(default_factory=bytearray)
    _dropped: int = 0
    # the last chunks as they came: copies of all that is written would take longer than the rest of its way
    _last: deque[bytes] = field(default_factory=deque)
    _last_size: int = 0

    def take(self, chunk: bytes) -> None:
        """Take one chunk, in order."""
        self._last.append(chunk)
        self._last_size += len(chunk)
        while self._last_size - len(self._last[0]) >= TAIL_LIMIT:
            self._last_size -= len(self._last.popleft())
        if len(self._last) > _MOST_CHUNKS:
            self._last = deque([b"".join(self._last)])
        if self.keep:
            room = CAPTURE_LIMIT - len(self._kept)
            self._kept += chunk[:room]
            self._dropped += max(0, len(chunk) - room)
        if self.heard is not None:
            self.heard(chunk)

    def tail(self) -> bytes:
        """The end of the stream."""
        return b"".join(self._last)[-TAIL_LIMIT:]

    def kept(self) -> bytes:
        """The bytes that are kept, with a notice where some are not."""
        if not self._dropped:
            return bytes(self._kept)
        return bytes(self._kept) + f"\n[{self._dropped} more bytes were not kept]\n".encode()
