"""Socket addresses as strace writes them. Pure."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from sandbox.linux.strace import line_grammar

_FOUR = re.compile(rb'sa_family=AF_INET, sin_port=htons\((\d{1,5})\), sin_addr=inet_addr\("([0-9.]{1,15})"\)')
_SIX = re.compile(
    rb'sa_family=AF_INET6, sin6_port=htons\((\d{1,5})\),.{0,80}?inet_pton\(AF_INET6, "([0-9a-fA-F:.]{1,45})"'
)
_SOCKET = re.compile(rb"\d+<(socket:\[\d{1,20}\])>")
_CONNECTED_ONLY = re.compile(rb"AF_INET6?, SOCK_(?:DGRAM|RAW)\b")
_UNIX = re.compile(rb'sa_family=AF_UNIX, sun_path=("(?:[^"\\]|\\.){0,500}+")')

#: The most sockets remembered; the oldest are forgotten first.
SOCKETS = 20_000


class TracedAddress(NamedTuple):
    """The target of a connection.

    Attributes:
        asked: `host:port`, or the path as spelled.
        path: the path where it is absolute; empty for a relative one, and for a host.
    """

    asked: str
    path: str


class DatagramSockets:
    """Sockets that a program connects only to learn which address this machine would use: nothing leaves by that.

    Each is known by its inode, which no copy of a descriptor changes. A socket that is not known counts as a stream.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, None] = {}

    def made(self, body: bytes, returned: bytes) -> None:
        """Remember a socket that was made.

        Args:
            body: the arguments of the call.
            returned: the descriptor and its note.
        """
        found = _SOCKET.fullmatch(returned)
        if found is None or _CONNECTED_ONLY.match(body) is None:
            return
        if len(self._known) >= SOCKETS:
            del self._known[next(iter(self._known))]
        self._known[found.group(1)] = None

    def connects(self, call: str, body: bytes) -> bool:
        """Whether a call connects a remembered socket."""
        found = _SOCKET.match(body)
        return call == "connect" and found is not None and found.group(1) in self._known


def connection(call: str, body: bytes) -> TracedAddress | None:
    """The first address in the arguments of a connect or a send; `None` where there is none of a host or a path."""
    # the bytes of a message may spell an address, and come before the one that counts
    where = body if call == "connect" else _behind_data(call, body)
    found = _FOUR.search(where)
    if found is not None:
        return TracedAddress(f"{found.group(2).decode('ascii')}:{found.group(1).decode('ascii')}", "")
    found = _SIX.search(where)
    if found is not None:
        return TracedAddress(f"[{found.group(2).decode('ascii')}]:{found.group(1).decode('ascii')}", "")
    found = _UNIX.search(where)
    if found is not None and (said := line_grammar.string(found.group(1))) is not None:
        path = os.fsdecode(said[0])
        return TracedAddress(path, path if path.startswith("/") else "")
    return None


def _behind_data(call: str, body: bytes) -> bytes:
    wanted = {"sendto": 4, "sendmsg": 1, "sendmmsg": 1}[call]
    given = line_grammar.arguments(body, wanted + 1)
    if len(given) <= wanted:
        return b""
    # the address comes before the data: {msg_name={sa_family=...}, msg_namelen=16, msg_iov=[...
    return given[wanted].partition(b"msg_iov=")[0]
