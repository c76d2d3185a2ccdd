"""The trace of one command, parsed as it comes: failed calls come out as accesses. Pure.

Invariants:
1. Whatever the bytes, nothing is raised, memory stays bounded, and a part that could not be read is told
   (`incomplete`).
2. However the bytes are cut, the answers are the same.
3. A result is read only at a line's end: a path may spell one.

A call that succeeded met no wall and is no denial, except on a name that no task may write.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox.contract.intents import Intent
from sandbox.contract.results import Access
from sandbox.linux.kernel import observed_syscalls
from sandbox.linux.strace import line_grammar
from sandbox.linux.strace.trace_calls import CONNECTS, LINKS, REPEATED, TELLING, TracedCalls
from sandbox.linux.strace.traced_processes import MAKES, TracedProcesses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.linux.strace.trace_calls import TracedFiles
    from sandbox.linux.strace.traced_processes import TracedProcess

#: The longest line: two paths of 4096 bytes, each byte as four characters, and the rest of a call.
LINE_LIMIT = 48 << 10
#: The most calls that have begun and not ended; each thread that waits has one.
SPLIT_LIMIT = 16_384
#: The most bytes of those calls.
SPLIT_BYTES = 32 << 20

_NAME = re.compile(rb"([a-z_][a-z0-9_]*)\(")
_RESUMED = re.compile(rb"<\.\.\. ([a-z_][a-z0-9_]*) resumed>")
_SUPERSEDED = re.compile(rb"\+\+\+ superseded by execve in pid (\d{1,10}) \+\+\+")
_EXITED = re.compile(rb"\+\+\+ (?:exited with \d+|killed by SIG[A-Z0-9_+]+(?: \(core dumped\))?) \+\+\+")
# a line of a process killed as it entered a call, which the kernel does not carry out
_KILLED_AT_ENTRY = re.compile(rb"\?\?\?\((?:\) += \?| <unfinished \.\.\.>)|<\.\.\. \?\?\? resumed>\) += \?")
# lines of calls that succeeded, and so tell nothing
_PLAIN = (
    rb"(?:\[pid +\d{1,10}\] ?|\d{1,10} +)"
    rb"(?:(?:newfstatat|l?stat|statx|f?access|faccessat2?|readlink(?:at)?|execve|statfs)\([^\n]*\) += \d+"
    # an open whose file strace notes leaves nothing to remember
    rb"|open(?:at2?)?\((?![^\n]*O_(?:WRONLY|RDWR|CREAT|TRUNC|TMPFILE))[^\n]*\) += \d+<[^\n<]*>(?:\(deleted\))?"
    rb"|readlink(?:at)?\([^\n]*\) += -1 EINVAL \([^\n\"()]*\)"
    rb"|--- SIG[^\n]*)\n"
)
#: Any line: the number of its process, and its text.
LINE = rb"(?:(\d{1,10}) +|\[pid +(\d{1,10})\] ?)?([^\n]*)\n"
# lines that tell nothing are skipped in one match, for speed
_LINES = re.compile(rb"(?>%b)*+(?:%b|\Z)" % (_PLAIN, LINE))
# paths that start at the same place for every caller; /dev holds links into /proc
_PLACED = re.compile(rb'^(?:AT_FDCWD</[^>]*>, "(?!/proc/|/dev/|//)|"/(?!proc/|dev/|/))')
# calls whose one path begins the line: the second path of a rename may be relative
_PLACED_BY_FIRST = frozenset(
    name
    for name, call in observed_syscalls.CALLS.items()
    if len(call.paths) == 1 and (call.paths[0].path == 0 or call.paths[0].dirfd == 0)
)
_SHOWN = 120
_UNFINISHED = b"<unfinished ...>"
_ENDS = ("exit_group", "exit")
_MOVES = ("chdir", "fchdir")
_ENDED = frozenset(b"+++ exited with %d +++" % code for code in range(256))

#: The calls strace is asked to write down; strace leaves out those that this machine lacks.
WATCHED = (
    *sorted(observed_syscalls.CALLS),
    *CONNECTS,
    "socket",
    "fchdir",
    "unshare",
    "clone",
    "clone3",
    "fork",
    "vfork",
    "exit",
    "exit_group",
)
# bytes of a path that strace writes as they are
_PLAIN_BYTES = frozenset(range(ord(" "), 127)) - frozenset(b'<>\\"')
_NAMES = {name.encode("ascii"): name for name in WATCHED}


def _opened(directory: str) -> re.Pattern[bytes]:
    """The lines of calls that opened a directory: each ends in the note of its file, also in two halves."""
    # a watched call that returns a descriptor of a directory opened it
    return re.compile(rb"^(?:(\d{1,10}) +|\[pid +(\d{1,10})\] ?)[^\n]* = \d+<%b>$" % _noted(directory), re.MULTILINE)


def _noted(path: str) -> bytes:
    """A pattern for a path as strace notes it: what is no plain character of ASCII, or ends a note, is octal."""
    return b"".join(
        re.escape(bytes((byte,))) if byte in _PLAIN_BYTES else rb"\\0*%o" % byte
        for byte in path.encode("utf-8", "surrogateescape")
    )


def _listed(pid: int, directory: str) -> Access:
    return Access(pid=pid, operation="openat", intent=Intent.OPEN, asked=directory, path=directory, exists=True)


class TraceParser:
    """The parser of one trace.

    Args:
        architecture: for the bits of flags.
        places: see `TracedFiles`.
        cwd: where the command starts.
        root: the command's own process, 0 for the first that speaks.
        noted: whether strace notes the files that descriptors stand for (`-y`).
        emptied: directories of which the task is shown nothing; an open of one succeeds, and counts with a note alone.

    Attributes:
        ended: whether the command's own process told that it ends (`exit_group`), or strace told so.
        incomplete: why something was missed, empty while nothing was.
    """

    def __init__(
        self,
        architecture: observed_syscalls.Architecture,
        places: TracedFiles,
        *,
        cwd: str,
        root: int = 0,
        noted: bool = False,
        emptied: Iterable[str] = (),
    ) -> None:
        self._emptied = tuple((path, _opened(path)) for path in emptied)
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
        """The accesses that `data` completes."""
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
        for path, opened in self._emptied:
            match = opened.search(whole)
            if match is not None:
                found.append(_listed(int(match[1] or match[2]), path))
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
        """The accesses left at the end of the trace."""
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
        except Exception as error:  # noqa: BLE001  a line may name anything, and the rest of the trace counts
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
        """Read one call, or its first half."""
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
                # the same call fails in the same way for anybody, wherever it is made
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
        elif name == "unshare":
            process.unshared(body)
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
        """Read the second half of a call; a half without a first belongs to a call that began before the trace."""
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
        # strace tells of the command's own process once its last thread is gone
        self.ended = self.ended or pid == self._processes.root
        self._forget(pid)
        self._processes.ended(pid)


def _short(whole: bytes) -> bool:
    """Whether no line can be too long, since each stretch of half a line's limit has a line's end."""
    half = LINE_LIMIT // 2
    return all(whole.find(b"\n", at, at + half) >= 0 for at in range(0, len(whole), half))
