"""The memory of what a machine was found to be: one probe for a mode, however many threads ask at once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.session.machine_verdict import HostReport


class Prober:
    """One verdict for each mode, found when somebody first asks, however many threads do.

    Args:
        asks: finds the verdict of a mode: whether the task accepts a weaker sandbox.
    """

    def __init__(self, asks: Callable[[bool], HostReport]) -> None:
        """Make a prober that has asked nothing yet."""
        self._asks = asks
        self._lock = threading.Lock()
        self._reports: dict[bool, HostReport] = {}

    def __call__(self, *, weaker: bool = False) -> HostReport:
        """The verdict of a mode, kept until it is forgotten."""
        with self._lock:
            if weaker not in self._reports:
                self._reports[weaker] = self._asks(weaker)
            return self._reports[weaker]

    def forget(self) -> None:
        """Forget the verdicts: the next to ask has the machine asked again."""
        with self._lock:
            self._reports.clear()
