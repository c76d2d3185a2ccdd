"""The trace of one command, fed as it comes: what failed is handed out as accesses.

Invariants:
1. Whatever the bytes, nothing is raised, memory stays bounded, and what could not be read is said (`incomplete`).
2. However the bytes are cut, the answers are the same.
3. A result is read at a line's end alone: a path may spell one.

What succeeded met no wall, so it is no denial, but for a name no task may write wherever it may write.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox.linux import syscalls
from sandbox.linux.strace import text
from sandbox.linux.strace.calls import CONNECTS, REPEATED, Calls
from sandbox.linux.strace.processes import Processes, makes

if TYPE_CHECKING:
    from sandbox.contract import Access
    from sandbox.linux.strace.calls import Places
    from sandbox.linux.strace.processes import Process

#: The longest line: two paths of 4096 bytes, each byte four characters, and what stands around them.
LINE_LIMIT = 48 << 10
#: Calls that have begun and not ended, in all; one for each thread that waits.
SPLIT_LIMIT = 16_384
#: Bytes of them.
SPLIT_BYTES = 32 << 20

_HEAD = re.compile(rb"(?:\[pid +(\d{1,10})\] ?|(\d{1,10}) +)?")
_NAME = re.compile(rb"([a-z_][a-z0-9_]*)\(")
_RESUMED = re.compile(rb"<\.\.\. ([a-z_][a-z0-9_]*) resumed>")
_SUPERSEDED = re.compile(rb"\+\+\+ superseded by execve in pid (\d{1,10}) \+\+\+")
_EXITED = re.compile(rb"\+\+\+ (?:exited with \d+|killed by SIG[A-Z0-9_+]+(?: \(core dumped\))?) \+\+\+")
# whole lines of calls that came to what was asked of them, and tell nothing: taken out in one go, for speed
_PLAIN = re.compile(
    rb"^(?:\[pid +\d+\]|\d+) +"
    rb"(?:(?:newfstatat|l?stat|statx|f?access|faccessat2?|readlink(?:at)?|execve|statfs)\([^\n]* = \d+"
    # where strace notes what was opened, nothing is left to remember
    rb"|open(?:at2?)?\((?![^\n]*O_(?:WRONLY|RDWR|CREAT|TRUNC|TMPFILE))[^\n]* = \d+<[^\n]*>(?:\(deleted\))?"
    # it is there, and no link
    rb"|readlink(?:at)?\([^\n]* = -1 EINVAL \([^\n\"]*\)"
    rb"|--- SIG[^\n]*)\n",
    re.MULTILINE,
)
# where the path starts does not depend on who asks
_PLACED = re.compile(rb'^(?:AT_FDCWD</[^>]*>, "(?!/proc/)|"/(?!proc/))')
_SHOWN = 120
_UNFINISHED = b"<unfinished ...>"
_ENDS = (b"exit_group(", b"exit(")
_MOVES = (b"chdir(", b"fchdir(")

#: What strace is asked to write down; the ones this machine lacks are left out by strace.
WATCHED = (
    *sorted(syscalls.CALLS),
    *CONNECTS,
    "socket",
    "fchdir",
    "clone",
    "clone3",
    "fork",
    "vfork",
    "exit",
    "exit_group",
)


class Parser:
    """One trace.

    Args:
        architecture: for the bits of flags.
        places: see `Places`.
        cwd: where the command starts.
        root: the command's own process, 0 for the first that speaks.
        noted: strace was told to note the files that descriptors stand for (`-y`).

    Attributes:
        ended: the command's own process has said that it ends (`exit_group`), or strace that it has.
        incomplete: why something was missed, empty while nothing was.
    """

    def __init__(
        self, architecture: syscalls.Architecture, places: Places, *, cwd: str, root: int = 0, noted: bool = False
    ) -> None:
        self._calls = Calls(architecture, places, self._miss, noted=noted)
        self._processes = Processes(root, cwd)
        self._rest = b""
        self._skips = False
        self._told: set[bytes] = set()
        self._split: dict[int, bytes] = {}
        self._split_bytes = 0
        self.ended = False
        self.incomplete = ""

    def feed(self, data: bytes) -> list[Access]:
        """What `data` completes."""
        end = data.rfind(b"\n") + 1
        if not end:
            self._keep(self._rest + data)
            return []
        whole = self._rest + data[:end]
        if self._skips:
            whole = whole[whole.index(b"\n") + 1 :]
            self._skips = False
        self._keep(data[end:])
        found: list[Access] = []
        for line in _PLAIN.sub(b"", whole).split(b"\n"):
            self._take(line, found)
        return found

    def _keep(self, rest: bytes) -> None:
        if len(rest) > LINE_LIMIT:
            self._miss("a line of the trace is too long")
            self._skips = True
        self._rest = b"" if self._skips else rest

    def finish(self) -> list[Access]:
        """At the end of the trace."""
        if self._rest or self._skips:
            self._miss("the trace ends in the middle of a line")
        self._rest = b""
        found: list[Access] = []
        for pid, lines in self._processes.lost():
            for line in lines:
                self._guarded(pid, line, found)
        return found

    def _miss(self, why: str) -> None:
        self.incomplete = self.incomplete or why

    def _take(self, line: bytes, found: list[Access]) -> None:
        if len(line) > LINE_LIMIT:
            self._miss("a line of the trace is too long")
            return
        head = _HEAD.match(line)
        if head is None or not line:
            return
        call = line[head.end() :]
        if call in self._told:
            return
        number = head.group(1) or head.group(2)
        self._guarded(int(number) if number else self._processes.root or 1, call, found)

    def _guarded(self, pid: int, line: bytes, found: list[Access]) -> None:
        try:
            self._line(pid, line, found)
        except Exception as error:  # noqa: BLE001  what a line names could be anything; the rest of the trace counts too
            self._miss(f"a line of the trace could not be read ({type(error).__name__}: {error})")

    def _line(self, pid: int, line: bytes, found: list[Access]) -> None:
        if line.startswith(b"+++ "):
            self._exit(pid, line)
        elif line.startswith(b"<... "):
            whole = self._resumed(pid, line)
            if whole is not None:
                self._call(pid, whole, found)
        elif not line.startswith(b"--- "):
            self._call(pid, line, found)

    def _call(self, pid: int, line: bytes, found: list[Access]) -> None:
        """One call, or its first half."""
        named = _NAME.match(line)
        if named is None:
            self._miss("a line of the trace is none of strace's")
            return
        process = self._processes.get(pid)
        if process is None:
            if not self._processes.hold(pid, line):
                self._miss("too many processes whose parents are not known")
        elif line.startswith(_ENDS):
            self.ended = self.ended or self._processes.ours(pid)
        elif line.endswith(_UNFINISHED):
            self._begin(pid, line.removesuffix(_UNFINISHED).rstrip(b" "))
        elif (result := text.result(line)) is None:
            self._miss(f"a line of the trace has no result ({line[:_SHOWN].decode('ascii', 'replace')})")
        elif makes(line):
            for held in self._processes.made(pid, line, None if result.errno else result.value):
                self._guarded(result.value or 0, held, found)
        elif result.value is not None:
            self._judge(pid, process, named, line, result, found)

    def _judge(  # noqa: PLR0917  a line taken apart
        self, pid: int, process: Process, named: re.Match[bytes], line: bytes, result: text.Result, found: list[Access]
    ) -> None:
        name, body = named.group(1).decode("ascii"), line[named.end() : result.at]
        if result.errno:
            found.extend(self._calls.failed(pid, process, name, body, result.errno))
            if _PLACED.search(body):
                # whoever makes this call again is told the same, wherever it stands
                if len(self._told) >= REPEATED:
                    self._told.clear()
                self._told.add(line)
        elif line.startswith(_MOVES):
            self._calls.moved(pid, process, name, body)
        elif name == "socket":
            self._calls.datagrams.made(body, line.rpartition(b" = ")[2])
        elif name in syscalls.CALLS:
            found.extend(self._calls.succeeded(pid, process, name, body, result))

    # -- calls in two halves, and ends -------------------------------------------------------------------------

    def _begin(self, pid: int, head: bytes) -> None:
        if makes(head):
            self._processes.making(pid, head)
        self._forget(pid)
        if len(self._split) >= SPLIT_LIMIT or self._split_bytes + len(head) > SPLIT_BYTES:
            self._miss("too many calls at a time")
            self._split.clear()
            self._split_bytes = 0
        self._split[pid] = head
        self._split_bytes += len(head)

    def _forget(self, pid: int) -> bytes | None:
        head = self._split.pop(pid, None)
        if head is not None:
            self._split_bytes -= len(head)
        return head

    def _resumed(self, pid: int, line: bytes) -> bytes | None:
        """The whole call of one that goes on; `None` for a stray half."""
        found = _RESUMED.match(line)
        head = self._forget(pid)
        if found is None:
            self._miss("a line of the trace is none of strace's")
            return None
        if head is None or not head.startswith(found.group(1) + b"("):
            # of a call that began before anybody looked
            return None
        return head + line[found.end() :]

    def _exit(self, pid: int, line: bytes) -> None:
        superseded = _SUPERSEDED.fullmatch(line)
        if superseded is not None:
            self._processes.superseded(int(superseded.group(1)), pid)
            return
        if _EXITED.fullmatch(line) is None:
            self._miss("a line of the trace is none of strace's")
            return
        # of the command's own process strace says so once its last thread is gone
        self.ended = self.ended or pid == self._processes.root
        self._forget(pid)
        self._processes.ended(pid)
