"""EFFECT: the size and the modes of terminals, on every system alike."""

from __future__ import annotations

import fcntl
import struct
import termios
from typing import Any

_UTF8 = 0o40000  # IUTF8, the same on Linux and macOS
#: Rows and columns where nobody's terminal tells.
USUAL = (24, 80)


def size(terminal: int) -> tuple[int, int]:
    """Its rows and columns."""
    packed = fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(8))
    rows, columns, _, _ = struct.unpack("HHHH", packed)
    return int(rows), int(columns)


def resize(terminal: int, rows: int, columns: int) -> None:
    """Give a terminal its size; the kernel tells the foreground group."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def modes(caller: int, *, typed: bool) -> tuple[Any, ...]:
    """As `termios.tcgetattr` tells those of the caller's terminal.

    Args:
        caller: the terminal.
        typed: whether what the task reads is typed there; anything else is not shown as it is read.
    """
    found = termios.tcgetattr(caller)
    if not typed:
        found[3] &= ~termios.ECHO
    return tuple(found)


def behave(slave: int, given: tuple[Any, ...]) -> None:
    """As the caller's terminal does; without one as a new terminal does, but that it shows nothing of what is typed."""
    found = termios.tcgetattr(slave)
    if given:
        found = [*given]
    else:
        found[0] |= _UTF8
        found[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, found)
