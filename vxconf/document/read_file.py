"""A reader of files that may be anything: a directory, a pipe, a device, 50 MB. It gives bytes alone."""

from __future__ import annotations

import os
import stat

#: The most bytes that are read; a file of 10,000 tasks has about 2 MiB.
LIMIT = 8 * 1024 * 1024

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class ReadError(Exception):
    """A file that cannot be read.

    Attributes:
        message: the rest of a sentence whose subject is the file, such as `is a directory`.
        help: advice about it.
    """

    def __init__(self, message: str, help: str) -> None:  # noqa: A002  the name the diagnostics use
        super().__init__(message)
        self.message = message
        self.help = help


class Missing(ReadError):
    """A file that does not exist."""


class TooLarge(ReadError):
    """A file with more bytes than allowed."""


def read_file(path: str, *, limit: int = LIMIT) -> bytes:
    """The bytes of a regular file, links followed.

    Args:
        path: the path, absolute or from the working directory.
        limit: the most bytes the file may have.

    Raises:
        Missing: the file does not exist.
        TooLarge: the file has more bytes than `limit`.
        ReadError: the file is not a regular one, or may not be read.
    """
    try:
        # stat comes before open: opening some devices has effects
        _regular(os.stat(path).st_mode)
        # the name may be a pipe by now, and without O_NONBLOCK its open would block for ever
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise Missing("does not exist", "check the spelling of the path") from None
    except (OSError, ValueError) as fault:
        raise _unreadable(fault) from None
    try:
        info = os.fstat(descriptor)
        _regular(info.st_mode)
        if info.st_size > limit:
            raise _too_large(limit)
        return _drain(descriptor, limit)
    except OSError as fault:
        raise _unreadable(fault) from None
    finally:
        os.close(descriptor)


def _drain(descriptor: int, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    # st_size is 0 for a file in /proc, and too small for a file that grows
    while chunk := os.read(descriptor, 1 << 20):
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)


def _regular(mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    what = next((name for test, name in _KINDS if test(mode)), "not a regular file")
    raise ReadError(f"is {what}, not a file to read", "put a regular file in its place")


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"is larger than {limit // (1024 * 1024)} MiB", "split the tasks over several projects")


def _unreadable(fault: OSError | ValueError) -> ReadError:
    if isinstance(fault, ValueError):
        return ReadError("cannot be read: the path holds a NUL byte", "check the spelling of the path")
    reason = (fault.strerror or str(fault)).lower()
    return ReadError(f"cannot be read: {reason}", "check the permissions of the file and of its directories")
