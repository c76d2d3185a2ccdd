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

from sandbox.linux.kernel import syscall_table
from sandbox.linux.strace import line_grammar
from sandbox.linux.strace.trace_calls import CONNECTS, LINKS, REPEATED, TELLING, TracedCalls
from sandbox.linux.strace.traced_processes import MAKES, TracedProcesses

if TYPE_CHECKING:
    from sandbox.contract.results import Access
    from sandbox.linux.strace.trace_calls import TracedFiles
    from sandbox.linux.strace.traced_processes import TracedProcess

#: The longest line: two paths of 4096 bytes, each byte four characters, and what stands around them.
LINE_LIMIT = 48 << 10
#: Calls that have begun and not ended, in all; one for each thread that waits.
SPLIT_LIMIT = 16_384
#: Bytes of them.
SPLIT_BYTES = 32 << 20

_NAME = re.compile(rb"([a-z_][a-z0-9_]*)\(")
_RESUMED = re.compile(rb"<\.\.\. ([a-z_][a-z0-9_]*) resumed>")
_SUPERSEDED = re.compile(rb"\+\+\+ superseded by execve in pid (\d{1,10}) \+\+\+")
_EXITED = re.compile(rb"\+\+\+ (?:exited with \d+|killed by SIG[A-Z0-9_+]+(?: \(core dumped\))?) \+\+\+")
# of a process killed as it entered a call, before strace could read which one: the kernel carries out none of it
_KILLED_AT_ENTRY = re.compile(rb"\?\?\?\((?:\) += \?| <unfinished \.\.\.>)|<\.\.\. \?\?\? resumed>\) += \?")
# lines that tell nothing: of calls that came to what was asked of them
_PLAIN = (
    rb"(?:\[pid +\d{1,10}\] ?|\d{1,10} +)"
    rb"(?:(?:newfstatat|l?stat|statx|f?access|faccessat2?|readlink(?:at)?|execve|statfs)\([^\n]*\) += \d+"
    # where strace notes what was opened, nothing is left to remember
    rb"|open(?:at2?)?\((?![^\n]*O_(?:WRONLY|RDWR|CREAT|TRUNC|TMPFILE))[^\n]*\) += \d+<[^\n<]*>(?:\(deleted\))?"
    rb"|readlink(?:at)?\([^\n]*\) += -1 EINVAL \([^\n\"()]*\)"
    rb"|--- SIG[^\n]*)\n"
)
#: Any line: whose it is, and what it says.
LINE = rb"(?:(\d{1,10}) +|\[pid +(\d{1,10})\] ?)?([^\n]*)\n"
# those that tell nothing are passed over in one go, for speed
_LINES = re.compile(rb"(?>%b)*+(?:%b|\Z)" % (_PLAIN, LINE))
# where the path starts does not depend on who asks; /dev holds links into /proc
_PLACED = re.compile(rb'^(?:AT_FDCWD</[^>]*>, "(?!/proc/|/dev/|//)|"/(?!proc/|dev/|/))')
# calls whose one path is what a line begins with: the second of a rename may be relative
_PLACED_BY_FIRST = frozenset(
    name
    for name, call in syscall_table.CALLS.items()
    if len(call.paths) == 1 and (call.paths[0].path == 0 or call.paths[0].dirfd == 0)
)
_SHOWN = 120
_UNFINISHED = b"<unfinished ...>"
_ENDS = ("exit_group", "exit")
_MOVES = ("chdir", "fchdir")
_ENDED = frozenset(b"+++ exited with %d +++" % code for code in range(256))

#: What strace is asked to write down; the ones this machine lacks are left out by strace.
WATCHED = (
    *sorted(syscall_table.CALLS),
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
_NAMES = {name.encode("ascii"): name for name in WATCHED}


class TraceParser:
    """One trace.

    Args:
        architecture: for the bits of flags.
        places: see `TracedFiles`.
        cwd: where the command starts.
        root: the command's own process, 0 for the first that speaks.
        noted: strace was told to note the files that descriptors stand for (`-y`).

    Attributes:
        ended: the command's own process has said that it ends (`exit_group`), or strace that it has.
        incomplete: why something was missed, empty while nothing was.
    """

    def __init__(
        self,
        architecture: syscall_table.Architecture,
        places: TracedFiles,
        *,
        cwd: str,
        root: int = 0,
        noted: bool = False,
    ) -> None:
        self._calls = TracedCalls(architecture, places, self._miss, noted=noted)
        self._processes = TracedProcesses(root, cwd)
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
        for number, bracketed, line in _LINES.findall(whole if _short(whole) else self._shortened(whole)):
            if line in self._told:
                continue
            if number or bracketed:
                self._guarded(int(number or bracketed), line, found)
            elif line:
                self._guarded(self._processes.root or 1, line, found)
        return found

    def _shortened(self, whole: bytes) -> bytes:
        lines = whole.split(b"\n")
        kept = [line for line in lines if len(line) <= LINE_LIMIT]
        if len(kept) < len(lines):
            self._miss("a line of the trace is too long")
        return b"\n".join(kept)

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

    def _guarded(self, pid: int, line: bytes, found: list[Access]) -> None:
        try:
            self._line(pid, line, found)
        except Exception as error:  # noqa: BLE001  what a line names could be anything; the rest of the trace counts too
            self._miss(f"a line of the trace could not be read ({type(error).__name__}: {error})")

    def _line(self, pid: int, line: bytes, found: list[Access]) -> None:
        end = line.find(b"(")
        name = _NAMES.get(line[:end]) if end > 0 else None
        if name is not None:
            self._call(pid, name, line, found)
        elif line in _ENDED:
            self._exit(pid)
        elif line.startswith(b"+++ "):
            self._exit_of_a_kind(pid, line)
        elif _KILLED_AT_ENTRY.fullmatch(line):
            return
        elif line.startswith(b"<... "):
            self._resumed(pid, line, found)
        elif not line.startswith(b"--- "):
            named = _NAME.match(line)
            if named is None:
                self._miss("a line of the trace is none of strace's")
            else:
                self._call(pid, named.group(1).decode("ascii"), line, found)

    def _call(self, pid: int, name: str, line: bytes, found: list[Access]) -> None:
        """One call, or its first half."""
        process = self._processes.get(pid)
        if process is None:
            if not self._processes.hold(pid, line):
                self._miss("too many processes whose parents are not known")
        elif name in _ENDS:
            self.ended = self.ended or self._processes.ours(pid)
        elif line.endswith(_UNFINISHED):
            self._begin(pid, name, line.removesuffix(_UNFINISHED).rstrip(b" "))
        elif (result := line_grammar.result(line)) is None:
            self._miss(f"a line of the trace has no result ({line[:_SHOWN].decode('ascii', 'replace')})")
        elif name in MAKES:
            for held in self._processes.made(pid, line, None if result.errno else result.value):
                self._guarded(result.value or 0, held, found)
        elif result.value is not None:
            self._judge(pid, process, name, line, result, found)

    def _judge(  # noqa: PLR0917  a line taken apart
        self,
        pid: int,
        process: TracedProcess,
        name: str,
        line: bytes,
        result: line_grammar.CallResult,
        found: list[Access],
    ) -> None:
        body = line[len(name) + 1 : result.at]
        if result.errno:
            found.extend(self._calls.failed(pid, process, name, body, result.errno))
            if self._calls.plain and name in _PLACED_BY_FIRST and _PLACED.match(body):
                # whoever makes this call again is told the same, wherever it stands
                if len(self._told) >= REPEATED:
                    self._told.clear()
                self._told.add(line)
        elif name in TELLING:
            if name in LINKS:
                self._told.clear()
                self._calls.forget()
            found.extend(self._calls.succeeded(pid, process, name, body, result))
        elif name in _MOVES:
            self._calls.moved(pid, process, name, body)
        elif name == "socket":
            self._calls.datagrams.made(body, result.noted)

    # -- calls in two halves, and ends -------------------------------------------------------------------------

    def _begin(self, pid: int, name: str, head: bytes) -> None:
        if name in MAKES:
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

    def _resumed(self, pid: int, line: bytes, found: list[Access]) -> None:
        """A call that goes on; a stray half is of one that began before anybody looked."""
        resumed = _RESUMED.match(line)
        head = self._forget(pid)
        if resumed is None:
            self._miss("a line of the trace is none of strace's")
        elif head is not None and head.startswith(resumed.group(1) + b"("):
            self._call(pid, resumed.group(1).decode("ascii"), head + line[resumed.end() :], found)

    def _exit_of_a_kind(self, pid: int, line: bytes) -> None:
        superseded = _SUPERSEDED.fullmatch(line)
        if superseded is not None:
            self._processes.superseded(int(superseded.group(1)), pid)
        elif _EXITED.fullmatch(line) is not None:
            self._exit(pid)
        else:
            self._miss("a line of the trace is none of strace's")

    def _exit(self, pid: int) -> None:
        # of the command's own process strace says so once its last thread is gone
        self.ended = self.ended or pid == self._processes.root
        self._forget(pid)
        self._processes.ended(pid)


def _short(whole: bytes) -> bool:
    """Whether no line can be too long: there is an end in every stretch of half a line's limit."""
    half = LINE_LIMIT // 2
    return all(whole.find(b"\n", at, at + half) >= 0 for at in range(0, len(whole), half))
