"""EFFECT: forwards signals of this process to the command it runs."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class SignalForwarder:
    """A context in which signals to this process are sent on to a command; a second interrupt kills the command.

    Attributes:
        first: the number of the first signal, 0 while none has come.
    """

    # a run that one of these ended by itself would leave what its task made unlooked at
    _NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

    def __init__(self, send: Callable[[int], None], also: Iterable[int] = ()) -> None:
        """Takes the function that sends a signal on.

        Args:
            send: sends a signal to the command.
            also: signals to forward besides SIGINT, SIGTERM, SIGHUP and SIGQUIT.
        """
        self._numbers = (*self._NUMBERS, *also)
        self._send = send
        self._before: dict[int, Any] = {}
        self._interrupts = 0
        self.first = 0

    def __enter__(self) -> Self:
        """Begins to forward signals."""
        for number in self._numbers:
            # a signal that the caller ignores, as nohup does, stays ignored
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        """Restores the handlers that were there before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, _frame: object) -> None:
        if number != signal.SIGWINCH:
            self.first = self.first or number
        self._interrupts += number == signal.SIGINT
        self._send(signal.SIGKILL if self._interrupts > 1 else number)
