"""EFFECT: asyncio's event loop, which can also run until nothing is left to do at once."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class _IdleSelector(selectors.DefaultSelector):
    """A selector that tells when its loop would have to wait.

    Args:
        stop: called when the loop would have to wait, or when `turns` are used up.

    Attributes:
        turns: how often the loop may still look for events before it is stopped; negative for any number.
        idle: whether it was stopped because nothing was left to do.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        super().__init__()
        self._stop = stop
        self.turns = -1
        self.idle = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The descriptors that are ready."""
        if self.turns < 0:
            return super().select(timeout)
        ready = super().select(0)
        self.turns -= 1
        # a loop with a callback to run looks for events without a wait
        self.idle = not ready and timeout != 0
        if self.idle or self.turns <= 0:
            self._stop()
        return ready


class IdleLoop(asyncio.SelectorEventLoop):
    """The event loop of a task's proxy."""

    def __init__(self) -> None:
        self._idle_selector = _IdleSelector(self.stop)
        super().__init__(self._idle_selector)

    def run_until_idle(self, turns: int) -> bool:
        """Run until no callback is due and no descriptor is ready; false when `turns` were not enough.

        Timers that are still to come and threads that still work are not waited for.
        """
        self._idle_selector.turns = turns
        try:
            self.run_forever()
        finally:
            self._idle_selector.turns = -1
        return self._idle_selector.idle
