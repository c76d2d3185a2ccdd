"""EFFECT: the relay of a command's standard output or error: all that the command wrote, to what the caller gave."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import stat

from sandbox.terminal.stream_relay import BULK, CHUNK, ROOM, UNSPLICED, StreamRelay, enlarge, socket_of

# The answers that a program gets for a reader that is gone, and ends upon.
_NOBODY_READS = (errno.EPIPE, errno.ECONNRESET)
# Seconds between two looks whether somebody still wants what is to be written.
_LOOK = 0.5


class OutputRelay(StreamRelay):
    """A relay from the pipe that a command writes to a caller's descriptor.

    Where the caller's descriptor takes no more, the pipe is closed: who writes on gets SIGPIPE.

    Args:
        target: the caller's, which stays the caller's.

    Attributes:
        lost: why the target took no more (a disk that is full), empty where it took all or its reader was gone. The
            command may have ended by then, and does not know.
    """

    def __init__(self, target: int) -> None:
        mode = os.fstat(target).st_mode
        super().__init__("vxconf-output")
        self.lost = ""
        self._target = self._pipe = -1
        self._socket: socket.socket | None = None
        try:
            self._open(target, mode)
        except BaseException:
            self._discard()
            raise
        self._waits = not stat.S_ISREG(mode)
        self._spliced = hasattr(os, "splice") and (stat.S_ISREG(mode) or stat.S_ISFIFO(mode))

    def _open(self, target: int, mode: int) -> None:
        self._pipe, self.inside = os.pipe()
        self._held.append(self._pipe)
        os.set_blocking(self._pipe, False)
        enlarge(self._pipe)
        self._target = os.dup(target)
        self._held.append(self._target)
        if stat.S_ISSOCK(mode):
            self._socket = socket_of(target)

    def _close(self) -> None:
        super()._close()
        if self._socket is not None:
            self._socket.close()

    def _move(self) -> None:
        try:
            self._relay()
        except OSError as error:
            if error.errno not in _NOBODY_READS:
                self.lost = os.strerror(error.errno or errno.EIO)
            raise

    def _relay(self) -> None:
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
                return os.splice(self._pipe, self._target, BULK, flags=os.SPLICE_F_NONBLOCK) > 0
            except OSError as error:
                if error.errno not in UNSPLICED:
                    raise
                self._spliced = False
        data = os.read(self._pipe, CHUNK)
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
                    view = view[os.write(self._target, view[:ROOM] if self._waits else view) :]
        return True

    def _has_room(self) -> bool:
        """Wait until the target takes more; false once nobody waits for that."""
        poll = select.poll()
        poll.register(self._target, select.POLLOUT)
        while not poll.poll(_LOOK * 1000):
            if self._given_up:
                return False
        return True
