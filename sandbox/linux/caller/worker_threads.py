"""EFFECT: threads for work that must not stop the request loop.

A read of a caller's memory may wait for the request loop itself, where the memory is a page of a served file. Other
work waits for a disk.
"""

from __future__ import annotations

import _thread
import time

# `threading` and `queue` run hooks in every fork: one took 0.9 ms with them and 0.4 ms without (Python 3.11)
from _queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class WorkerThreads:
    """Threads that do pieces of work, each piece once; one thread does them in order.

    Args:
        threads: the most threads there are, each started when there is work.
        failed: called with what a piece of work raised; a piece answers its own caller.
    """

    def __init__(self, threads: int, failed: Callable[[Exception], object]) -> None:
        self._wanted = threads
        self._failed = failed
        self._started = 0
        self._queue: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._open = 0
        self._lock = _thread.allocate_lock()

    def do(self, work: Callable[[], object]) -> None:
        """Have a thread do `work` soon.

        Raises:
            RuntimeError: no thread can be started.
        """
        with self._lock:
            self._open += 1
            start = self._started < min(self._wanted, self._open)
            self._started += start
        if start and not self._start():
            with self._lock:
                self._started -= 1
                if not self._started:
                    self._open -= 1
                    raise RuntimeError("no thread can be started")
        self._queue.put(work)

    def _start(self) -> bool:
        try:
            _thread.start_new_thread(self._serve, ())
        except RuntimeError:  # the user has no process left; other threads do the work
            return False
        return True

    def _serve(self) -> None:
        while True:
            work = self._queue.get()
            try:
                work()
            except Exception as error:  # noqa: BLE001  the thread must live on
                self._failed(error)
            finally:
                with self._lock:
                    self._open -= 1

    def settle(self, seconds: float) -> bool:
        """Wait until all work is done; false where it is not done within `seconds`."""
        deadline = time.monotonic() + seconds
        while self._open:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        return True
