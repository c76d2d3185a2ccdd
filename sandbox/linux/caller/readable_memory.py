"""EFFECT: bytes of a caller's memory, as its call will read them, and what it means where they cannot be read.

An address where the caller has no memory fails its call, and that answer is given without a hole. Memory that is there
and cannot be read here may hold anything: memory that no other process reads (memfd_secret(2)), pages of a device, a
file that became shorter and may grow again.
"""

from __future__ import annotations

import errno
import os

from sandbox.linux.caller.caller_memory import read_at
from sandbox.linux.caller.links_as_caller import CallFails, Unread, unread

# the top byte may be a tag, which the kernel passes over (PR_SET_TAGGED_ADDR_CTRL, ARCH_ENABLE_TAGGED_ADDR); without
# one no program has memory so high
_UNTAGGED = (1 << 56) - 1


class CallerMemory:
    """The memory of a caller that stands still in a call."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

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
        address &= _UNTAGGED
        try:
            try:
                return read_at(self._pid, address, size)
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.ENOSYS):
                    raise
                # a container's own filter may refuse that call and not this file
                return self._read_file(address, size)
        except OSError as error:
            if error.errno in (errno.EIO, errno.EFAULT):
                return b""
            raise unread(error, f"the memory of process {self._pid}") from error

    def _read_file(self, address: int, size: int) -> bytes:
        memory = os.open(f"/proc/{self._pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(memory, size, address)
        finally:
            os.close(memory)

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
