"""Signals that whoever started the tests ignores, as `nohup` does: what the tests start ignores none of them."""

from __future__ import annotations

import os
import signal

#: Told to the workers, which pytest starts once nothing is ignored any more.
_PASSED_OVER = "TESTS_PASS_OVER_SIGNALS"
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


def hand_on_none_ignored() -> None:
    """Has a handler do nothing about each signal that is ignored.

    To ignore a signal is inherited by every program that is started, and a shell among them can set no trap for it; a
    handler is not.
    """
    told = os.environ.get(_PASSED_OVER)
    ignored = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_IGN]
    if told is None:
        os.environ[_PASSED_OVER] = " ".join(str(int(number)) for number in ignored)
    else:
        ignored = [signal.Signals(int(number)) for number in told.split()]
    for number in ignored:
        signal.signal(number, _pass_over)


def _pass_over(_number: int, _frame: object) -> None:
    """Nothing, as whoever started the tests wanted it."""
