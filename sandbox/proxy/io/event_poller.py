"""EFFECT: how a loop hears which descriptors are worth another try: from epoll where there is one, else from poll."""

from __future__ import annotations

import select
from typing import Protocol

# what only some systems know: the other end sends nothing more
_RDHUP = getattr(select, "POLLRDHUP", 0)
_BROKEN = select.POLLHUP | select.POLLERR | select.POLLNVAL
#: Of an event, which has the same numbers from either: a read, a write is worth another try.
READABLE = select.POLLIN | _RDHUP | _BROKEN
WRITABLE = select.POLLOUT | _BROKEN

# events taken from the kernel at once
_EVENTS = 256


class Poller(Protocol):
    """What a loop waits with."""

    def watch(self, fd: int) -> None:
        """Know a descriptor, until `forget`."""

    def bell(self, fd: int) -> None:
        """Tell of a descriptor whenever it can be read."""

    def forget(self, fd: int) -> None:
        """Before it is closed."""

    def want(self, fd: int, event: int) -> None:
        """Tell once that a descriptor can be read, or written: `READABLE` or `WRITABLE`."""

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        """Descriptors and what they are ready for; a negative time waits as long as it takes."""

    def close(self) -> None:
        """Let go of what the kernel holds."""


class Edges:
    """epoll, edge-triggered: each descriptor is told of once, and told again only of what is new."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._edges = select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET

    def watch(self, fd: int) -> None:
        """Tell of it whenever something about it is new."""
        self._epoll.register(fd, self._edges)

    def bell(self, fd: int) -> None:
        """Tell of it whenever it can be read."""
        self._epoll.register(fd, select.EPOLLIN)

    def forget(self, fd: int) -> None:
        """Nothing: the kernel forgets what is closed."""

    def want(self, fd: int, event: int) -> None:
        """Nothing: what is new is told of anyway."""

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        """What is new."""
        return self._epoll.poll(seconds, _EVENTS)

    def close(self) -> None:
        """Close it."""
        self._epoll.close()


class Levels:
    """poll, which every system has: told of is what somebody waits for, and nothing after that."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._wanted: dict[int, int] = {}

    def watch(self, fd: int) -> None:
        """Nothing is told of it until somebody wants to know."""
        self._wanted[fd] = 0

    def bell(self, fd: int) -> None:
        """Tell of it whenever it can be read."""
        self._poll.register(fd, select.POLLIN)

    def forget(self, fd: int) -> None:
        """Know it no more."""
        if self._wanted.pop(fd, 0):
            self._poll.unregister(fd)

    def want(self, fd: int, event: int) -> None:
        """Tell of it once."""
        self._now(fd, self._wanted[fd] | event)

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        """What is ready of what is wanted."""
        # a moment too long rather than a turn for nothing
        found = self._poll.poll(None if seconds < 0 else -int(-seconds * 1000 // 1))
        for fd, event in found:
            if wanted := self._wanted.get(fd, 0):
                # told of both, where it broke
                self._now(fd, wanted & ~((READABLE if event & READABLE else 0) | (WRITABLE if event & WRITABLE else 0)))
        return found

    def close(self) -> None:
        """Nothing is held."""

    def _now(self, fd: int, wanted: int) -> None:
        before, self._wanted[fd] = self._wanted[fd], wanted
        if wanted:
            self._poll.register(fd, wanted)
        elif before:
            self._poll.unregister(fd)


def best() -> Poller:
    """The quickest there is here."""
    return Edges() if hasattr(select, "epoll") else Levels()
