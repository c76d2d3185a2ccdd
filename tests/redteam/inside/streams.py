"""Does to each of its standard streams all that a file, a directory or a socket behind it would suffer from."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

TOLD: dict[str, str] = {}
MODE = 0o606


def attempt(what: str, act: Callable[[], object]) -> None:
    try:
        TOLD[what] = str(act())
    except (OSError, ValueError) as error:
        TOLD[what] = type(error).__name__


def anew(path: str, flags: int, act: Callable[[int], object]) -> object:
    fd = os.open(path, flags | os.O_NONBLOCK)
    try:
        return act(fd)
    finally:
        os.close(fd)


def changed(fd: int) -> None:
    os.write(fd, b"changed\n")


def anew_in(directory: int, name: str) -> bytes:
    fd = os.open(name, os.O_RDONLY, dir_fd=directory)
    return os.read(fd, 99)


def listed(fd: int) -> list[str]:
    os.fchdir(fd)
    return os.listdir("../..")


def sent(fd: int, kind: int) -> int:
    with socket.socket(socket.AF_UNIX, kind, fileno=os.dup(fd)) as one:
        return one.send(b"changed\n", socket.MSG_DONTWAIT)


for number in (0, 1, 2):
    TOLD[f"{number} kind"] = str(stat.S_IFMT(os.fstat(number).st_mode))
    for place in (f"/proc/self/fd/{number}", f"/dev/fd/{number}", f"/proc/thread-self/fd/{number}"):
        attempt(f"{number} read {place}", lambda place=place: anew(place, os.O_RDONLY, lambda fd: os.read(fd, 99)))  # type: ignore[misc]
        if number == 0:
            for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
                attempt(f"{number} {place} {flags}", lambda place=place, flags=flags: anew(place, flags, changed))  # type: ignore[misc]
        attempt(f"{number} cut {place}", lambda place=place: os.truncate(place, 0))  # type: ignore[misc]
        attempt(f"{number} chmod {place}", lambda place=place: os.chmod(place, MODE))  # type: ignore[misc]
    attempt(f"{number} fchmod", lambda number=number: os.fchmod(number, MODE))  # type: ignore[misc]
    attempt(f"{number} ftruncate", lambda number=number: os.ftruncate(number, 0))  # type: ignore[misc]
    attempt(f"{number} utime", lambda number=number: os.utime(number, (1, 1)))  # type: ignore[misc]
    attempt(f"{number} pwrite", lambda number=number: os.pwrite(number, b"changed\n", 0) if number == 0 else "")  # type: ignore[misc]
    attempt(f"{number} pread", lambda number=number: os.pread(number, 99, 0))  # type: ignore[misc]
    attempt(f"{number} link", lambda number=number: os.link(f"/proc/self/fd/{number}", "out/link"))  # type: ignore[misc]
    attempt(f"{number} near", lambda number=number: anew_in(number, "secret.txt"))  # type: ignore[misc]
    attempt(f"{number} above", lambda number=number: listed(number))  # type: ignore[misc]
    attempt(f"{number} stream", lambda number=number: sent(number, socket.SOCK_STREAM))  # type: ignore[misc]
    attempt(f"{number} datagram", lambda number=number: sent(number, socket.SOCK_DGRAM))  # type: ignore[misc]
    # flags of the description are shared with whoever else has it
    with contextlib.suppress(OSError):
        fcntl.fcntl(number, fcntl.F_SETFL, os.O_NONBLOCK)


Path(sys.argv[2]).write_text(json.dumps(TOLD), encoding="utf-8")
