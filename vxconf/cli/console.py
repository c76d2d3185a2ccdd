"""EFFECT: the output of the commands to a terminal or a pipe, and their exit statuses."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


OK, FOUND, USAGE, NOT_RUN = 0, 1, 2, 125


class UsageError(Exception):
    """A command line that is wrong: the message is one line, the exit status 2."""


class Unwritten(Exception):
    """Data that could not be written, for example to a full disk."""

    def __init__(self, fault: OSError) -> None:
        super().__init__(f"standard output cannot be written: {(fault.strerror or str(fault)).lower()}")


def out(text: str) -> None:
    """Writes data to standard output.

    Raises:
        Unwritten: the data cannot be written.
        BrokenPipeError: the reader of the pipe is gone.
    """
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise Unwritten(fault) from None


def flush() -> None:
    """Writes out all data that is still buffered; raises as `out`."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise Unwritten(fault) from None


def discard_output() -> None:
    """Points standard output to nowhere, so that the interpreter does not try at its end to write the buffer again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def err(text: str) -> None:
    """Writes to standard error, where everything but data goes; text that cannot be written is dropped.

    Names of files and tasks may hold anything, and nothing of theirs is obeyed.
    """
    from vxconf.diagnostics.printable import harmless

    raw(harmless(text))


def raw(text: str) -> None:
    """Writes to standard error as `err` does, with the characters that a terminal obeys: colours of our own."""
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
