"""Reading a file that may be anything: a directory, a pipe, a device, 50 MB.

Only bytes here; what they mean is `document`'s business.
"""

from __future__ import annotations

import os
import stat

#: Bytes; a file of 10,000 tasks is about 2 MiB.
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
        message: a clause whose subject is the file, such as `is a directory`.
        help: what to do about it.
    """

    def __init__(self, message: str, help: str) -> None:  # noqa: A002  the name the diagnostics use
        super().__init__(message)
        self.message = message
        self.help = help


class Missing(ReadError):
    """There is no such file."""


class TooLarge(ReadError):
    """The file has more bytes than it may."""


def read_file(path: str, *, limit: int = LIMIT) -> bytes:
    """The bytes of a regular file, links followed.

    Args:
        path: as the operating system takes it.
        limit: the most bytes a file may have.

    Raises:
        Missing: there is no file of that name.
        ReadError: it is not a regular file, may not be read, or is too large.
    """
    try:
        # looked at before it is opened: opening some devices has effects
        _regular(os.stat(path).st_mode)
        # a name can change between the two calls; without O_NONBLOCK a pipe would then block for ever
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
    # a file in /proc says it has no bytes, and a growing one says too few
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
