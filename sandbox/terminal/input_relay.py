"""EFFECT: the relay of a command's standard input: what the caller gave, as far as the command reads it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import socket
import stat
import struct
import termios
from typing import TYPE_CHECKING

from sandbox.terminal.stream_relay import BULK, CHUNK, ROOM, UNSPLICED, StreamRelay, enlarge, socket_of

if TYPE_CHECKING:
    from collections.abc import Callable

_TYPED = 4096
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.5
# Seconds for which nothing can be told, after which an input counts as awaited.
_UNKNOWN = 1.0
_NONBLOCK = 2  # SPLICE_F_NONBLOCK, as tee(2) takes it


class InputRelay(StreamRelay):
    """A relay from a caller's descriptor, or from bytes, to a command's standard input.

    Nothing is taken from the caller before the command has read what it is shown first. From then on no more is taken
    ahead than the pipe holds; of a regular file, no more than the command read in the end. A terminal is read only
    while somebody waits for input, and only in the foreground, so that what is typed for others is left to them.

    Args:
        source: the caller's, which stays the caller's; or all the bytes there are.
        awaited: says whether a process of the command's waits for input at the end of a pipe, `None` where it cannot
            tell; of that pipe it is given what fstat(2) says.
    """

    def __init__(self, source: int | bytes, awaited: Callable[[os.stat_result], bool | None]) -> None:
        super().__init__("vxconf-stdin")
        self._bytes = source if isinstance(source, bytes) else b""
        self._source = self._pipe = self._unread = -1
        self._mode = self._taken = 0
        self._awaited = awaited
        self._socket: socket.socket | None = None
        try:
            self._open(source if isinstance(source, int) else None)
        except BaseException:
            self._discard()
            raise
        self._spliced = hasattr(os, "splice") and (stat.S_ISREG(self._mode) or stat.S_ISFIFO(self._mode))
        self._look = self._wanted if self._source >= 0 and os.isatty(self._source) else lambda: True

    def _open(self, source: int | None) -> None:
        self.inside, self._pipe = os.pipe()
        self._held.append(self._pipe)
        os.set_blocking(self._pipe, False)
        if source is None:
            return
        self._source = os.dup(source)
        self._held.append(self._source)
        self._mode = os.fstat(source).st_mode
        if stat.S_ISREG(self._mode):
            # with this end open the bytes that nobody reads can be counted, and given back
            self._unread = os.dup(self.inside)
            self._held.append(self._unread)
        if stat.S_ISSOCK(self._mode):
            self._socket = socket_of(source)

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
        if not self._first_is_read():
            return
        enlarge(self._pipe)
        tries = self._spliced or self._socket is not None
        while tries or self._is_ready():
            try:
                if not self._moved():
                    return
            except BlockingIOError:  # nothing is there, or there is no room for it
                if not self._is_ready():
                    return

    def _first_is_read(self) -> bool:
        """Show the command the beginning of what waits, and take it once it was read; false where nobody will read on.

        A pipe of one page has room again only when all that is in it was read.
        """
        is_stream = self._socket is not None and self._socket.type == socket.SOCK_STREAM
        if not (is_stream or stat.S_ISFIFO(self._mode)) or not hasattr(fcntl, "F_SETPIPE_SZ"):
            return True
        fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, ROOM)
        shown = 0
        while not shown:
            if not self._is_ready():
                return False
            with contextlib.suppress(BlockingIOError):  # somebody else who has it was faster
                shown = self._shown()
                if not shown:
                    return False
        is_read = self._waits(self._pipe, select.POLLOUT)
        self._take(shown if is_read else shown - _waiting(self._pipe))
        return is_read

    def _shown(self) -> int:
        """Copy into the pipe what waits and leave it where it is; how many bytes, 0 at the end."""
        if self._socket is not None:
            data = self._socket.recv(ROOM, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            return os.write(self._pipe, data) if data else 0
        return _tee(self._source, self._pipe, ROOM)

    def _take(self, count: int) -> None:
        """Take what was shown and read."""
        with contextlib.suppress(BlockingIOError):
            if self._socket is not None:
                self._socket.recv(count, socket.MSG_DONTWAIT)
            elif count:
                with open(os.devnull, "wb") as null:
                    os.splice(self._source, null.fileno(), count, flags=os.SPLICE_F_NONBLOCK)

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
                taken = os.splice(self._source, self._pipe, BULK, flags=os.SPLICE_F_NONBLOCK)
            except OSError as error:
                if error.errno not in UNSPLICED:
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
            return self._socket.recv(CHUNK, socket.MSG_DONTWAIT)
        try:
            return os.read(self._source, _TYPED if self._look is self._wanted else CHUNK)
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
        pipe, pause, unknown = os.fstat(self._pipe), _FIRST_PAUSE, 0.0
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        poll.register(self._pipe, 0)
        while True:
            is_awaited = _in_foreground(self._source) and self._awaited(pipe)
            # an input that is never read is worse than one that is read ahead
            if is_awaited or unknown > _UNKNOWN:
                return True
            if poll.poll(pause * 1000):
                return False
            unknown = unknown + pause if is_awaited is None else 0.0
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _give_back(self) -> None:
        """Set the caller's file back by what the command did not read, once the command is gone."""
        self._let_go(self._pipe)
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        poll.poll()
        # the command may have written to the pipe itself
        left = min(_waiting(self._unread), self._taken)
        if left:
            os.lseek(self._source, -left, os.SEEK_CUR)


def _tee(source: int, target: int, count: int) -> int:
    """Copy bytes between two pipes and leave them in the first (tee(2)); 0 at its end.

    Raises:
        OSError: BlockingIOError where nothing is there, or no room for it.
    """
    import ctypes

    copied: int = ctypes.CDLL(None, use_errno=True).tee(source, target, ctypes.c_size_t(count), _NONBLOCK)
    if copied < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return copied


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
