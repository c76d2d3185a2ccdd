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
