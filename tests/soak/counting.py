"""What an executor holds, and what is left on its machine, as numbers that can be compared."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One look.

    Attributes:
        processes: descendants of this process.
        strays: sandbox processes that are nobody's any more.
        mounts: mounts of this namespace that name a place of the workspace.
        temporary: names in the temporary root and the staging directory.
        groups: control groups below this process's own.
        blocks: pieces of memory the interpreter holds, which every object is or has some of.
        memory: resident set, KiB, without what the allocator keeps for later.
    """

    descriptors: int
    processes: int
    strays: int
    threads: int
    mounts: int
    temporary: int
    groups: int
    blocks: int
    memory: int

    def more_than(self, before: Held) -> dict[str, tuple[int, int]]:
        """What there is more of than before, memory left out: it is printed, and judged by eye and by its blocks."""
        mine, its = asdict(self), asdict(before)
        names = mine.keys() - {"memory", "blocks"}
        return {name: (its[name], mine[name]) for name in mine if name in names and mine[name] > its[name]}


def look(workspace: Path, temporary: Iterable[Path], marker: str) -> Held:
    """What there is now.

    Args:
        workspace: the root the tasks run in.
        temporary: directories whose names are counted, at any depth.
        marker: a text every command of the soak has in its command line.
    """
    gc.collect()
    _trim()
    below = descendants(os.getpid())
    return Held(
        descriptors=len(os.listdir("/proc/self/fd")),
        processes=len(below),
        strays=len(strays(marker) - set(below)),
        threads=len(os.listdir("/proc/self/task")),
        mounts=sum(str(workspace) in line for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines()),
        temporary=sum(len(dirs) + len(files) for place in temporary for _, dirs, files in os.walk(place)),
        groups=_groups(),
        blocks=sys.getallocatedblocks(),
        memory=memory(),
    )


def _trim() -> None:
    """Have the C library give back what it keeps; how much that is depends on how threads met, not on what is held."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def memory() -> int:
    """This process's resident set, KiB."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def settled(
    workspace: Path, temporary: tuple[Path, ...], marker: str, before: Held, *, seconds: float = 30, reap: bool = False
) -> Held:
    """A look once nothing is left over, or the last one when the time is over.

    Args:
        workspace, temporary, marker: as for `look`.
        before: what there may be.
        seconds: how long to wait at most.
        reap: whether every child is to be waited for, which this process has adopted.
    """
    end = time.monotonic() + seconds
    while True:
        if reap:
            _reap()
        held = look(workspace, temporary, marker)
        if not held.more_than(before) or time.monotonic() >= end:
            return held
        time.sleep(0.02)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _groups() -> int:
    found = 0
    for line in Path("/proc/self/cgroup").read_text("utf-8").splitlines():
        _, kinds, path = line.split(":", 2)
        place = Path("/sys/fs/cgroup", kinds, path.lstrip("/"))
        found += sum(len(dirs) for _, dirs, _ in os.walk(place))
    return found


def descendants(pid: int) -> list[int]:
    """Every process below one, those that are dead and not waited for included."""
    found: list[int] = []
    todo = [pid]
    while todo:
        parent = todo.pop()
        try:
            threads = os.listdir(f"/proc/{parent}/task")
        except OSError:
            continue
        for thread in threads:
            try:
                text = Path(f"/proc/{parent}/task/{thread}/children").read_text("ascii")
            except OSError:
                continue
            children = [int(child) for child in text.split()]
            found += children
            todo += children
    return found


def strays(marker: str) -> set[int]:
    """Processes that carry the marker in their command line or environment, whoever their parent is."""
    found = set()
    for entry in os.listdir("/proc"):
        if not entry.isdecimal() or int(entry) == os.getpid():
            continue
        try:
            text = Path(f"/proc/{entry}/cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in text:
            found.add(int(entry))
    return found
