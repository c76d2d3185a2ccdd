"""The server's name in a TLS client's first message (RFC 8446, 4; RFC 6066, 3), which is not encrypted. Pure."""

from __future__ import annotations

from typing import NamedTuple

#: The kind of a record that holds a handshake, and of the message in it with which a client begins.
HANDSHAKE, CLIENT_HELLO = 22, 1
#: Every TLS version is 3.x; servers (Go's) take any major version below this for TLS in the first record.
MAJORS = 16
#: The bytes before a record's content: its kind, its version, its length.
HEADER = 5
#: The most bytes of a first message; with post-quantum keys one has about 2,000, and OpenSSL's servers take at most
#: 131,396.
LIMIT = 1 << 18

_SERVER_NAME, _HOST_NAME, _EARLY_DATA = 0, 0, 42
_RECORD_LIMIT = (1 << 14) + 256


class MalformedHello(ValueError):
    """Bytes that a server may take for TLS, and from which the name it goes by cannot be told for certain."""


class Greeting(NamedTuple):
    """The first message of a client.

    Attributes:
        name: the name it calls its server, empty where it tells none.
        size: the bytes of the records that hold it.
        early: whether encrypted early data follows at once, which the server may pass over.
    """

    name: str
    size: int
    early: bool = False


class GreetingReader:
    """A reader of one first message, however many records hold it; what was read once is not read again."""

    def __init__(self) -> None:
        self._message = bytearray()
        self._at = 0

    def read(self, data: bytes | bytearray, start: int = 0) -> Greeting | None:
        """The message whose first record begins at `start`; `None` where more bytes are needed.

        Args:
            data: all bytes so far, more at each call.
            start: where the first record begins; it may differ from call to call, as bytes before it go.

        Raises:
            MalformedHello: the name of the server cannot be told for certain.
        """
        found = self._message
        while True:
            if len(found) >= 4:  # noqa: PLR2004  kind and length
                size = 4 + int.from_bytes(found[1:4], "big")
                if size > LIMIT:
                    raise MalformedHello("it is longer than any")
                if len(found) > size:
                    raise MalformedHello("more than a message is in its record")
                if len(found) == size:
                    return _greeting(_Reader(bytes(found)), self._at)
            at = start + self._at
            if len(data) < at + HEADER:
                return None
            length = int.from_bytes(data[at + 3 : at + HEADER], "big")
            if data[at] != HANDSHAKE or data[at + 1] >= MAJORS or not 0 < length <= _RECORD_LIMIT:
                raise MalformedHello("another record is inside it")
            if len(data) < at + HEADER + length:
                return None
            found += data[at + HEADER : at + HEADER + length]
            self._at += HEADER + length


def _greeting(reader: _Reader, size: int) -> Greeting:
    if reader.number(1) != CLIENT_HELLO:
        raise MalformedHello("another message comes before it")
    reader.take(3 + 2 + 32)  # length, version, random
    for width in (1, 2, 1):  # session, ciphers, compression
        reader.vector(width)
    names: list[bytes] = []
    early = False
    extensions = _Reader(reader.vector(2) if reader else b"")
    if reader:
        raise MalformedHello("it is longer than it says")
    while extensions:
        kind, body = extensions.number(2), _Reader(extensions.vector(2))
        early = early or kind == _EARLY_DATA
        if kind != _SERVER_NAME:
            continue
        entries = _Reader(body.vector(2))
        if body:
            raise MalformedHello("more than a list of names is in it")
        while entries:
            if entries.number(1) != _HOST_NAME:
                raise MalformedHello("a name of another kind is in it")
            names.append(entries.vector(2))
    if len(names) > 1:
        raise MalformedHello("it tells more than one name")
    try:
        return Greeting(names[0].decode("ascii") if names else "", size, early)
    except UnicodeDecodeError:
        raise MalformedHello("its name is none") from None


class _Reader:
    """A reader of bytes from their start; a field shorter than it says is malformed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise MalformedHello("it is shorter than it says")
        self._at += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> bytes:
        """The bytes of a field that follows its own length in `size` bytes."""
        return self.take(self.number(size))
