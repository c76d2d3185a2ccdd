"""EFFECT: whether a process of a task waits for input at the end of a pipe, so that a terminal is read for it alone.

A pipe does not tell its writer that a reader waits. The kernel tells of each thread the call it stands in, and that
call's arguments (proc_pid_syscall(5)); who waits for several descriptors is asked for the list.
"""

from __future__ import annotations

import contextlib
import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from sandbox.linux.kernel.syscall_numbers import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_POLLFD = struct.Struct("<ihh")
_POLLIN = 1
# The most descriptors of one call that are looked at.
_MOST = 1024


class _Call(NamedTuple):
    """A call that a thread stands in; `task` is the thread's directory below `/proc`."""

    task: str
    arguments: tuple[int, ...]


def process_above(command: int) -> int:
    """The number of a process's parent; 0 where it cannot be told."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{command}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])
    return 0


def is_awaited(first: int, pipe: os.stat_result) -> bool | None:
    """Whether a process waits to read from a pipe; `None` where nothing can be told of any, as before it executes.

    Args:
        first: a process, as the host numbers it, that is looked at with all that descend from it.
        pipe: what fstat(2) says of the pipe.
    """
    names = ARCHITECTURES[os.uname().machine].names
    seen = False
    for task in _threads(first):
        try:
            with open(f"{task}/syscall", encoding="ascii") as file:
                words = file.read().split()
        except OSError:  # it has ended, or keeps to itself, as process 1 does
            continue
        seen = True
        look = _WAITS.get(names.get(int(words[0]), "")) if words[0].isdecimal() else None
        with contextlib.suppress(OSError, ValueError, struct.error):  # it has ended meanwhile, or runs on
            if look is not None and look(_Call(task, tuple(int(word, 16) for word in words[1:7])), pipe):
                return True
    return False if seen else None


def _threads(first: int) -> Iterator[str]:
    """The directories below `/proc` of the threads of a process and of all its descendants."""
    left = [str(first)]
    while left:
        process = left.pop()
        try:
            threads = os.listdir(f"/proc/{process}/task")
        except OSError:
            continue
        for thread in threads:
            task = f"/proc/{process}/task/{thread}"
            yield task
            with contextlib.suppress(OSError), open(f"{task}/children", encoding="ascii") as file:
                left += file.read().split()


def _is_pipe(task: str, fd: int, pipe: os.stat_result) -> bool:
    with contextlib.suppress(OSError):
        status = os.stat(f"{task}/fd/{fd}")
        return (status.st_dev, status.st_ino) == (pipe.st_dev, pipe.st_ino)
    return False


def _first_argument(call: _Call, pipe: os.stat_result) -> bool:
    return _is_pipe(call.task, call.arguments[0], pipe)


def _second_argument(call: _Call, pipe: os.stat_result) -> bool:
    return _is_pipe(call.task, call.arguments[1], pipe)


def _memory(call: _Call, place: int, size: int) -> bytes:
    if not place:
        return b""
    memory = os.open(f"{call.task}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(memory, size, place)
    finally:
        os.close(memory)


def _poll(call: _Call, pipe: os.stat_result) -> bool:
    place, count = call.arguments[:2]
    rows = _memory(call, place, min(count, _MOST) * _POLLFD.size)
    return any(
        events & _POLLIN and fd >= 0 and _is_pipe(call.task, fd, pipe) for fd, events, _ in _POLLFD.iter_unpack(rows)
    )


def _select(call: _Call, pipe: os.stat_result) -> bool:
    count, place = min(call.arguments[0], _MOST), call.arguments[1]
    bits = int.from_bytes(_memory(call, place, (count + 63) // 64 * 8), "little")
    return any(bits >> fd & 1 and _is_pipe(call.task, fd, pipe) for fd in range(count))


def _epoll(call: _Call, pipe: os.stat_result) -> bool:
    with open(f"{call.task}/fdinfo/{call.arguments[0]}", encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[:1] == ["tfd:"] and int(words[3], 16) & _POLLIN and _is_pipe(call.task, int(words[1]), pipe):
                return True
    return False


_WAITS: dict[str, Callable[[_Call, os.stat_result], bool]] = {
    **dict.fromkeys(("read", "readv", "preadv2", "splice", "tee"), _first_argument),
    "sendfile": _second_argument,
    **dict.fromkeys(("poll", "ppoll"), _poll),
    **dict.fromkeys(("select", "pselect6"), _select),
    **dict.fromkeys(("epoll_wait", "epoll_pwait", "epoll_pwait2"), _epoll),
}
