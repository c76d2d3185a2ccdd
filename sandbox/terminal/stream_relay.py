"""EFFECT: relays between a caller's descriptors and the pipes that a command has in their place, each in a thread.

No descriptor of the caller's reaches a command. Whoever has one can open its file anew, and for writing
(proc_pid_fd(5)); can change its mode (fchmod(2)); and, where it is a directory, reaches all that lies around it
(openat(2)). The flags of the caller's descriptors are never set: they are shared with whoever else has them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import signal
import socket
import stat
import struct
import termios
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 65536
# The most that one splice moves, and how much a pipe is to hold that output goes through.
_BULK = 1 << 20
_OUTPUT_PIPE = 256 << 10
# A write of so many bytes does not wait once poll says that there is room (pipe(7), PIPE_BUF).
_ROOM = 4096
_TYPED = 4096
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.5
# Seconds between two looks whether somebody still wants what is to be written.
_LOOK = 0.5
# Not every file can be spliced: one opened to append cannot (splice(2)), nor can some of a kernel's own.
_UNSPLICED = (errno.EINVAL, errno.ENOSYS)


class _Relay:
    """A thread that moves the bytes of one stream, and closes what it holds once it is done."""

    def __init__(self, name: str) -> None:
        self._woken, self._waker = os.pipe()
        self._begun = threading.Event()
        self._over = False
        self._given_up = False
        self._held: list[int] = [self._woken]
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread, which moves nothing yet.

        Raises:
            OSError: no thread is left.
        """
        # A mask is inherited, so it is there from the thread's first moment. With SIGPIPE, SIGTTIN and SIGTTOU blocked,
        # a read or a write fails in place of stopping or ending this process; its handlers run in its other threads.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._thread.start()
        except RuntimeError as error:
            self._close()
            os.close(self._waker)
            self._waker = -1
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def begin(self) -> None:
        """Move bytes from now on."""
        self._begun.set()

    def end(self) -> None:
        """Say that the command is gone: what waits in an output's pipe is still moved."""
        self._over = True
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
            self._move()
        except OSError as error:
            self._lost(error)
        finally:
            self._close()

    def _move(self) -> None:
        raise NotImplementedError

    def _lost(self, error: OSError) -> None:
        """Be told of an error that ended the stream."""

    def _close(self) -> None:
        while self._held:
            os.close(self._held.pop())

    def _let_go(self, fd: int) -> None:
        self._held.remove(fd)
        os.close(fd)


class InputRelay(_Relay):
    """A relay from a caller's descriptor, or from bytes, to a command's standard input.

    No more is taken from the caller than the pipe holds beyond what the command read; of a regular file, no more than
    the command read. A terminal is read only while somebody waits for input, and only in the foreground, so that what
    is typed for others is left to them.

    Args:
        source: the caller's, which stays the caller's; or all the bytes there are.
        awaited: says whether a process of the command's waits for input at the end of a pipe; of that pipe it is given
            what fstat(2) says.

    Attributes:
        inside: the command's standard input, to be handed over and closed.
    """

    def __init__(self, source: int | bytes, awaited: Callable[[os.stat_result], bool]) -> None:
        super().__init__("vxconf-stdin")
        self._bytes = source if isinstance(source, bytes) else b""
        self._source = -1
        self._mode = 0
        self.inside, self._pipe = os.pipe()
        self._held.append(self._pipe)
        os.set_blocking(self._pipe, False)
        self._unread = -1
        self._taken = 0
        if isinstance(source, int):
            self._source = os.dup(source)
            self._held.append(self._source)
            self._mode = os.fstat(source).st_mode
        if stat.S_ISREG(self._mode):
            # With this end open the bytes that nobody reads can be counted, and given back.
            self._unread = os.dup(self.inside)
            self._held.append(self._unread)
        self._awaited = awaited
        self._spliced = hasattr(os, "splice") and (stat.S_ISREG(self._mode) or stat.S_ISFIFO(self._mode))
        self._look = self._wanted if self._source >= 0 and os.isatty(self._source) else lambda: True
        self._socket = (
            socket.socket(fileno=os.dup(self._source)) if self._source >= 0 and stat.S_ISSOCK(self._mode) else None
        )

    def _close(self) -> None:
        super()._close()
        if self._socket is not None:
            self._socket.close()

    def _move(self) -> None:
        try:
            if self._bytes:
                self._write(self._bytes)
            elif self._source >= 0 and not stat.S_ISDIR(self._mode):
                self._relay()
        finally:
            if self._unread >= 0:
                self._give_back()

    def _relay(self) -> None:
        tries = self._spliced or self._socket is not None
        while tries or self._is_ready():
            try:
                if not self._moved():
                    return
            except BlockingIOError:  # nothing is there, or there is no room for it
                if not self._is_ready():
                    return

    def _is_ready(self) -> bool:
        """Wait until there is something to move, and room for it; false once there is no use in it."""
        return self._waits(self._pipe, select.POLLOUT) and self._waits(self._source, select.POLLIN) and self._look()

    def _waits(self, fd: int, events: int) -> bool:
        """Wait until bytes can be moved; false once the command is gone or has closed its input."""
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        poll.register(self._pipe, 0)
        poll.register(fd, events)
        ready = dict(poll.poll())
        return self._woken not in ready and not ready.get(self._pipe, 0) & select.POLLERR

    def _moved(self) -> bool:
        """Move what is there; false at the end of the input."""
        if self._spliced:
            try:
                taken = os.splice(self._source, self._pipe, _BULK, flags=os.SPLICE_F_NONBLOCK)
            except OSError as error:
                if error.errno not in _UNSPLICED:
                    raise
                self._spliced = False
            else:
                self._taken += taken
                return taken > 0
        data = self._read()
        self._taken += len(data)
        return bool(data) and self._write(data)

    def _read(self) -> bytes:
        if self._socket is not None:
            return self._socket.recv(_CHUNK, socket.MSG_DONTWAIT)
        try:
            return os.read(self._source, _TYPED if self._look is self._wanted else _CHUNK)
        except OSError as error:
            if error.errno == errno.EIO and not _in_foreground(self._source):
                raise BlockingIOError from error
            raise

    def _write(self, data: bytes) -> bool:
        """Write all of it; false once nobody reads."""
        view = memoryview(data)
        while view:
            if not self._waits(self._pipe, select.POLLOUT):
                return False
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(self._pipe, view) :]
        return True

    def _wanted(self) -> bool:
        """Wait until somebody wants what was typed; false once the command is gone or has closed its input."""
        pipe, pause = os.fstat(self._pipe), _FIRST_PAUSE
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        poll.register(self._pipe, 0)
        while not (_in_foreground(self._source) and self._awaited(pipe)):
            if poll.poll(pause * 1000):
                return False
            pause = min(2 * pause, _LONGEST_PAUSE)
        return True

    def _give_back(self) -> None:
        """Set the caller's file back by what the command did not read, once the command is gone."""
        self._let_go(self._pipe)
        select.select((self._woken,), (), ())
        # the command may have written to the pipe itself
        left = min(_waiting(self._unread), self._taken)
        if left:
            os.lseek(self._source, -left, os.SEEK_CUR)


class OutputRelay(_Relay):
    """A relay from the pipe that a command writes to a caller's descriptor.

    Where the caller's descriptor takes no more, the pipe is closed: who writes on gets SIGPIPE.

    Args:
        target: the caller's, which stays the caller's.

    Attributes:
        inside: the command's standard output or error, to be handed over and closed.
    """

    def __init__(self, target: int) -> None:
        super().__init__("vxconf-output")
        self._target = os.dup(target)
        self._pipe, self.inside = os.pipe()
        self._held += [self._target, self._pipe]
        os.set_blocking(self._pipe, False)
        enlarge(self._pipe)
        mode = os.fstat(target).st_mode
        self._waits = not stat.S_ISREG(mode)
        self._spliced = hasattr(os, "splice") and (stat.S_ISREG(mode) or stat.S_ISFIFO(mode))
        self._socket = socket.socket(fileno=os.dup(target)) if stat.S_ISSOCK(mode) else None

    def _close(self) -> None:
        super()._close()
        if self._socket is not None:
            self._socket.close()

    def _move(self) -> None:
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        poll.register(self._pipe, select.POLLIN)
        while True:
            try:
                if not self._moved():
                    return
            except BlockingIOError:  # nothing is there, or there is no room for it
                if self._pipe not in dict(poll.poll()) or not self._has_room():
                    return

    def _moved(self) -> bool:
        """Move what is there; false at the end, or where nobody waits for the rest."""
        if self._spliced:
            try:
                return os.splice(self._pipe, self._target, _BULK, flags=os.SPLICE_F_NONBLOCK) > 0
            except OSError as error:
                if error.errno not in _UNSPLICED:
                    raise
                self._spliced = False
        data = os.read(self._pipe, _CHUNK)
        return bool(data) and self._write(data)

    def _write(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            if self._waits and not self._has_room():
                return False
            with contextlib.suppress(BlockingIOError):
                if self._socket is not None:
                    view = view[self._socket.send(view, socket.MSG_DONTWAIT) :]
                else:
                    view = view[os.write(self._target, view[:_ROOM] if self._waits else view) :]
        return True

    def _has_room(self) -> bool:
        """Wait until the target takes more; false once nobody waits for that."""
        poll = select.poll()
        poll.register(self._target, select.POLLOUT)
        while not poll.poll(_LOOK * 1000):
            if self._given_up:
                return False
        return True


def enlarge(pipe: int) -> None:
    """Have a pipe hold more, so that its ends take turns less often."""
    with contextlib.suppress(OSError, AttributeError):  # this user's pipes hold too much already, or macOS
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _OUTPUT_PIPE)


def _waiting(pipe: int) -> int:
    """How many bytes wait in a pipe."""
    number: int = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]
    return number


def _in_foreground(terminal: int) -> bool:
    """Whether this process may read a terminal: one that is no terminal of its session's does not ask."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return True
