"""A run in a thread of its own, and its result: the common part of a server and a wrapped command."""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_R = TypeVar("_R")


class BackgroundRun(Generic[_R]):
    """One run in a thread that keeps no process alive.

    Args:
        what: the name of what runs, for people: `the server`.
        work: runs it to its end.
        on_end: called in that thread once the result is known.
    """

    def __init__(self, what: str, work: Callable[[], _R], *, on_end: Callable[[], None] = lambda: None) -> None:
        self._what = what
        self._work = work
        self._future: Future[_R] = Future()
        self._future.add_done_callback(lambda _: on_end())
        self._thread = threading.Thread(target=self._go, name=f"vxconf-run {what}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the result is not known yet."""
        return not self._future.done()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended, or so many seconds."""
        self._thread.join(timeout)

    def result(self, timeout: float | None = None) -> _R:
        """Wait for the result.

        Raises:
            TimeoutError: the result is not known after `timeout` seconds.
            BaseException: the error that a callback of the run raised.
        """
        if not wait((self._future,), timeout).done:
            raise TimeoutError(f"{self._what} still runs after {timeout} s")
        return self._future.result()

    def _go(self) -> None:
        try:
            result = self._work()
        except BaseException as error:  # noqa: BLE001  a callback's; raised again where the result is asked for
            self._future.set_exception(error)
        else:
            self._future.set_result(result)
