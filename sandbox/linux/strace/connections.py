"""Addresses as strace writes them."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from sandbox.linux.strace import text

_FOUR = re.compile(rb'sa_family=AF_INET, sin_port=htons\((\d{1,5})\), sin_addr=inet_addr\("([0-9.]{1,15})"\)')
_SIX = re.compile(
    rb'sa_family=AF_INET6, sin6_port=htons\((\d{1,5})\),.{0,80}?inet_pton\(AF_INET6, "([0-9a-fA-F:.]{1,45})"'
)
_UNIX = re.compile(rb'sa_family=AF_UNIX, sun_path=("(?:[^"\\]|\\.){0,500}+")')


class Target(NamedTuple):
    """Where a connection was to go.

    Attributes:
        asked: `host:port`, or the path as spelled.
        path: absolute, empty for a host; for a relative one too.
    """

    asked: str
    path: str


def connection(call: str, body: bytes) -> Target | None:
    """The first address in the arguments of a connect or a send; `None` when there is none that names a place."""
    # what is sent may spell an address: it comes before the one that counts
    where = body if call == "connect" else _behind_data(call, body)
    found = _FOUR.search(where)
    if found is not None:
        return Target(f"{found.group(2).decode('ascii')}:{found.group(1).decode('ascii')}", "")
    found = _SIX.search(where)
    if found is not None:
        return Target(f"[{found.group(2).decode('ascii')}]:{found.group(1).decode('ascii')}", "")
    found = _UNIX.search(where)
    if found is not None and (said := text.string(found.group(1))) is not None:
        path = os.fsdecode(said[0])
        return Target(path, path if path.startswith("/") else "")
    return None


def _behind_data(call: str, body: bytes) -> bytes:
    wanted = {"sendto": 4, "sendmsg": 1, "sendmmsg": 1}[call]
    given = text.arguments(body, wanted + 1)
    if len(given) <= wanted:
        return b""
    # the address comes before the data: {msg_name={sa_family=...}, msg_namelen=16, msg_iov=[...
    return given[wanted].partition(b"msg_iov=")[0]
