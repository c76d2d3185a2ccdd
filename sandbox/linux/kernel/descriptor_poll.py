"""EFFECT: poll(2) over descriptors, each with a handler that is called when it is ready."""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class DescriptorPoll:
    """Descriptors, each with a handler that must not block."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._handlers: dict[int, Callable[[int], object]] = {}
        self._resting: dict[int, float] = {}

    def watch(self, descriptor: int, handler: Callable[[int], object]) -> None:
        """Call `handler` with the poll's event whenever there is something to read."""
        self._handlers[descriptor] = handler
        self._poll.register(descriptor, select.POLLIN)

    def unwatch(self, descriptor: int) -> None:
        """Forget a descriptor before it is closed; one that is not watched is passed over."""
        self._resting.pop(descriptor, None)
        if self._handlers.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def rest(self, descriptor: int, seconds: float) -> None:
        """Read a descriptor again after a while, so that many small writes to it are taken in few reads.

        A closed other end is told before that.
        """
        self._poll.modify(descriptor, 0)
        self._resting[descriptor] = time.monotonic() + seconds

    def wait(self, seconds: float | None) -> bool:
        """Wait, and call the handlers of what is ready; false when nothing came in time or some rest ended."""
        timeout = None if seconds is None else seconds * 1000
        if self._resting:
            timeout = self._rouse(timeout)
        events = self._poll.poll(timeout)
        for descriptor, event in events:
            if handler := self._handlers.get(descriptor):
                handler(event)
        return bool(events)

    def _rouse(self, timeout: float | None) -> float | None:
        now = time.monotonic()
        for descriptor in [descriptor for descriptor, until in self._resting.items() if until <= now]:
            del self._resting[descriptor]
            self._poll.modify(descriptor, select.POLLIN)
        left = [(until - now) * 1000 for until in self._resting.values()]
        return min(left if timeout is None else [*left, timeout], default=None)
