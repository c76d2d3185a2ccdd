"""EFFECT: the size and the modes of terminals, on every system alike."""

from __future__ import annotations

import fcntl
import struct
import termios
from typing import Any

_UTF8 = 0o40000  # IUTF8, the same on Linux and macOS
#: Rows and columns where no terminal tells any.
USUAL = (24, 80)


def size(terminal: int) -> tuple[int, int]:
    """The rows and columns of a terminal."""
    packed = fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(8))
    rows, columns, _, _ = struct.unpack("HHHH", packed)
    return int(rows), int(columns)


def resize(terminal: int, rows: int, columns: int) -> None:
    """Give a terminal its size; the kernel sends SIGWINCH to the foreground group (tty_ioctl(4))."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def modes(caller: int, *, typed: bool) -> tuple[Any, ...]:
    """The modes of the caller's terminal, as `termios.tcgetattr` tells them.

    Args:
        caller: the terminal.
        typed: whether the task's input is typed there; other input is not shown as it is read.
    """
    found = termios.tcgetattr(caller)
    if not typed:
        found[3] &= ~termios.ECHO
    return tuple(found)


def behave(slave: int, given: tuple[Any, ...]) -> None:
    """Give a terminal the caller's modes; without a caller it is as a new one, but shows nothing of its input."""
    found = termios.tcgetattr(slave)
    if given:
        found = [*given]
    else:
        found[0] |= _UTF8
        found[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, found)
