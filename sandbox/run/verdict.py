"""From what an attempt told and the judge found to one result."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from sandbox.contract.results import Hint, RunResult, refusals_of

if TYPE_CHECKING:
    from sandbox.contract.errors import SandboxError
    from sandbox.contract.results import Trace, Violation

NOT_STARTED = 125
TIMED_OUT = 124


def not_started(error: SandboxError) -> RunResult:
    """The result of a run that never began."""
    return RunResult(
        sandboxed=True,
        exit_code=NOT_STARTED,
        trace_reason="nothing was run",
        refusals=refusals_of(error),
    )


def exit_code(own: int | None, violations: tuple[Violation, ...], trace: Trace, *, timed_out: bool) -> int:
    """The run's exit code; `own` is the command's, `None` where its end was not seen.

    A pass needs a command that ended with 0, no violation and a complete trace, unless no trace was asked for.
    """
    if timed_out:
        return TIMED_OUT
    if own == 0 and (violations or trace == "partial"):
        return 1
    return NOT_STARTED if own is None else own


def unseen(own: int | None, trace: Trace, why: str) -> tuple[Hint, ...]:
    """What there is to say of a command that passed while not all it did was seen."""
    if own != 0 or trace != "partial":
        return ()
    return (Hint(line=f"the command passed, but not all it did was seen: {why}"),)


def own_status(status: int) -> tuple[int, str | None]:
    """A wait status as a shell says it, and the signal that ended the command."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code, None
    try:
        return 128 - code, signal.Signals(-code).name
    except ValueError:  # a real-time signal
        return 128 - code, f"SIG{-code}"
