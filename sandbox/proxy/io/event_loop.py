"""EFFECT: coroutines over sockets that never block: what a front is made of.

asyncio would do the same, but importing it takes longer than all else in a process as short-lived as a task. Sockets
are watched once each: a call is tried first and waits only when it would block, so an event for which nobody waits
is one that the next try will meet by itself.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import threading
import time
import types
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from sandbox.proxy.io import event_poller

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

    from sandbox.proxy.io.event_poller import Poller

T = TypeVar("T")

_READ, _WRITE, _SLEEP, _TURN, _JOIN, _ANY = range(6)
_EVENTS = (event_poller.READABLE, event_poller.WRITABLE)
# timers set after which those that are of no use any more are thrown away
_SWEEP = 4096

_Request = tuple[int, Any]


class _Timer:
    """A moment at which a task goes on, or has been at something for too long."""

    __slots__ = ("expires", "live", "task")

    def __init__(self, task: LoopTask, *, expires: bool) -> None:
        self.task = task
        self.expires = expires
        self.live = True


class Cancelled(BaseException):
    """Thrown into a task that is not wanted any more."""


@types.coroutine
def _wait(kind: int, what: Any = None) -> Generator[_Request, Any, Any]:
    return (yield (kind, what))


class LoopTask:
    """A coroutine that runs by itself; what it raised is kept for whoever joins it."""

    __slots__ = ("_coroutine", "_joined", "_loop", "_unwanted", "done", "error", "result", "waiting")

    def __init__(self, loop: EventLoop, coroutine: Coroutine[_Request, Any, Any]) -> None:
        self._loop = loop
        self._coroutine = coroutine
        self._joined: list[LoopTask] = []
        self._unwanted = False
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.waiting: _Request | None = None

    def step(self, why: BaseException | _Timer | None = None) -> None:
        """Run to the next wait, or to the end."""
        if isinstance(why, _Timer):
            if not why.live:  # it was done in time after all
                return
            why.live = False
        error = TimeoutError() if isinstance(why, _Timer) else why
        self._loop.current = self
        if self.waiting is not None:
            self._loop.unpark(self)
        if self._unwanted and error is None:
            # it was about to go on when it was cancelled
            error, self._unwanted = Cancelled(), False
        try:
            wanted = self._coroutine.throw(error) if error is not None else self._coroutine.send(None)
        except StopIteration as stop:
            self.result = stop.value
        except Exception as raised:  # noqa: BLE001  whoever joins it gets it
            self.error = raised
        except Cancelled as raised:
            self.error = raised
        else:
            self.waiting = wanted
            self._loop.park(self, wanted)
            return
        self.done = True
        self._loop.ended(self)
        for task in self._joined:
            self._loop.ready(task)
        self._joined.clear()

    def cancel(self) -> None:
        """End it where it waits; nothing happens to one that has ended."""
        if not self.done:
            self._unwanted = True
            self._loop.unpark(self)
            self._loop.ready(self)

    async def join(self) -> Any:
        """What it returned, once it has; what it raised is raised."""
        while not self.done:
            await _wait(_JOIN, self)
        if isinstance(self.error, Cancelled):
            raise ConnectionAbortedError("it was given up")
        if self.error is not None:
            raise self.error
        return self.result

    def add_joined(self, task: LoopTask) -> None:
        """Have `task` go on when this one ends."""
        self._joined.append(task)

    def remove_joined(self, task: LoopTask) -> None:
        """No longer."""
        with contextlib.suppress(ValueError):
            self._joined.remove(task)


class EventLoop:
    """Runs tasks until it is stopped.

    Args:
        waits: with what; the quickest there is unless told.
    """

    def __init__(self, waits: Poller | None = None) -> None:
        self._poller = waits or event_poller.best()
        self._waiters: dict[int, list[LoopTask | None]] = {}
        self._ready: deque[tuple[LoopTask, BaseException | _Timer | None]] = deque()
        self._timers: list[tuple[float, int, _Timer]] = []
        self._count = 0
        self.current: LoopTask | None = None
        self._stopped = False
        self.tasks: set[LoopTask] = set()
        self._done: deque[Callable[[], object]] = deque()
        reading, self._ring = os.pipe()
        for fd in (reading, self._ring):
            os.set_blocking(fd, False)
        self._bell = reading
        self._poller.bell(reading)

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> LoopTask:
        """Have a coroutine run beside the others, from the next turn on."""
        task = LoopTask(self, coroutine)
        self.tasks.add(task)
        self.ready(task)
        return task

    def begin(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Have a coroutine run up to its first wait, and from then on beside the others."""
        task, within = LoopTask(self, coroutine), self.current
        self.tasks.add(task)
        task.step()
        self.current = within

    def ended(self, task: LoopTask) -> None:
        """It needs to be remembered no more."""
        self.tasks.discard(task)

    def ready(self, task: LoopTask, error: BaseException | None = None) -> None:
        """Have a task go on in the next turn."""
        self._ready.append((task, error))

    def stop(self) -> None:
        """Return from `run` after this turn."""
        self._stopped = True

    def run(self) -> None:
        """Until `stop` is called."""
        while not self._stopped:
            self._turn()

    def settle(self, turns: int) -> bool:
        """Run until nothing is left to do at once; false when `turns` were not enough."""
        return any(not self._turn(0.0) and not self._ready for _ in range(turns))

    def close(self) -> None:
        """End every task where it stands, and let go of what the loop holds."""
        while self.tasks:
            for task in tuple(self.tasks):
                task.cancel()
            self._turn(0.0)
        self._poller.close()
        os.close(self._bell)
        os.close(self._ring)

    def _turn(self, timeout: float | None = None) -> bool:
        events = self._poller.poll(self._timeout() if timeout is None else timeout)
        for fd, event in events:
            if fd == self._bell:
                self._answer_bell()
            else:
                self._wake(fd, event)
        if self._timers:
            self._expire_timers(time.monotonic())
        for _ in range(len(self._ready)):
            task, error = self._ready.popleft()
            if not task.done:
                task.step(error)
        return bool(events)

    def _timeout(self) -> float:
        if self._ready:
            return 0.0
        return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else -1.0

    def _wake(self, fd: int, event: int) -> None:
        if waiters := self._waiters.get(fd):
            for index, mask in enumerate(_EVENTS):
                task = waiters[index]
                if task is not None and event & mask:
                    waiters[index] = None
                    self._ready.append((task, None))

    def _expire_timers(self, now: float) -> None:
        while self._timers and self._timers[0][0] <= now:
            _, _, timer = heapq.heappop(self._timers)
            if timer.live:
                self.unpark(timer.task)
                self._ready.append((timer.task, timer if timer.expires else None))

    def _set_timer(self, seconds: float, *, expires: bool) -> _Timer:
        if self.current is None:
            raise RuntimeError("no task runs")
        timer = _Timer(self.current, expires=expires)
        self._count += 1
        heapq.heappush(self._timers, (time.monotonic() + seconds, self._count, timer))
        if self._count % _SWEEP == 0:
            # most are not needed any more long before their moment
            self._timers = [one for one in self._timers if one[2].live]
            heapq.heapify(self._timers)
        return timer

    def _answer_bell(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._bell, 4096)
        while self._done:
            self._done.popleft()()

    def park(self, task: LoopTask, wanted: _Request) -> None:
        """Remember what a task waits for."""
        kind, what = wanted
        if kind in (_READ, _WRITE):
            waiters = self._waiters.get(what)
            if waiters is None:  # closed meanwhile
                self.ready(task, ConnectionAbortedError("it was closed"))
            else:
                waiters[kind] = task
                self._poller.want(what, _EVENTS[kind])
        elif kind == _SLEEP:
            pass
        elif kind == _TURN:
            self.ready(task)
        elif kind == _JOIN:
            what.add_joined(task)
        else:
            for one in what:
                one.add_joined(task)

    def unpark(self, task: LoopTask) -> None:
        """Forget what it waits for."""
        if task.waiting is None:
            return
        kind, what = task.waiting
        task.waiting = None
        if kind in (_READ, _WRITE) and (waiters := self._waiters.get(what)):
            waiters[kind] = None
        elif kind == _JOIN:
            what.remove_joined(task)
        elif kind == _ANY:
            for one in what:
                one.remove_joined(task)

    def watch(self, fd: int) -> None:
        """Know a descriptor that does not block, until `forget`."""
        self._poller.watch(fd)
        self._waiters[fd] = [None, None]

    def forget(self, fd: int) -> None:
        """Before it is closed; whoever waits for it is told."""
        waiters = self._waiters.pop(fd, None)
        if waiters is None:
            return
        self._poller.forget(fd)
        for task in waiters:
            if task is not None:
                self.ready(task, ConnectionAbortedError("it was closed"))

    async def readable(self, fd: int) -> None:
        """Wait until a read is worth another try."""
        await _wait(_READ, fd)

    async def writable(self, fd: int) -> None:
        """Wait until a write is worth another try."""
        await _wait(_WRITE, fd)

    async def turn(self) -> None:
        """Let the others go on."""
        await _wait(_TURN)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        timer = self._set_timer(seconds, expires=False)
        try:
            await _wait(_SLEEP)
        finally:
            timer.live = False

    async def any_done(self, tasks: list[LoopTask]) -> None:
        """Wait until one of some tasks has ended."""
        while not any(task.done for task in tasks):
            await _wait(_ANY, tasks)

    async def within(self, seconds: float, work: Awaitable[T]) -> T:
        """What `work` comes to.

        Raises:
            TimeoutError: it took longer, and was given up.
        """
        timer = self._set_timer(seconds, expires=True)
        try:
            return await work
        finally:
            timer.live = False

    def call_from_thread(self, work: Callable[[], object]) -> None:
        """Have the loop call `work`, from any thread."""
        self._done.append(work)
        with contextlib.suppress(BlockingIOError):
            os.write(self._ring, b"\0")

    async def thread(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises in a thread of its own."""
        outcome: list[Any] = []

        def do() -> None:
            try:
                outcome.extend((work(), None))
            except BaseException as error:  # noqa: BLE001  handed on
                outcome.extend((None, error))
            self.call_from_thread(lambda: self.ready(waiting))

        waiting = LoopTask(self, _nothing())
        threading.Thread(target=do, daemon=True).start()
        await waiting.join()
        result, error = outcome
        if error is not None:
            raise error
        answer: T = result
        return answer


async def _nothing() -> None:
    """End at once."""
