"""EFFECT: does a list of jobs in as many processes as there are processors.

The processes are forks of this one and know everything it knows; they send back plain values. A job whose result does
not arrive, because its fork was killed or there is no memory, is done by this process: no job is ever left out.
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

#: The least jobs for which a fork pays.
EACH = 48
#: The most processes, however many processors there are: work that all jobs share is not done faster by more.
MOST = 16


def map_in_processes(jobs: Sequence[Job], work: Callable[[Job], Found], *, processes: int | None = None) -> list[Found]:
    """The results of `work` for each job, in the order of the jobs.

    Args:
        jobs: any values; they are not sent anywhere.
        work: gives a value that `marshal` takes: tuples, lists, strings, numbers, `None`.
        processes: how many processes work, this one included; by default as many as pay.
    """
    # the first job is done before any fork: it loads the modules that all jobs need
    found = [work(job) for job in jobs[:1]]
    rest = range(len(found), len(jobs))
    count = max(1, min(len(rest), _worthwhile(len(rest)) if processes is None else processes))
    # neighbouring jobs are alike, so the shares are dealt out in turn and take equally long
    shares = [rest[turn::count] for turn in range(count)]
    # The garbage collector writes to every object it looks at, which would copy each page that a fork shares. One
    # process spends up to a sixth of its time on it, for nothing: what the jobs make is needed to the end.
    collecting = gc.isenabled()
    gc.freeze()
    gc.disable()
    try:
        results = dict(enumerate(found)) | _results(jobs, work, shares)
    finally:
        gc.unfreeze()
        if collecting:
            gc.enable()
    return [results[index] if index in results else work(job) for index, job in enumerate(jobs)]


def _results(jobs: Sequence[Job], work: Callable[[Job], Found], shares: list[range]) -> dict[int, Found]:
    """The results by the index of their job; this process does the first share, a fork each of the others."""
    forks: list[tuple[range, _Fork]] = []
    try:
        for share in shares[1:]:
            fork = _Fork.begin([jobs[index] for index in share], work)
            if fork is not None:
                forks.append((share, fork))
        results = {index: work(jobs[index]) for index in shares[0]}
        for share, fork in forks:
            results |= zip(share, fork.finish(len(share)), strict=False)
        return results
    finally:
        for _, fork in forks:
            fork.end()


def _worthwhile(jobs: int) -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    processors = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return min(processors, MOST, jobs // EACH)


class _Fork:
    """A fork that does some of the jobs, and the pipe through which it sends the results."""

    def __init__(self, pid: int, pipe: int) -> None:
        self._pid, self._pipe = pid, pipe
        self._at_work = True

    @classmethod
    def begin(cls, jobs: Sequence[Job], work: Callable[[Job], object]) -> _Fork | None:
        """A fork that is at work; `None` where the system gives no further process or pipe."""
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
        """The results of a number of jobs; none unless all have arrived."""
        chunks: list[bytes] = []
        while chunk := os.read(self._pipe, 1 << 20):
            chunks.append(chunk)
        self._at_work = False
        try:
            sent = marshal.loads(b"".join(chunks))  # noqa: S302  the bytes come from a fork of this process
        except (EOFError, ValueError, TypeError):
            return []
        return sent if isinstance(sent, list) and len(sent) == expected else []

    def end(self) -> None:
        """Closes the pipe, and ends the fork where it is still at work."""
        os.close(self._pipe)
        try:
            if self._at_work:
                os.kill(self._pid, 9)
            os.waitpid(self._pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # the caller of this process ignores SIGCHLD, and children are not waited for


def _work(jobs: Sequence[Job], work: Callable[[Job], object], sending: int) -> None:
    """Does the jobs of a fork, sends the results, and ends the process."""
    try:
        left = memoryview(marshal.dumps([work(job) for job in jobs]))
        while left:
            left = left[os.write(sending, left) :]
    finally:
        # the fork must never go on as if it were the process it was forked from
        os._exit(0)
