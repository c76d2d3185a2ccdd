"""A CONNECT as nearly every client writes it, read without h11. Pure.

A request of any other shape is left to h11. A request of this shape h11 reads and answers in the same way, which the
tests hold.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# headers that change neither where the head ends nor what may follow it
_HEAD = re.compile(
    rb"CONNECT ([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5}) HTTP/1\.([01])\r\n"
    rb"((?:(?i:host|user-agent|proxy-connection|accept): [!-~][ -~]*\r\n)*)\r\n"
)
_HEAD_LIMIT = 2048
_LAST_PORT = 65535
_ANSWERS = (
    b"HTTP/1.1 200 Connection established\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 200 Connection established\r\n\r\n",
)


class Connect(NamedTuple):
    """A request: its target, the answer once connected, and the size of its head, behind which the tunnel begins."""

    host: str
    port: int
    answer: bytes
    size: int


def read(data: bytes) -> Connect | None:
    """The request that `data` begins with, `None` where it is not whole or has another shape."""
    match = _HEAD.match(data, 0, _HEAD_LIMIT)
    if match is None:
        return None
    host, port, minor, lines = match.groups()
    number, hosts = int(port), (b"\r\n" + lines.lower()).count(b"\r\nhost: ")
    if not 0 < number <= _LAST_PORT or not (hosts == 1 or (hosts == 0 and minor == b"0")):
        return None
    return Connect(host.decode("ascii"), number, _ANSWERS[int(minor)], match.end())
