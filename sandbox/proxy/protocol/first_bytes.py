"""A judge of a client's first bytes: a TLS greeting, none for certain, or what a server may pass over first. Pure.

Servers differ in what they pass over: GnuTLS a change of ciphers, Go's a warning, OpenSSL records of nothing, nginx the
header of the PROXY protocol where it is told to. Versions before TLS 1.2 asked for records of an unknown kind to be
passed over (RFC 4346, 6). So no list of what is skipped is kept: whatever a server could take for a record that is not
the greeting is refused.
"""

from __future__ import annotations

from sandbox.proxy.protocol.tls_hello import CLIENT_HELLO, HANDSHAKE, HEADER, MAJORS, MalformedHello

#: The bytes from which a beginning is told.
NEEDED = 6
#: Blanks and line ends, which no client of TLS begins with.
BLANKS = b"\r\n\t "

# every kind of record there is (IANA, TLS ContentType)
_RECORDS = {
    20: "a change of ciphers",
    21: "an alert",
    HANDSHAKE: "a record of nothing",
    23: "data",
    24: "a heartbeat",
    25: "an encrypted record",
    26: "an acknowledgement",
}
_TLS, _LAST_MINOR = 3, 4
_LONG = 0x80
_OLD_VERSIONS = frozenset({(0, 2), (2, 0), *((_TLS, minor) for minor in range(_LAST_MINOR + 1))})
_PROXY_LINE = b"PROXY "
# the second version's signature is \r\n\r\n\0\r\nQUIT\n
_PROXY_BINARY = b"\0\r\nQUIT"[:NEEDED]


def is_record(first: int) -> bool:
    """Whether a byte is the kind of a TLS record."""
    return first in _RECORDS


def is_greeting(data: bytes, *, blanks: bool = False) -> bool | None:
    """Whether bytes begin a TLS greeting; `None` where more are needed, at most `NEEDED`.

    Args:
        data: the first bytes that are no blanks, at least one.
        blanks: whether blanks came before them.

    Raises:
        MalformedHello: they are something that a server may pass over before a greeting.
    """
    if data[0] in _RECORDS:
        found = _record(data)
        if found and blanks:
            raise MalformedHello("a blank comes before it")
        return found
    if data[1:2] == bytes((_TLS,)) and len(data) > 2 and data[2] <= _LAST_MINOR:  # noqa: PLR2004  kind and version
        raise MalformedHello("a record of an unknown kind comes before it")
    if _is_old(data):
        raise MalformedHello("it is one of SSL 2, or looks so")
    if data.startswith(_PROXY_LINE) or (blanks and data.startswith(_PROXY_BINARY)):
        raise MalformedHello("a header of the PROXY protocol comes before it")
    return False if len(data) >= NEEDED else None


def _record(data: bytes) -> bool | None:
    kind = data[0]
    if len(data) < 2:  # noqa: PLR2004  kind and major version
        return None
    if data[1] >= MAJORS:
        return False
    if kind != HANDSHAKE or data[3:HEADER] == b"\0\0":
        raise MalformedHello(f"{_RECORDS[kind]} comes before it")
    if len(data) < NEEDED:
        return None
    if data[HEADER] != CLIENT_HELLO:
        raise MalformedHello("another message comes before it")
    return True


def _is_old(data: bytes) -> bool:
    """Whether this is a greeting of SSL 2 (its length in two bytes, or in three with padding), which holds no name."""
    at = 2 if data[0] & _LONG else 3
    return data[at : at + 1] == bytes((CLIENT_HELLO,)) and tuple(data[at + 1 : at + 3]) in _OLD_VERSIONS
