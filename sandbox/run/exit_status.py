"""Exit statuses: a command's own as a shell says it, and those of runs that never began or took too long."""

from __future__ import annotations

import os
import signal

NOT_STARTED = 125
TIMED_OUT = 124
#: The lowest status a shell answers with for a command it could not execute; statuses for signals are above it.
CANNOT_EXECUTE = 126


def own_status(status: int) -> tuple[int, str | None]:
    """A wait status as a shell says it, and the signal that ended the command."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code, None
    try:
        return 128 - code, signal.Signals(-code).name
    except ValueError:  # a real-time signal
        return 128 - code, f"SIG{-code}"
