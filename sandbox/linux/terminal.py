"""EFFECT: the terminal of a task that was granted one: made in the task's own `/dev/pts`, its other end sent out.

So the task finds its terminal under the name the kernel tells (`tty`, `ttyname`), and none of the host's terminals.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import termios
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.linux.messages import Screen

#: What the executor is sent: the other end, and the task's own.
ENDS = 2
WORD = b"terminal"

_PTMX = "/dev/pts/ptmx"
_LOCK = 0x40045431  # TIOCSPTLCK
_PEER = 0x5441  # TIOCGPTPEER
_UTF8 = 0o40000  # IUTF8
_NO_TTY = os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC


def make(screen: Screen, line: int) -> list[int]:
    """Make the terminal in the current mount namespace.

    Args:
        screen: its size, and how it behaves.
        line: a socket to the executor, which gets both ends.

    Returns:
        The command's three standard streams.
    """
    master = os.open(_PTMX, _NO_TTY)
    fcntl.ioctl(master, _LOCK, struct.pack("i", 0))
    slave = fcntl.ioctl(master, _PEER, _NO_TTY)
    behave(slave, screen)
    resize(master, screen.rows, screen.columns)
    with socket.socket(fileno=os.dup(line)) as executor:
        socket.send_fds(executor, [WORD], [master, slave])
    os.close(master)
    return [slave, slave, slave]


def behave(slave: int, screen: Screen) -> None:
    """As the caller's terminal does; without one as a new terminal does, but that it shows nothing of what is typed."""
    modes = termios.tcgetattr(slave)
    if screen.modes:
        modes = [*screen.modes]
    else:
        modes[0] |= _UTF8
        modes[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, modes)


def resize(terminal: int, rows: int, columns: int) -> None:
    """Give a terminal its size; the kernel tells the foreground group."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def become_controlling() -> None:
    """Have standard input be the terminal of this session, which has none."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
