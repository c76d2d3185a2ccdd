"""EFFECT: one list of jobs, done by as many processes as there are processors; the results as one would give them.

The others are forks: they know what this process knows, and send what they find as plain values. What one of them
does not send, because it was killed or the machine is full, is done here: no job is ever left out.
"""

from __future__ import annotations

import gc
import marshal
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    Job = TypeVar("Job")
    Found = TypeVar("Found")

#: Jobs that are worth the start of a process.
EACH = 48
#: Processes, however many processors there are: what is common to all jobs is not done faster by more.
MOST = 16


def map_in_processes(jobs: Sequence[Job], work: Callable[[Job], Found], *, processes: int | None = None) -> list[Found]:
    """What `work` finds for each job, in their order.

    Args:
        jobs: any values; they stay in their process or its forks.
        work: gives what `marshal` takes: tuples, lists, strings, numbers, `None`.
        processes: this one and its forks; as many as pay when `None`.
    """
    # the first one loads what all of them need, once
    found = [work(job) for job in jobs[:1]]
    rest = range(len(found), len(jobs))
    count = min(len(rest), _worthwhile(len(rest)) if processes is None else processes)
    if count < 2:  # noqa: PLR2004  this process alone
        return found + [work(jobs[index]) for index in rest]
    # neighbours are alike: dealt out in turn, the shares take equally long
    shares = [rest[turn::count] for turn in range(count)]
    results: dict[int, Found] = dict(enumerate(found))
    forks: list[tuple[range, _Fork]] = []
    # a collection writes to every object it looks at, and each page that a fork shares would be copied for it
    gc.freeze()
    gc.disable()
    try:
        for share in shares[1:]:
            fork = _Fork.begin([jobs[index] for index in share], work)
            if fork is not None:
                forks.append((share, fork))
        results |= {index: work(jobs[index]) for index in shares[0]}
        for share, fork in forks:
            results |= zip(share, fork.finish(len(share)), strict=False)
    finally:
        for _, fork in forks:
            fork.end()
        gc.enable()
        gc.unfreeze()
    return [results[index] if index in results else work(job) for index, job in enumerate(jobs)]


def _worthwhile(jobs: int) -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    processors = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return min(processors, MOST, jobs // EACH)


class _Fork:
    """A process that does some of the jobs, and the pipe it sends what it found through."""

    def __init__(self, pid: int, pipe: int) -> None:
        self._pid, self._pipe = pid, pipe
        self._at_work = True

    @classmethod
    def begin(cls, jobs: Sequence[Job], work: Callable[[Job], object]) -> _Fork | None:
        """One that is at work; `None` where there can be no other process."""
        try:
            receiving, sending = os.pipe()
        except OSError:
            return None
        try:
            pid = os.fork()
        except OSError:
            os.close(receiving)
            os.close(sending)
            return None
        if pid == 0:
            _work(jobs, work, sending)
        os.close(sending)
        return cls(pid, receiving)

    def finish(self, expected: int) -> list[Any]:
        """What it found for that many jobs, nothing unless it is all there."""
        chunks: list[bytes] = []
        while chunk := os.read(self._pipe, 1 << 20):
            chunks.append(chunk)
        self._at_work = False
        try:
            sent = marshal.loads(b"".join(chunks))  # noqa: S302  our own fork's, through a pipe of ours
        except (EOFError, ValueError, TypeError):
            return []
        return sent if isinstance(sent, list) and len(sent) == expected else []

    def end(self) -> None:
        """Sees to it that nothing of it is left."""
        os.close(self._pipe)
        try:
            if self._at_work:
                os.kill(self._pid, 9)
            os.waitpid(self._pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # whoever started this process has it not wait for its children


def _work(jobs: Sequence[Job], work: Callable[[Job], object], sending: int) -> None:
    """The whole life of a fork."""
    try:
        left = memoryview(marshal.dumps([work(job) for job in jobs]))
        while left:
            left = left[os.write(sending, left) :]
    finally:
        # whatever happened: it must not go on as if it were the process it was forked from
        os._exit(0)
