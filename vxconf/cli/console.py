"""EFFECT: what commands write to a terminal or a pipe, and the exit statuses they end with."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


OK, FOUND, USAGE, NOT_RUN = 0, 1, 2, 125


class UsageError(Exception):
    """Wrong usage: one line, status 2."""


class Unwritten(Exception):
    """Data that could not be put where it was to go, a full disk for one."""

    def __init__(self, fault: OSError) -> None:
        super().__init__(f"standard output cannot be written: {(fault.strerror or str(fault)).lower()}")


def out(text: str) -> None:
    """Data."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise Unwritten(fault) from None


def flush() -> None:
    """Sees all data off."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise Unwritten(fault) from None


def discard_output() -> None:
    """Lets nobody try again to write what could not be written, the interpreter at its end for one."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def err(text: str) -> None:
    """Everything else; where nobody can be told, nobody is."""
    try:
        sys.stderr.write(text)
    except BrokenPipeError:
        raise
    except OSError:
        pass


def is_coloured(stream: object) -> bool:
    """Whether a stream is a terminal whose user has not asked for plain text."""
    isatty: Callable[[], bool] | None = getattr(stream, "isatty", None)
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and isatty is not None and isatty()
