"""EFFECT: the processor time and the peak memory of a task: measured by process 1, and reckoned by the warden."""

from __future__ import annotations

import resource
import struct
from typing import NamedTuple

_PACKED = struct.Struct("<dq")
_KIB = 1024


class ResourceUsage(NamedTuple):
    """Seconds of processor time, and the peak in KiB."""

    cpu_seconds: float
    peak_kib: int

    def packed(self) -> bytes:
        """The usage as process 1 tells it."""
        return _PACKED.pack(*self)

    @classmethod
    def unpacked(cls, data: bytes) -> ResourceUsage | None:
        """The usage that process 1 told; `None` when the bytes are none."""
        return cls(*_PACKED.unpack(data)) if len(data) == _PACKED.size else None

    def cpu_ms_since(self, before: ResourceUsage) -> float:
        """The processor time of the command, in milliseconds."""
        return max(0.0, (self.cpu_seconds - before.cpu_seconds) * 1000)

    def peak_bytes_since(self, before: ResourceUsage) -> int | None:
        """The peak of the command; `None` where process 1 needed more before it.

        Process 1 starts at the forked interpreter's own peak: only a higher one is the command's.
        """
        return self.peak_kib * _KIB if self.peak_kib > before.peak_kib else None


def of(usage: resource.struct_rusage) -> ResourceUsage:
    """The usage of one process, as the kernel gives it."""
    return ResourceUsage(usage.ru_utime + usage.ru_stime, usage.ru_maxrss)


def own() -> ResourceUsage:
    """The usage of this process alone."""
    return of(resource.getrusage(resource.RUSAGE_SELF))


def own_and_reaped() -> ResourceUsage:
    """The usage of this process and of all it waited for.

    The kernel adds the usage of a process only to one that waits for it (getrusage(2)).
    """
    mine, rest = own(), of(resource.getrusage(resource.RUSAGE_CHILDREN))
    return ResourceUsage(mine.cpu_seconds + rest.cpu_seconds, max(mine.peak_kib, rest.peak_kib))
