"""Notes on what a task ran out of. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox.contract.results import Hint

if TYPE_CHECKING:
    from sandbox.judge.failure_facts import Aftermath

_NO_PROCESS = re.compile(
    r"fork\b[\s\S]{0,80}?resource temporarily unavailable|(?:can ?not|can.t) fork|fork failed|unable to fork"
    r"|can.t start new thread|(?:unable|failed) to create (?:native |new )?thread|pthread_create failed"
    r"|\bEAGAIN\b[^\n]*\b(?:spawn|fork)|\b(?:spawn|fork)\w*\b[^\n]*\bEAGAIN\b",
    re.IGNORECASE,
)


def exhausted(after: Aftermath) -> list[Hint]:
    """Notes on the processes one task gets, and on the memory of the machine."""
    found = []
    if _NO_PROCESS.search(after.printed) and (most := after.processes()):
        found.append(
            f"one task gets {most} processes and threads, half of what this user may have: let it start fewer at once,"
            " or raise that limit (ulimit -u)"
        )
    if ended := after.starved():
        what = "a process" if ended == 1 else f"{ended} processes"
        found.append(
            f"this machine ran out of memory meanwhile, and the kernel ended {what}: run fewer tasks at once, or let"
            " the task hold less"
        )
    return [Hint(line=line) for line in found]
