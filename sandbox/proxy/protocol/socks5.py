"""SOCKS version 5 (RFC 1928), as code that is fed bytes; a password counts where one is asked for. Pure."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

SUCCEEDED, NOT_ALLOWED, UNREACHABLE, CONNECTION_REFUSED, UNSUPPORTED, UNKNOWN_ADDRESS = 0, 2, 4, 5, 7, 8

_VERSION = 5
_NO_AUTHENTICATION, _PASSWORD, _NONE_ACCEPTABLE = 0, 2, 0xFF
_CONNECT = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4


class MalformedSocks(ValueError):
    """Bytes that are not SOCKS 5; `reply` is the answer to the client, empty for none."""

    def __init__(self, reason: str, reply: bytes = b"") -> None:
        super().__init__(reason)
        self.reply = reply


class SocksTarget(NamedTuple):
    """The host and the port that a client wants to be connected to."""

    host: str
    port: int


def answer(code: int) -> bytes:
    """The reply to a request; the address in it means nothing."""
    return bytes((_VERSION, code, 0, _IPV4)) + bytes(6)


class Handshake:
    """The exchange before a connection, however its bytes are cut.

    Args:
        password: asked of every client (RFC 1929); empty where none is asked for.
    """

    def __init__(self, password: str = "") -> None:
        self._buffer = bytearray()
        self._asked = password.encode()
        self._expect: Callable[[], bytes | SocksTarget | None] = self._greeting

    def feed(self, data: bytes) -> tuple[bytes, SocksTarget | None, bytes]:
        """Take more bytes; the reply to send, the target once it is known, and the bytes behind it.

        Raises:
            MalformedSocks: the bytes are no SOCKS 5, and no more may be fed.
        """
        self._buffer += data
        reply = b""
        while True:
            try:
                step = self._expect()
            except MalformedSocks as error:
                error.reply = reply + error.reply
                raise
            if step is None:
                return reply, None, b""
            if isinstance(step, SocksTarget):
                return reply, step, bytes(self._buffer)
            reply += step

    def _take(self, size: int) -> bytes | None:
        if len(self._buffer) < size:
            return None
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _greeting(self) -> bytes | None:
        if self._buffer and self._buffer[0] != _VERSION:
            raise MalformedSocks("another version")
        if len(self._buffer) < 2 or (taken := self._take(2 + self._buffer[1])) is None:  # noqa: PLR2004  version, count
            return None
        methods = taken[2:]
        if _NO_AUTHENTICATION in methods and not self._asked:
            self._expect = self._request
            return bytes((_VERSION, _NO_AUTHENTICATION))
        if _PASSWORD in methods:
            self._expect = self._password
            return bytes((_VERSION, _PASSWORD))
        raise MalformedSocks("no method in common", bytes((_VERSION, _NONE_ACCEPTABLE)))

    def _password(self) -> bytes | None:
        buffer = self._buffer
        if buffer and buffer[0] != 1:
            raise MalformedSocks("another kind of password")
        if len(buffer) < 2 or len(buffer) < 3 + buffer[1]:  # noqa: PLR2004  version, length, name, length
            return None
        taken = self._take(3 + buffer[1] + buffer[2 + buffer[1]])
        if taken is None:
            return None
        if self._asked:
            from hmac import compare_digest

            if not compare_digest(taken[3 + taken[1] :], self._asked):
                raise MalformedSocks("another password", b"\1\1")
        self._expect = self._request
        return b"\1\0"

    def _request(self) -> SocksTarget | None:
        buffer = self._buffer
        if buffer and buffer[0] != _VERSION:
            raise MalformedSocks("another version")
        if len(buffer) < 5:  # noqa: PLR2004  up to the first byte of the address
            return None
        size = {_IPV4: 4, _IPV6: 16, _NAME: 1 + buffer[4]}.get(buffer[3])
        if size is None:
            raise MalformedSocks("another kind of address", answer(UNKNOWN_ADDRESS))
        taken = self._take(4 + size + 2)
        if taken is None:
            return None
        if taken[1] != _CONNECT:
            raise MalformedSocks("another command", answer(UNSUPPORTED))
        address, port = taken[4:-2], int.from_bytes(taken[-2:], "big")
        if taken[3] == _NAME:
            # a name that is no ASCII is no host, and is refused as one
            return SocksTarget(address[1:].decode("utf-8", "replace"), port)
        return SocksTarget(str(ip_address(address)), port)
