"""EFFECT: threads that were told to go on with a call, and whether each has looked up its socket since.

A call that goes on looks its descriptor up after the warden did, so it may find another socket than the warden saw.
That does no harm while the task holds no AF_UNIX datagram socket, the only kind that an address in a message turns
elsewhere. Before the task gets its first one, every call that was let go must have looked up its socket. The lookup is
the first thing a send does in the kernel, with no wait before it (`net/socket.c`), so a thread that slept in its call,
left it, or ran for a while is past it.
"""

from __future__ import annotations

import contextlib
import os
import time

# nanoseconds of processor time within which any call has come that far
_PICKED = 20_000_000
_PAUSE = 0.002


class InflightCalls:
    """Threads that were let go, by number.

    Args:
        calls: the numbers of calls that are let go.
    """

    def __init__(self, calls: frozenset[int]) -> None:
        self._calls = calls
        self._threads: set[int] = set()

    def let_go(self, thread: int) -> None:
        """Note that a thread is about to be told to go on."""
        self._threads.add(thread)

    def arrived(self, thread: int) -> None:
        """Note that a thread stands in another call, so that its call before is over."""
        self._threads.discard(thread)

    def settle(self, seconds: float) -> bool:
        """Wait until every thread has looked up its socket; false where one has not within `seconds`."""
        deadline = time.monotonic() + seconds
        waiting: dict[int, int] = {}
        for thread in tuple(self._threads):
            with contextlib.suppress(OSError):  # the thread is gone
                waiting[thread] = _ran(thread)
        while waiting:
            waiting = {thread: ran for thread, ran in waiting.items() if not self._picked(thread, ran)}
            if not waiting:
                break
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE)
        self._threads.clear()
        return True

    def _picked(self, thread: int, ran: int) -> bool:
        if thread not in self._threads:
            return True
        try:
            standing = _text(f"/proc/{thread}/syscall").split(None, 1)[0]
            if standing != "running":
                # state "D" proves nothing: a call that goes on may wait for the filter's lock first (kernel/seccomp.c)
                return int(standing) not in self._calls or _state(thread) in "STtZX"
            return _ran(thread) - ran > _PICKED
        except (OSError, ValueError, IndexError):
            return not os.path.exists(f"/proc/{thread}")


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _state(thread: int) -> str:
    return _text(f"/proc/{thread}/stat").rpartition(")")[2].split()[0]


def _ran(thread: int) -> int:
    """Nanoseconds that a thread has spent on a processor."""
    return int(_text(f"/proc/{thread}/schedstat").split()[0])
