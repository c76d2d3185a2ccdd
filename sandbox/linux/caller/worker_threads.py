"""EFFECT: threads for what must not stop the doors.

That is a read of a caller's memory, which may wait for the doors themselves, and work that waits for a disk.
"""

from __future__ import annotations

import _thread
import time

# the modules on top of these, `threading` and `queue`, run hooks in every fork: half a millisecond of each task
from _queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class WorkerThreads:
    """Work done by threads of its own, each piece once; with one thread, in order.

    Args:
        threads: at most so many, started when there is work.
        failed: called with what a piece of work raised; the piece answers its asker itself.
    """

    def __init__(self, threads: int, failed: Callable[[Exception], object]) -> None:
        self._wanted = threads
        self._failed = failed
        self._started = 0
        self._queue: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._open = 0
        self._lock = _thread.allocate_lock()

    def do(self, work: Callable[[], object]) -> None:
        """Have `work` done soon.

        Raises:
            RuntimeError: there is no thread for it.
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
        except RuntimeError:  # the user has no process left; the threads there are will do
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
        """Wait until all is done; false if it is not by then."""
        deadline = time.monotonic() + seconds
        while self._open:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        return True
