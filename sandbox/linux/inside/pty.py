"""EFFECT: the terminal of a task that was granted one, made in the task's own `/dev/pts` and sent to the executor.

The task therefore finds its terminal under the name the kernel tells (ttyname(3)), and no terminal of the host's.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import termios
from typing import TYPE_CHECKING

from sandbox.terminal import terminal_modes

if TYPE_CHECKING:
    from sandbox.linux.warden_messages import Screen

# descriptors that the executor gets: the terminal's master end and its slave end
_ENDS = 2
_WORD = b"terminal"
_SECONDS = 30.0

_PTMX = "/dev/pts/ptmx"
_LOCK = 0x40045431  # TIOCSPTLCK
_PEER = 0x5441  # TIOCGPTPEER
_NO_TTY = os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC


def make(screen: Screen, line: int) -> list[int]:
    """Make the terminal in the current mount namespace.

    Args:
        screen: the terminal's size and modes.
        line: a socket to the executor, which gets both ends.

    Returns:
        The command's three standard streams.
    """
    master = os.open(_PTMX, _NO_TTY)
    fcntl.ioctl(master, _LOCK, struct.pack("i", 0))
    slave = fcntl.ioctl(master, _PEER, _NO_TTY)
    terminal_modes.behave(slave, screen.modes)
    terminal_modes.resize(master, screen.rows, screen.columns)
    with socket.socket(fileno=os.dup(line)) as executor:
        socket.send_fds(executor, [_WORD], [master, slave])
    os.close(master)
    return [slave, slave, slave]


def received(line: socket.socket) -> tuple[int, int]:
    """The terminal's master end and slave end, as the executor receives them.

    Raises:
        OSError: the ends did not arrive.
    """
    line.settimeout(_SECONDS)
    word, fds, _, _ = socket.recv_fds(line, 16, _ENDS)
    for fd in fds:
        os.set_inheritable(fd, False)
    if word != _WORD or len(fds) != _ENDS:
        raise OSError("the sandbox sent no terminal")
    master, slave = fds
    return master, slave


def become_controlling() -> None:
    """Make standard input the terminal of this session, which has none (TIOCSCTTY, ioctl_tty(2))."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
