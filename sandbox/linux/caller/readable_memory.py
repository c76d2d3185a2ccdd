"""EFFECT: bytes of a caller's memory, as its call will read them, and what it means where they cannot be read.

An address where the caller has no memory fails its call, and that answer is given without a hole. Memory that is there
and cannot be read here may hold anything: memory that no other process reads (memfd_secret(2)), pages of a device, a
file that became shorter and may grow again.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Self

from sandbox.linux.caller.links_as_caller import CallFails, Unread, unread

if TYPE_CHECKING:
    from types import TracebackType

# the top byte may be a tag, which the kernel passes over (PR_SET_TAGGED_ADDR_CTRL, ARCH_ENABLE_TAGGED_ADDR); without
# one no program has memory so high
_UNTAGGED = (1 << 56) - 1


class CallerMemory:
    """The memory of a caller that stands still in a call.

    Raises:
        Gone, Unread: it cannot be read at all.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        try:
            self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise unread(error, f"the memory of process {pid}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._memory)

    def text(self, address: int, limit: int) -> bytes:
        """A text up to its end; the kernel reads at most `limit` bytes of one.

        Raises:
            CallFails: no memory is there, or the text has no end within the limit.
            Unread: what is there cannot be read.
        """
        found = self._read(address, limit)
        end = found.find(b"\0")
        if end >= 0:
            return found[:end]
        if len(found) == limit:
            raise CallFails(errno.ENAMETOOLONG)
        raise self._lack(address + len(found))

    def exactly(self, address: int, size: int) -> bytes:
        """Just so many bytes.

        Raises:
            CallFails: no memory is there.
            Unread: what is there cannot be read.
        """
        found = self._read(address, size) if size else b""
        if len(found) < size:
            raise self._lack(address + len(found))
        return found

    def _read(self, address: int, size: int) -> bytes:
        try:
            return os.pread(self._memory, size, address & _UNTAGGED)
        except OSError as error:
            if error.errno in (errno.EIO, errno.EFAULT):
                return b""
            raise unread(error, f"the memory of process {self._pid}") from error

    def _lack(self, address: int) -> CallFails | Unread:
        """Why the byte at an address could not be read."""
        try:
            with open(f"/proc/{self._pid}/maps", "rb") as file:
                ranges = [line.partition(b" ")[0].partition(b"-") for line in file]
        except OSError as error:
            return unread(error, f"the memory of process {self._pid}")
        at = address & _UNTAGGED
        if any(int(start, 16) <= at < int(end, 16) for start, _, end in ranges):
            return Unread("memory of the caller's that nobody else may read", errno.EFAULT)
        return CallFails(errno.EFAULT)
