"""The judge of a connection's first bytes, both ways: what may go on, and which names the server is greeted by. Pure.

    begin ─▶ greeting ─▶ between ─▶ over            between ─▶ greeting ─▶ over
          ─▶ over, where it is no TLS

A server that wants another key has its client greet once more (RFC 8446, 4.1.4), and goes by the second name. So what
follows a greeting is judged as strictly as what comes before, until the server has answered with anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.proxy.protocol import first_bytes
from sandbox.proxy.protocol.tls_hello import CLIENT_HELLO, HANDSHAKE, HEADER, MAJORS, GreetingReader, MalformedHello

if TYPE_CHECKING:
    from collections.abc import Callable

_CHANGE, _ALERT, _DATA = 20, 21, 23
_SERVER_HELLO, _OLD_RETRY = 2, 6
# the random of a server's hello that asks for another greeting: SHA-256 of "HelloRetryRequest" (RFC 8446, 4.1.3)
_RETRY = bytes.fromhex("CF21AD74E59A6111BE1D8C021E65B891C2A211167ABB8C5E079E09E2C8A8339C")
_RANDOM = 4 + 2
_ANSWER = _RANDOM + len(_RETRY)

# a function of an offset in the bytes: how many may go on from there, `None` where more must come first
if TYPE_CHECKING:
    Stage = Callable[[int], "int | None"]


class TlsFront:
    """One connection's first words.

    Attributes:
        over: whether nothing that either end says from now on is judged.
    """

    def __init__(self) -> None:
        self.over = False
        self._held = bytearray()
        self._names: list[str] = []
        self._stage: Stage = self._begin
        self._reader = GreetingReader()
        self._first = b""
        self._blanks = self._passed = self._server_first = False
        self._answer: _Answer | None = None
        self._early = False
        self._inside = 0

    def client(self, data: bytes) -> tuple[bytes, list[str]]:
        """Hear the client: the bytes that may go on to the server once the names are judged, and the names.

        Raises:
            MalformedHello: what the server is called cannot be told for certain.
        """
        self._held += data
        self._names = []
        size = 0
        while not self.over and (more := self._stage(size)) is not None:
            size += more
        if self.over:
            size = len(self._held)
        passed = bytes(self._held[:size])
        del self._held[:size]
        self._passed = self._passed or bool(passed)
        return passed, self._names

    def end(self) -> bytes | None:
        """The bytes that wait and may go on, when the client says no more; `None` where that cannot be told."""
        return bytes(self._held) if self.over or self._answered() or self._server_first or not self._held else None

    def server(self, data: bytes) -> None:
        """Hear what the server says."""
        if self._answer is not None:
            self._answer.hear(data)
        elif data and not self._passed:
            # a server of TLS waits for its client's greeting: MySQL's clients may begin as a record does
            self._server_first = True

    def _answered(self) -> bool:
        return self._answer is not None and self._answer.final

    def _begin(self, at: int) -> int | None:
        waiting = self._held[at:]
        if not self._first and (blanks := len(waiting) - len(waiting.lstrip(first_bytes.BLANKS))):
            self._blanks = True
            return blanks
        first = (self._first + waiting)[: first_bytes.NEEDED]
        if not first:
            return None
        found: bool | None = False
        try:
            found = first_bytes.is_greeting(bytes(first), blanks=self._blanks)
        except MalformedHello:
            if not self._server_first:
                raise
        if found:
            self._stage = self._greeting
            return 0
        if found is not None:
            self.over = True
            return 0
        if first_bytes.is_record(first[0]):
            return None
        # no greeting begins so, and a client may wait for an answer to a single byte
        more = len(first) - len(self._first)
        self._first = bytes(first)
        return more or None

    def _greeting(self, at: int) -> int | None:
        found = self._reader.read(self._held, at)
        if found is None:
            return None
        if found.name:
            self._names.append(found.name)
        if self._answer is None:
            self._early, self._answer, self._reader = found.early, _Answer(), GreetingReader()
            self._stage = self._between
        else:
            self.over = True
        return found.size

    def _between(self, at: int) -> int | None:
        if self._answered():
            self.over = True
            return 0
        left = len(self._held) - at
        if not left:
            return None
        if self._inside:
            taken = min(left, self._inside)
            self._inside -= taken
            return taken
        header = self._held[at : at + HEADER + 1]
        if header[0] not in ((_CHANGE, _ALERT, _DATA, HANDSHAKE) if self._early else (_CHANGE, _ALERT, HANDSHAKE)):
            raise MalformedHello("something that is not read follows it, before the server's answer")
        if len(header) < HEADER:
            return None
        length = int.from_bytes(header[3:HEADER], "big")
        if header[1] >= MAJORS or (header[0] == HANDSHAKE and not length):
            raise MalformedHello("a record that is not read follows it")
        if header[0] != HANDSHAKE:
            self._inside = length
            return HEADER
        if len(header) == HEADER:
            return None
        if header[HEADER] != CLIENT_HELLO:
            raise MalformedHello("another message follows it, before the server's answer")
        self._stage = self._greeting
        return 0


class _Answer:
    """A server's answer to a greeting.

    Attributes:
        final: whether it is anything but the wish for another greeting.
    """

    def __init__(self) -> None:
        self.final = False
        self._asks_again = False
        self._data = bytearray()
        self._message = bytearray()

    def hear(self, data: bytes) -> None:
        if self.final or self._asks_again:
            return
        self._data += data
        while len(self._data) >= HEADER and not self.final:
            size = HEADER + int.from_bytes(self._data[3:HEADER], "big")
            if self._data[0] not in (_CHANGE, _ALERT, HANDSHAKE) or self._data[1] >= MAJORS:
                self.final = True
            if len(self._data) < size:
                break
            if self._data[0] == HANDSHAKE:
                self._message += self._data[HEADER:size]
            del self._data[:size]
            self._judge()

    def _judge(self) -> None:
        if self._message and self._message[0] != _SERVER_HELLO:
            self._asks_again = self._message[0] == _OLD_RETRY
            self.final = not self._asks_again
        elif len(self._message) >= _ANSWER:
            self._asks_again = self._message[_RANDOM:_ANSWER] == _RETRY
            self.final = not self._asks_again
