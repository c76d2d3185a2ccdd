"""EFFECT: which threads were told to go on with a call, and whether each is past the point where it picks its socket.

A call that goes on picks its descriptor after the warden looked, so it may pick another one than was seen. That does
no harm while the task holds no AF_UNIX datagram socket, the only kind that is sent anywhere by an address. Before it
gets its first one, every call that was let go has to have picked: picking is the first thing the kernel does, with no
wait before it, so a thread that slept in its call, left it, or ran for a while is past it.
"""

from __future__ import annotations

import contextlib
import os
import time

# processor time within which any call has come that far, nanoseconds
_PICKED = 20_000_000
_PAUSE = 0.002


class InflightCalls:
    """Threads by number.

    Args:
        calls: numbers of the calls that are let go.
    """

    def __init__(self, calls: frozenset[int]) -> None:
        self._calls = calls
        self._threads: set[int] = set()

    def let_go(self, thread: int) -> None:
        """It is about to be told to go on."""
        self._threads.add(thread)

    def arrived(self, thread: int) -> None:
        """It stands in another call: the one before is over."""
        self._threads.discard(thread)

    def settle(self, seconds: float) -> bool:
        """Wait until every thread has picked; false if one has not by then."""
        deadline = time.monotonic() + seconds
        waiting: dict[int, int] = {}
        for thread in tuple(self._threads):
            with contextlib.suppress(OSError):  # gone
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
                # not "D": it may wait for the lock that every notified call takes on its way on
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
    """Nanoseconds on a processor so far."""
    return int(_text(f"/proc/{thread}/schedstat").split()[0])
