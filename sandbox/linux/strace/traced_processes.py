"""The working directory of each traced process and, where strace does not note them, its descriptors. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

#: The most descriptors remembered of a process; the oldest are forgotten first.
DESCRIPTORS = 1024
#: The most processes remembered; the oldest are forgotten first.
PROCESSES = 16_384
#: The most lines kept of processes whose parent is not told yet.
WAITING = 10_000

#: Calls that make a process.
MAKES = ("clone", "clone3", "fork", "vfork")


@dataclass(slots=True)
class WorkingDirectory:
    """A working directory, which threads and `CLONE_FS` share."""

    path: str


@dataclass(slots=True)
class TracedProcess:
    """A traced thread, as the kernel numbers them.

    Attributes:
        group: the first thread of the thread's process.
        files: the path each descriptor was opened on, as far as the trace told.
    """

    group: int
    directory: WorkingDirectory
    files: dict[int, str] = field(default_factory=dict)

    def opened(self, number: int, path: str) -> None:
        """Remember the path that a descriptor was opened on."""
        self.files.pop(number, None)
        if len(self.files) >= DESCRIPTORS:
            del self.files[next(iter(self.files))]
        self.files[number] = path

    def unshared(self, flags: bytes) -> None:
        """Have a working directory or descriptors of its own from now on (unshare(2))."""
        if b"CLONE_FS" in flags:
            self.directory = WorkingDirectory(self.directory.path)
        if b"CLONE_FILES" in flags:
            self.files = dict(self.files)


class TracedProcesses:
    """The processes of one trace.

    Args:
        root: the command's own process; 0 takes the first one of the trace.
        cwd: the working directory of the command, and of any process of which nothing is known.
    """

    def __init__(self, root: int, cwd: str) -> None:
        self.root = root
        self._cwd = cwd
        self._known: dict[int, TracedProcess] = {}
        self._making: dict[int, bytes] = {}
        self._waiting: dict[int, list[bytes]] = {}
        self._held = 0

    def get(self, pid: int) -> TracedProcess | None:
        """The process of a number, `None` while its parent cannot be told."""
        found = self._known.get(pid)
        if found is not None:
            return found
        parents = [self._known[parent] for parent in self._making if parent in self._known]
        if not parents:
            return self._enter(pid, TracedProcess(pid, WorkingDirectory(self._cwd)))
        if len(parents) == 1:
            (head,) = [head for parent, head in self._making.items() if parent in self._known]
            return self._enter(pid, _child(pid, parents[0], head))
        if len({parent.directory.path for parent in parents}) == 1 and not any(p.files for p in parents):
            return self._enter(pid, TracedProcess(pid, WorkingDirectory(parents[0].directory.path)))
        return None

    def ours(self, pid: int) -> bool:
        """Whether a thread belongs to the command's own process."""
        found = self._known.get(pid)
        return pid == self.root or (found is not None and found.group == self.root)

    def hold(self, pid: int, line: bytes) -> bool:
        """Keep a line until its process is known; false where too many are kept."""
        self._held += 1
        if self._held > WAITING:
            return False
        self._waiting.setdefault(pid, []).append(line)
        return True

    def making(self, pid: int, head: bytes) -> None:
        """Note that a call which makes a process has begun."""
        if len(self._making) < PROCESSES:
            self._making[pid] = head

    def made(self, pid: int, call: bytes, child: int | None) -> list[bytes]:
        """Note that such a call has ended; the lines that its child has written meanwhile."""
        self._making.pop(pid, None)
        parent = self.get(pid)
        if child is None or child <= 0 or parent is None:
            return []
        known = self._known.get(child)
        if known is None:
            self._enter(child, _child(child, parent, call))
        elif b"CLONE_THREAD" in call:
            known.group = parent.group
        lines = self._waiting.pop(child, [])
        self._held -= len(lines)
        return lines

    def lost(self) -> list[tuple[int, list[bytes]]]:
        """The kept lines of processes whose parent was never told; each counts as standing where the command began."""
        found = list(self._waiting.items())
        self._waiting.clear()
        self._making.clear()
        self._held = 0
        return found

    def superseded(self, old: int, pid: int) -> None:
        """Note that an execve in thread `old` made it the first thread of its process (execve(2))."""
        found = self._known.pop(old, None)
        if found is not None:
            self._enter(pid, TracedProcess(found.group, found.directory, found.files))

    def ended(self, pid: int) -> None:
        """Forget a thread that ended; its number may come back as another's."""
        self._known.pop(pid, None)
        self._making.pop(pid, None)

    def _enter(self, pid: int, process: TracedProcess) -> TracedProcess:
        if not self.root:
            self.root = pid
        if len(self._known) >= PROCESSES:
            del self._known[next(iter(self._known))]
        self._known[pid] = process
        return process


def _child(pid: int, parent: TracedProcess, call: bytes) -> TracedProcess:
    shares = b"CLONE_FS" in call
    directory = parent.directory if shares else WorkingDirectory(parent.directory.path)
    files = parent.files if b"CLONE_FILES" in call else dict(parent.files)
    group = parent.group if b"CLONE_THREAD" in call else pid
    return TracedProcess(group, directory, files)
