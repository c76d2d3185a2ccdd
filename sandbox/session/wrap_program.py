"""EFFECT: the program another executor spawns in a command's place; run as a file, with the standard library alone.

    wrap_program.py DESCRIPTOR      the session's end of the line

The program hands its three standard streams to the session, passes on the signals it gets, and ends as the command did.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys

#: The status with which the session says that it is gone or could not run anything.
NOT_STARTED = 125

_FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)


def main(descriptor: int) -> int:
    """Serve until the session tells the end; the exit status."""
    line = socket.socket(fileno=descriptor)
    line.set_inheritable(False)

    def forward(number: int, _frame: object) -> None:
        try:
            line.send(b"signal %d" % number, socket.MSG_DONTWAIT)
        except OSError:  # the session is gone, and says so below
            return

    for number in _FORWARDED:
        # Signals that the parent ignores, as nohup has it, stay ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, forward)
    try:
        socket.send_fds(line, [b"streams"], [_stream(0), _stream(1), _stream(2)])
        word = line.recv(64)
    except OSError:
        word = b""
    kind, _, rest = word.partition(b" ")
    if kind == b"exit" and rest.isdigit():
        return int(rest)
    if kind == b"killed" and rest.isdigit():
        # The parent sees the end it would have seen of the command itself.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        killer = int(rest)
        if killer in _FORWARDED:
            signal.signal(killer, signal.SIG_DFL)
        os.kill(os.getpid(), killer)
        return 128 + int(rest)
    sys.stderr.write("error: the session that was to run this command is gone\n")
    return NOT_STARTED


def _stream(number: int) -> int:
    try:
        os.fstat(number)
    except OSError:
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    return number


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
