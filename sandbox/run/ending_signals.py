"""Signals that end a process unless it said otherwise; an early one ends a run before its command starts."""

from __future__ import annotations

import signal

# signal(7): ignored, or a stop that nothing is there to be stopped by yet
_OTHERS = frozenset(
    (
        signal.SIGCHLD,
        signal.SIGCONT,
        signal.SIGURG,
        signal.SIGWINCH,
        signal.SIGSTOP,
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
    )
)


def ends(number: int) -> bool:
    """Whether a signal ends a process that has no handler for it."""
    return number not in _OTHERS
