"""EFFECT: a terminal for one command: made outside, and the terminal of the command's own session before it starts."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from typing import TYPE_CHECKING

from sandbox.terminal import terminal_modes

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Mapping

# The highest descriptor to wait for: `select` takes none above 1023, and a few are opened after these.
_HIGHEST = 1000

# A session's leader takes its terminal itself, and only once the session is its own (setsid(2), TIOCSCTTY). The leader
# runs outside the sandbox, so the task's variables, such as a library to load first, come in a file: they are for the
# program it executes.
_LEADER = """\
import fcntl, os, signal, sys, termios
for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
with open(int(sys.argv[1]), "rb") as file:
    told = dict(one.split(b"=", 1) for one in file.read().split(b"\\0") if one)
try:
    os.execve(sys.argv[2], sys.argv[2:], told)
except OSError as error:
    print("sandbox-exec: it was not executed:", error.strerror, file=sys.stderr, flush=True)
    os._exit(71)
"""
#: The variables of the leader itself.
ENVIRONMENT = {"LC_ALL": "C.UTF-8"}


def ends(caller: int | None, stdin: int | bytes | None) -> tuple[int, int]:
    """Make a terminal of the size and the modes of the caller's; both ends, the command's second.

    Raises:
        OSError: no more terminals, or descriptors, are to be had.
    """
    master, slave = os.openpty()
    try:
        _selectable(master, slave, stdin if isinstance(stdin, int) else 0)
        modes = () if caller is None else terminal_modes.modes(caller, typed=caller == stdin)
        terminal_modes.behave(slave, modes)
        terminal_modes.resize(master, *(terminal_modes.USUAL if caller is None else terminal_modes.size(caller)))
    except BaseException:
        os.close(master)
        os.close(slave)
        raise
    return master, slave


def _selectable(*fds: int) -> None:
    if max(fds) > _HIGHEST:
        raise OSError(errno.EMFILE, "too many files are open to wait for a terminal")


def led(
    command: tuple[str, ...], environment: Mapping[str, str], stack: contextlib.ExitStack
) -> tuple[tuple[str, ...], int]:
    """The program to start in a new session, its standard input a terminal, to run a command on that terminal.

    Returns:
        The argument list, and the descriptor it inherits.
    """
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  the stack is its context
    file.write(b"\0".join(os.fsencode(f"{name}={value}") for name, value in environment.items()))
    file.seek(0)
    return (sys.executable, "-I", "-S", "-c", _LEADER, str(file.fileno()), *command), file.fileno()
