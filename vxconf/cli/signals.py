"""Signals to this process become signals to what it runs."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class SignalForwarder:
    """Signals to us are signals to the command; a second interrupt ends it at once.

    Attributes:
        first: the first that came, 0 while none has.
    """

    _NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, send: Callable[[int], None], also: Iterable[int] = ()) -> None:
        """`send` passes one on; `also` are numbers besides those that end programs."""
        self._numbers = (*self._NUMBERS, *also)
        self._send = send
        self._before: dict[int, Any] = {}
        self._interrupts = 0
        self.first = 0

    def __enter__(self) -> Self:
        """From here on."""
        for number in self._numbers:
            # what the caller ignores, as nohup does, stays ignored
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        """As before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, _frame: object) -> None:
        if number != signal.SIGWINCH:
            self.first = self.first or number
        self._interrupts += number == signal.SIGINT
        self._send(signal.SIGKILL if self._interrupts > 1 else number)
