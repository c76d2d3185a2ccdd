"""EFFECT: the standard streams as process 1 accepts them: pipes, and the null device of the task's own `/dev`.

A descriptor of the host's would come in with its own mount and mode, past every wall that is a mount.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_NULL_DEVICE = os.makedev(1, 3)


def is_null(fd: int) -> bool:
    """Whether a descriptor is of a null device."""
    status = os.fstat(fd)
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == _NULL_DEVICE


def accepted(streams: Iterable[int]) -> list[int]:
    """The streams, once the task's own `/dev` stands, with its null device in place of the host's.

    Raises:
        OSError: a stream is neither a pipe nor a null device.
    """
    return [_accepted(fd) for fd in streams]


def _accepted(fd: int) -> int:
    if is_null(fd):
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        raise OSError("a standard stream is no pipe")
    return fd
