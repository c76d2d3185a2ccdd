"""EFFECT: limits on what a task takes of the machine, so that a task without bounds leaves the rest standing.

No config names them: half of the machine is more than any task needs.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import resource

_OWN = "/proc/self/oom_score_adj"
_WORD = 16
_NUMBERS = "/proc/vmstat"
_ENDED = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)
# a score of 1000 stands for all memory (oom_score_adj in proc(5)): the kernel kills a process of the task first, unless
# another process holds half of the memory more
_SOONER = 500
_SOONEST = 1000
# the version from which RLIMIT_NPROC counts the processes of one user namespace, here the task's own (kernel/ucount.c)
_COUNTED_APART = (5, 14)


def be_killed_first() -> None:
    """Have the kernel kill this process and those it starts before others when memory runs out.

    The executor, its supervisor and its wardens are among the others: a task must not end who reports on it.
    """
    with contextlib.suppress(OSError, ValueError):  # the report is protected by this, and no wall rests on it
        own = os.open(_OWN, os.O_RDWR | os.O_CLOEXEC)
        try:
            now = int(os.read(own, _WORD))
            os.pwrite(own, b"%d" % min(_SOONEST, now + _SOONER), 0)
        finally:
            os.close(own)


def limit_processes() -> None:
    """Let this user namespace have half of the processes and threads that this user may have.

    The kernel does not hold the machine's root to the limit (getrlimit(2)); such a task is ended by its timeout.
    """
    if half := _half():
        resource.setrlimit(resource.RLIMIT_NPROC, (half, half))


def most_for_a_task() -> int:
    """The most processes and threads a task of this process's gets; 0 where the kernel holds it to no number."""
    return _half() if os.getuid() else 0


def ended_for_memory() -> int:
    """The number of processes that the kernel has killed for want of memory since this machine started."""
    with contextlib.suppress(OSError):
        numbers = os.open(_NUMBERS, os.O_RDONLY | os.O_CLOEXEC)
        try:
            found = _ENDED.search(os.read(numbers, 1 << 16))
        finally:
            os.close(numbers)
        return int(found[1]) if found else 0
    return 0


def _half() -> int:
    if kernel_version() < _COUNTED_APART:
        return 0
    known = [limit for limit in (*resource.getrlimit(resource.RLIMIT_NPROC), most_processes()) if limit > 0]
    return max(1, min(known) // 2) if known else 0


@functools.cache
def kernel_version() -> tuple[int, int]:
    """The first two numbers of the kernel's release."""
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


@functools.cache
def most_processes() -> int:
    """The most processes and threads of this machine, or of this process's control group; 0 where none is told.

    The supervisor has the answer ready before it forks.
    """
    places = ["/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max", *_groups()]
    return min((number for place in places if (number := _number(place)) > 0), default=0)


def _groups() -> list[str]:
    """The files in which each control group of this process tells its limit, its own group first (cgroups(7))."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds in ("", "pids"):
            parts = [part for part in path.split("/") if part not in ("", "..")]
            found += [
                "/".join(("/sys/fs/cgroup", *filter(None, (kinds,)), *parts[:depth], "pids.max"))
                for depth in range(len(parts), -1, -1)
            ]
    return found


def _number(place: str) -> int:
    """The number in a file; 0 for no limit, or no file."""
    try:
        with open(place, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0
