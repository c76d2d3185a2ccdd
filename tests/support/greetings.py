"""What a TLS client says first, as OpenSSL says it."""

from __future__ import annotations

import itertools
import ssl


def greeting(name: str | None) -> bytes:
    """What OpenSSL says first to a server of that name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    said = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), said, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return said.read()
    raise AssertionError("a handshake of one side")


def recut(data: bytes, cuts: list[int]) -> bytes:
    """The one record of a greeting as several."""
    body = data[5:]
    bounds = sorted({0, len(body), *(1 + cut % (len(body) - 1) for cut in cuts)})
    pieces = [body[a:b] for a, b in itertools.pairwise(bounds)]
    return b"".join(data[:3] + len(piece).to_bytes(2, "big") + piece for piece in pieces)


def with_early_data(data: bytes) -> bytes:
    """The same greeting, whose client says that it goes on at once (RFC 8446, 4.2.10)."""
    # version, random; then the session, the ciphers and the compressions, each behind its length
    at = 5 + 4 + 2 + 32
    for width in (1, 2, 1):
        at += width + int.from_bytes(data[at : at + width], "big")
    extensions = b"\0\x2a\0\0" + data[at + 2 :]
    body = data[9:at] + len(extensions).to_bytes(2, "big") + extensions
    message = data[5:6] + len(body).to_bytes(3, "big") + body
    return data[:3] + len(message).to_bytes(2, "big") + message
