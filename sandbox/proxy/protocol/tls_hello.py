"""The server's name in a TLS client's first message (RFC 8446, 4; RFC 6066, 3), which is not encrypted. Pure."""

from __future__ import annotations

from typing import NamedTuple

_CHANGE, _DATA = 20, 23
_ALERT, _RECORD, _CLIENT_HELLO = 21, 22, 1
# every TLS version is 3.x; servers (Go's) take any major version below this for TLS in the first record
_MAJORS = 16
# a warning alert ends nothing, and some servers pass over it
_WARNING = b"\0\2\1"
_SERVER_NAME, _HOST_NAME, _EARLY_DATA = 0, 0, 42
_RECORD_LIMIT = (1 << 14) + 256
#: The most bytes of a first message; with post-quantum keys one has about 2,000, and OpenSSL's servers take at most
#: 131,072.
LIMIT = 1 << 18
# the offset of the message's kind in the first record
_KIND = 5


class MalformedHello(ValueError):
    """Bytes that begin as TLS does, and cannot be read."""


class _NoMessage(MalformedHello):
    """A first message that another record interrupts, or that is longer than any."""

    def __init__(self, why: str, kind: int = -1) -> None:
        super().__init__(why)
        self.kind = kind


class Greeting(NamedTuple):
    """The first message of a client.

    Attributes:
        name: the name it calls its server, empty where it tells none or is no TLS.
        size: the bytes of the message, 0 where it is no TLS.
        early: whether encrypted early data follows at once, which the server may pass over.
    """

    name: str
    size: int = 0
    early: bool = False


def server_name(data: bytes) -> str | None:
    """The name in the message that `data` begins with; see `read`."""
    found = read(data)
    return None if found is None else found.name


def again(data: bytes, *, early: bool) -> tuple[int, str | None]:
    """The bytes after a greeting: a server may have its client greet once more, and go by that name.

    Args:
        data: the bytes from the end of a record on.
        early: whether the first greeting announced early data.

    Returns:
        The bytes that may be passed on, and the name in the second greeting: empty where there is none or it tells
        none; `None` where more bytes are needed.

    Raises:
        MalformedHello: see `read`.
    """
    passed = frozenset((_CHANGE, _ALERT, _DATA) if early else (_CHANGE, _ALERT))
    at = 0
    while len(data) > at:
        if data[at] == _RECORD:
            try:
                return at, server_name(data[at:])
            except _NoMessage as error:
                # the end of an older handshake is encrypted, and may begin as a greeting does
                if error.kind in passed:
                    raise
                return at, ""
        if data[at] not in passed:
            return at, ""
        end = at + 5 + int.from_bytes(data[at + 3 : at + 5], "big")
        if len(data) < max(at + 5, end):
            break
        at = end
    return at, None


def read(data: bytes) -> Greeting | None:
    """The message that `data` begins with; `None` where more bytes are needed.

    Raises:
        MalformedHello: it is TLS, and the name of the server cannot be told for certain.
    """
    if data[:1] and data[0] not in {_ALERT, _RECORD}:
        return Greeting("")
    if data[1:2] and data[1] >= _MAJORS:
        return Greeting("")
    if len(data) <= _KIND:
        return None if data[:1] != bytes((_ALERT,)) or _WARNING.startswith(data[3:_KIND]) else Greeting("")
    if data[0] == _ALERT:
        if data[3 : _KIND + 1] == _WARNING:
            raise MalformedHello("a warning before the message")
        return Greeting("")
    if data[3:_KIND] == b"\0\0":
        raise MalformedHello("a record of nothing before the message")
    if data[_KIND] != _CLIENT_HELLO:
        return Greeting("")
    message = _message(data)
    return None if message is None else _greeting(_Reader(message[0]), message[1])


def _message(data: bytes) -> tuple[bytes, int] | None:
    """The first message, however many records hold it, and where they end; `None` while a part is missing."""
    found, at = bytearray(), 0
    while True:
        if len(found) >= 4:  # noqa: PLR2004  kind and length
            size = 4 + int.from_bytes(found[1:4], "big")
            if size > LIMIT:
                raise _NoMessage("longer than any such message")
            if len(found) > size:
                raise MalformedHello("more than a message in its record")
            if len(found) == size:
                return bytes(found), at
        if len(data) < at + 5:
            return None
        kind, major, length = data[at], data[at + 1], int.from_bytes(data[at + 3 : at + 5], "big")
        if kind != _RECORD:
            raise _NoMessage("another record inside the message", kind)
        if major >= _MAJORS or not 0 < length <= _RECORD_LIMIT:
            raise MalformedHello("an odd record inside the message")
        found += data[at + 5 : at + 5 + length]
        at += 5 + length


def _greeting(reader: _Reader, size: int) -> Greeting:
    reader.take(4 + 2 + 32)  # kind and length, version, random
    for width in (1, 2, 1):  # session, ciphers, compression
        reader.vector(width)
    names: list[bytes] = []
    early = False
    extensions = _Reader(reader.vector(2) if reader else b"")
    if reader:
        raise MalformedHello("more than a message")
    while extensions:
        kind, body = extensions.number(2), _Reader(extensions.vector(2))
        early = early or kind == _EARLY_DATA
        if kind != _SERVER_NAME:
            continue
        entries = _Reader(body.vector(2))
        if body:
            raise MalformedHello("more than a list of names")
        while entries:
            if entries.number(1) != _HOST_NAME:
                raise MalformedHello("a name of another kind")
            names.append(entries.vector(2))
    if len(names) > 1:
        raise MalformedHello("more than one name")
    try:
        return Greeting(names[0].decode("ascii") if names else "", size, early)
    except UnicodeDecodeError:
        raise MalformedHello("a name that is none") from None


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
            raise MalformedHello("shorter than it says")
        self._at += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> bytes:
        """The bytes of a field that follows its own length in `size` bytes."""
        return self.take(self.number(size))
