"""EFFECT: opens of FIFOs for writing that wait for a reader (fifo(7)), all looked after by one thread.

Any number of them waits, and none keeps another open from being made.
"""

from __future__ import annotations

import _thread
import errno
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from sandbox.linux.caller.caller_memory import is_interrupted
from sandbox.linux.caller.worker_threads import WorkerThreads
from sandbox.linux.mask.served.inodes import magic_link
from sandbox.linux.names.read_call import HandedDescriptor

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.linux.kernel.seccomp_notification import Notification

_PAUSE = 0.005
#: The most that wait; each holds a descriptor of the warden's.
_MOST = 512


class WaitingPipe(NamedTuple):
    """An open that waits.

    Attributes:
        place: an O_PATH descriptor of the FIFO.
        flags: how it is opened.
    """

    seen: Notification
    place: int
    flags: int


class WaitingPipes:
    """The opens of one task that wait for a reader.

    Args:
        enter: called first by the thread that opens.
        is_there: whether a call still waits.
        answer: called with what an open came to.
    """

    def __init__(
        self,
        *,
        enter: Callable[[], object],
        is_there: Callable[[Notification], bool],
        answer: Callable[[Notification, HandedDescriptor | OSError], object],
        missed: Callable[[Exception], object],
    ) -> None:
        self._enter = enter
        self._is_there = is_there
        self._answer = answer
        self._threads = WorkerThreads(1, missed)
        self._lock = _thread.allocate_lock()
        self._waiting: list[WaitingPipe] = []

    def add(self, one: WaitingPipe) -> None:
        """Have an open made as soon as somebody reads; its descriptor of the FIFO is closed then.

        Raises:
            OSError: too many wait.
        """
        with self._lock:
            if len(self._waiting) >= _MOST:
                raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))
            first = not self._waiting
            self._waiting.append(one)
        if first:
            try:
                self._threads.do(self._look_after)
            except RuntimeError as error:
                with self._lock:
                    self._waiting.remove(one)
                raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error

    def settle(self, seconds: float) -> bool:
        """Wait until no open waits; false where one still did after `seconds`."""
        return self._threads.settle(seconds)

    def _look_after(self) -> None:
        self._enter()
        while True:
            with self._lock:
                waiting = tuple(self._waiting)
            done = [one for one in waiting if self._is_done(one)]
            with self._lock:
                for one in done:
                    self._waiting.remove(one)
                    os.close(one.place)
                if not self._waiting:
                    return
            time.sleep(_PAUSE)

    def _is_done(self, one: WaitingPipe) -> bool:
        try:
            opened = open_now(one.place, one.flags)
        except OSError as error:
            if error.errno != errno.ENXIO:
                self._answer(one.seen, error)
                return True
            if not self._is_there(one.seen):
                return True
            if is_interrupted(one.seen.pid):
                self._answer(one.seen, InterruptedError(errno.EINTR, os.strerror(errno.EINTR)))
                return True
            return False
        self._answer(one.seen, HandedDescriptor(opened, one.flags & os.O_CLOEXEC))
        return True


def open_now(place: int, flags: int) -> int:
    """Open a FIFO as it is.

    Raises:
        OSError: ENXIO, nobody reads from it.
    """
    opened = os.open(magic_link(place), flags | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(opened, not flags & os.O_NONBLOCK)
    return opened
