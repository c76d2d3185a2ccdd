"""EFFECT: a relay between a caller's descriptor and the pipe that a command has in its place, in a thread of its own.

No descriptor of the caller's reaches a command. Whoever has one can open its file anew, and for writing
(proc_pid_fd(5)); can change its mode (fchmod(2)); and, where it is a directory, reaches all that lies around it
(openat(2)). The flags of the caller's descriptors are never set: they are shared with whoever else has them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import socket
import threading

#: The most bytes that one splice moves.
BULK = 1 << 20
#: A write of so many bytes does not wait once poll says that there is room (pipe(7), PIPE_BUF).
ROOM = 4096
#: The most bytes of one read.
CHUNK = 65536
#: Not every file can be spliced: one opened to append cannot (splice(2)), nor can some of a kernel's own.
UNSPLICED = (errno.EINVAL, errno.ENOSYS)
_PIPE = 256 << 10
# With these blocked a read or a write fails in place of stopping or ending this process.
_BLOCKED = (signal.SIGPIPE, signal.SIGTTIN, signal.SIGTTOU)


class StreamRelay:
    """A thread that moves the bytes of one stream, and closes what it holds once it is done.

    Attributes:
        inside: the command's end of the stream, to be handed over and closed.
    """

    def __init__(self, name: str) -> None:
        self.inside = -1
        self._woken, self._waker = os.pipe()
        self._begun = threading.Event()
        self._given_up = False
        self._held: list[int] = [self._woken]
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread, which moves nothing yet.

        Raises:
            OSError: no thread is left.
        """
        # a mask is inherited, so it is there from the thread's first moment
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._discard()
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def begin(self) -> None:
        """Move bytes from now on."""
        self._begun.set()

    def end(self) -> None:
        """Say that the command is gone: what waits in an output's pipe is still moved."""
        self._begun.set()
        if self._waker >= 0:
            os.close(self._waker)
            self._waker = -1

    def give_up(self) -> None:
        """Say that nobody waits any more for what is left."""
        self._given_up = True

    def join(self, seconds: float) -> bool:
        """Wait for the thread's end, so many seconds; whether it has ended."""
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._begun.wait()
        try:
            # one end is gone: the other hears of it as it would of a pipe, by the closing
            with contextlib.suppress(OSError):
                self._move()
        finally:
            self._close()

    def _move(self) -> None:
        raise NotImplementedError

    def _discard(self) -> None:
        """Close everything of a relay that will not be started."""
        self._close()
        self.end()
        if self.inside >= 0:
            os.close(self.inside)
            self.inside = -1

    def _close(self) -> None:
        while self._held:
            os.close(self._held.pop())

    def _let_go(self, fd: int) -> None:
        self._held.remove(fd)
        os.close(fd)


def enlarge(pipe: int) -> None:
    """Have a pipe hold more, so that its ends take turns less often."""
    with contextlib.suppress(OSError, AttributeError):  # this user's pipes hold too much already, or macOS
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


def socket_of(fd: int) -> socket.socket:
    """A socket of a descriptor that is a copy of the caller's."""
    copy = os.dup(fd)
    try:
        return socket.socket(fileno=copy)
    except BaseException:
        os.close(copy)
        raise
