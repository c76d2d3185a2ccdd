"""Turns sockets of every kind to the sockets of others by every call, and prints what each came to."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

told: dict[str, str] = {}
KINDS = {"stream": socket.SOCK_STREAM, "packets": socket.SOCK_SEQPACKET, "letters": socket.SOCK_DGRAM}


def attempt(label: str, what: Callable[[], object]) -> None:
    try:
        what()
        told[label] = "done"
    except OSError as error:
        told[label] = errno.errorcode.get(error.errno or 0, "")


def turn(label: str, kind: int, path: str) -> None:
    """Connect, and hand a descriptor over; without a connection by an address."""
    with socket.socket(socket.AF_UNIX, kind) as sock, open("lib/cart.py", encoding="utf-8") as file:

        def hand() -> None:
            sock.connect(path)
            socket.send_fds(sock, [b"x"], [file.fileno()])

        attempt(f"{label} connect", hand)
        if kind == socket.SOCK_DGRAM:
            attempt(f"{label} sendto", lambda: sock.sendto(b"x", path))
            attempt(f"{label} sendmsg", lambda: sock.sendmsg([b"x"], [], 0, path))


top = sys.argv[2]
for name, kind in KINDS.items():
    turn(name, kind, f"{top}/{name}")
    if not os.path.lexists(f"{top}/{name}"):
        continue
    temp = os.environ["TMPDIR"]
    for how, make in (("moved", os.rename), ("linked", os.link)):
        try:
            make(f"{top}/{name}", f"{temp}/{how}")
        except OSError:
            continue
        turn(f"{name} {how}", kind, f"{temp}/{how}")
        os.rename(f"{temp}/{how}", f"{top}/{name}") if how == "moved" else os.unlink(f"{temp}/{how}")
    os.symlink(f"{top}/{name}", f"{temp}/{name}")
    turn(f"{name} by a link", kind, f"{temp}/{name}")
    held = os.open(f"{top}/{name}", os.O_PATH)
    turn(f"{name} by a descriptor", kind, f"/proc/self/fd/{held}")
with socket.socket(socket.AF_UNIX) as stale:
    stale.bind(f"{top}/stale")
with socket.socket(socket.AF_UNIX) as late:
    attempt("nobody's", lambda: late.connect(f"{top}/stale"))
sys.stdout.write(json.dumps(told))
