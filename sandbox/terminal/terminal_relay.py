"""EFFECT: the executor's end of a task's terminal: its input, its output, and the caller's own terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import selectors
import signal
import sys
import termios
import threading
import time
from typing import TYPE_CHECKING, Any

from sandbox.terminal import restore_modes, terminal_modes

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from sandbox.terminal.output_stream import OutputStream

    Lend = Callable[[int, list[Any], list[Any]], socket.socket]

_CHUNK = 65536
_TYPED = 4096
_TIOCSIG = 0x40045436
#: Signals that the kernel lets the other end of a terminal send, to whatever is in the foreground (TIOCSIG).
FROM_THE_KEYBOARD = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)
_END = b"\x04"
# The most reads at the end: far more than a terminal holds, since somebody who writes on and on holds it open.
_READS = 64
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0


@contextlib.contextmanager
def raw(caller: int | None, lend: Lend | None = None) -> Iterator[None]:
    """Have the caller's terminal pass on every key as it is; afterwards it is as it was.

    A caller in the background is stopped by the kernel until it is in the foreground.

    Args:
        caller: the terminal, if there is one.
        lend: tells somebody who outlives this process of the terminal, in case this process is killed.
    """
    if caller is None:
        yield
        return
    before = termios.tcgetattr(caller)
    meanwhile = _raw(before)
    line = None if lend is None else lend(caller, before, meanwhile)
    try:
        termios.tcsetattr(caller, termios.TCSADRAIN, meanwhile)
        yield
    finally:
        # A caller in the background by now would be stopped by SIGTTOU, and leave the terminal raw.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTTOU,))
        with contextlib.suppress(OSError, termios.error):  # it was closed meanwhile
            termios.tcsetattr(caller, termios.TCSADRAIN, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if line is not None:
            restore_modes.give_back(line)
            line.close()


def _raw(modes: list[Any]) -> list[Any]:
    """The same modes with every key passed on, and everything shown, as it is."""
    iflag, oflag, cflag, lflag, *speeds, keys = modes
    iflag &= ~(
        termios.IGNBRK
        | termios.BRKINT
        | termios.INPCK
        | termios.ISTRIP
        | termios.INLCR
        | termios.IGNCR
        | termios.ICRNL
        | termios.IXON
    )
    cflag = cflag & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    lflag &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.IEXTEN | termios.ISIG)
    keys = [*keys]
    keys[termios.VMIN], keys[termios.VTIME] = 1, 0
    return [iflag, oflag & ~termios.OPOST, cflag, lflag, *speeds, keys]


class TerminalRelay:
    """A relay of bytes between the terminal and whoever types and looks.

    After the last byte of the input an end of file is typed, and again whenever that was read: a program that reads on
    finds the input at its end, as it would without a terminal.

    Args:
        stdin: a descriptor to read, all the bytes there are, or `None` for none.
        out: who hears and keeps the output, or a descriptor it is written to.
        caller: the terminal whose size this one has.
        on_gone: called when the descriptor takes no more.
    """

    def __init__(
        self,
        *,
        stdin: int | bytes | None,
        out: OutputStream | int,
        caller: int | None,
        on_gone: Callable[[], object],
    ) -> None:
        self._source = stdin if isinstance(stdin, int) else None
        self._pending = stdin if isinstance(stdin, bytes) else b""
        self._out = out
        self._caller = caller
        self._on_gone = on_gone
        self._master = -1
        self._slave = -1
        self._pause = _FIRST_PAUSE
        self._next = 0.0
        self._gone = False
        self._watched: dict[int, int] = {}
        # The lock is reentrant: a signal handler may come in the middle of anything.
        self._lock = threading.RLock()

    def open(self, master: int, slave: int) -> None:
        """Take the ends over; the command is about to start, and nothing is typed before."""
        with self._lock:
            self._master, self._slave = master, slave
        os.set_blocking(master, False)
        self.resize()

    def resize(self) -> None:
        """Take over the size of the caller's terminal."""
        with self._lock, contextlib.suppress(OSError):
            if self._caller is not None and self._master >= 0:
                terminal_modes.resize(self._master, *terminal_modes.size(self._caller))

    def foreground(self) -> int:
        """The process group in the foreground; 0 for none."""
        with self._lock, contextlib.suppress(OSError):
            if self._master >= 0:
                return os.tcgetpgrp(self._master)
        return 0

    def signal(self, number: int) -> bool:
        """Send what a key would, to the foreground group; false for what no key sends."""
        if number == signal.SIGWINCH:
            self.resize()
            return True
        with self._lock, contextlib.suppress(OSError):
            if self._master >= 0 and number in FROM_THE_KEYBOARD:
                fcntl.ioctl(self._master, _TIOCSIG, number)
                return True
        return False

    def watch(self, selector: selectors.BaseSelector) -> float | None:
        """Register the descriptors to wait for now.

        Returns:
            Seconds after which to come back, `None` to wait for events alone.
        """
        wanted: dict[int, int] = {}
        left: float | None = None
        reading = self._slave >= 0 and not self._pending
        if reading and self._source is None:
            left = self._ended()
        if self._master >= 0:
            wanted[self._master] = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._pending else 0)
            if reading and self._source is not None:
                wanted[self._source] = selectors.EVENT_READ
        for fd in self._watched.keys() - wanted.keys():
            selector.unregister(fd)
        for fd, events in wanted.items():
            if fd not in self._watched:
                selector.register(fd, events, self)
            elif self._watched[fd] != events:
                selector.modify(fd, events, self)
        self._watched = wanted
        return left

    def _ended(self) -> float:
        """Type the end of the input, unless typed input waits to be read."""
        now = time.monotonic()
        if now >= self._next:
            with contextlib.suppress(OSError, termios.error):  # it was taken away, as macOS does at the command's end
                if not _waits(self._slave):
                    self._pending = self._end_key()
                    self._pause = min(self._pause * 2, _LONGEST_PAUSE)
            self._next = now + self._pause
        return max(0.0, self._next - now)

    def _end_key(self) -> bytes:
        modes = termios.tcgetattr(self._slave)
        key = modes[6][termios.VEOF]
        return key if modes[3] & termios.ICANON and isinstance(key, bytes) else _END

    def ready(self, fd: int, events: int) -> bool:
        """Move the bytes that can be moved; `watch` says which descriptors to wait for next."""
        if fd == self._source:
            self._read_source(fd)
        else:
            self._serve(fd, events)
        return True

    def _serve(self, fd: int, events: int) -> bool:
        """Move bytes of the terminal; whether some were shown."""
        if events & selectors.EVENT_WRITE and self._pending:
            with contextlib.suppress(OSError):  # full, or at its end, which reading tells
                self._pending = self._pending[os.write(fd, self._pending) :]
        if events & selectors.EVENT_READ:
            try:
                chunk = os.read(fd, _CHUNK)
            except BlockingIOError:
                return False
            except OSError:  # every process that had it open is gone
                chunk = b""
            if chunk:
                self._show(chunk)
                return True
            self._hang_up()
        return False

    def _read_source(self, fd: int) -> None:
        try:
            self._pending = os.read(fd, _TYPED)
        except BlockingIOError:
            return
        except OSError:  # a terminal that hung up
            self._pending = b""
        if not self._pending:
            self._source = None

    def _show(self, chunk: bytes) -> None:
        if not isinstance(self._out, int):
            self._out.take(chunk)
            return
        view = memoryview(chunk)
        while view and not self._gone:
            try:
                view = view[os.write(self._out, view) :]
            except BlockingIOError:
                select.select((), (self._out,), ())
            except OSError:
                self._gone = True
                self._on_gone()

    def finish(self) -> None:
        """Show the rest, up to its end: no process of the task lives any more, and all it wrote is there."""
        if self._slave >= 0:
            # The last process to close the terminal waits on macOS until everything shown was read.
            for _ in range(_READS):
                if self._master < 0 or not self._serve(self._master, selectors.EVENT_READ):
                    break
            os.close(self._slave)
            self._slave = -1

    def close(self) -> None:
        """Let go of both ends."""
        self.finish()
        self._hang_up()

    def _hang_up(self) -> None:
        with self._lock:
            master, self._master = self._master, -1
            if master >= 0:
                os.close(master)


def _waits(slave: int) -> bool:
    """Whether typed input waits to be read."""
    if sys.platform == "darwin":  # where poll knows no devices
        return bool(select.select((slave,), (), (), 0)[0])
    poll = select.poll()
    poll.register(slave, select.POLLIN)
    return bool(poll.poll(0))
