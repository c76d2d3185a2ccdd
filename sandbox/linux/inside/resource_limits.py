"""EFFECT: what a task may take of the machine, so that one that takes without end leaves the rest standing.

No config says any of it: half of what there is, for one task, is more than any needs.
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
# of a thousand: before the kernel ends anything else for want of memory, that has to hold half of all there is
# more than a process of the task
_SOONER = 500
_SOONEST = 1000
# from here on the limit counts the processes of one user namespace, which are the task's own
_COUNTED_APART = (5, 14)


def go_first() -> None:
    """Have the kernel, when memory runs out, end this process and those it starts before others.

    The executor, its supervisor and its wardens are among those others: who reports must not be starved by a task.
    """
    with contextlib.suppress(OSError, ValueError):  # a protection of the run's report, no wall
        own = os.open(_OWN, os.O_RDWR | os.O_CLOEXEC)
        try:
            now = int(os.read(own, _WORD))
            os.pwrite(own, b"%d" % min(_SOONEST, now + _SOONER), 0)
        finally:
            os.close(own)


def limit_processes() -> None:
    """Let this user namespace have half of the processes this user may have, with the task's threads among them.

    The kernel holds no task to it that is the machine's root; such a one ends with its time.
    """
    if half := _half():
        resource.setrlimit(resource.RLIMIT_NPROC, (half, half))


def most_for_a_task() -> int:
    """How many processes and threads a task of this process's gets at most; 0 where the kernel holds it to none."""
    return _half() if os.getuid() else 0


def ended_for_memory() -> int:
    """How many processes the kernel has ended for want of memory since this machine started."""
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
    """How many processes and threads this machine, or the control group this is in, has at most; 0 if nobody tells.

    The supervisor has it ready before it forks.
    """
    places = ["/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max", *_groups()]
    return min((number for place in places if (number := _number(place)) > 0), default=0)


def _groups() -> list[str]:
    """Where each control group of this process, from its own up, tells of its limit."""
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
    """What a file says; 0 for no limit, or no file."""
    try:
        with open(place, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0
