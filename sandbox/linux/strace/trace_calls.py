"""The paths that a whole call names, and what it meant to do with each. Pure."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sandbox.contract.intents import WRITE_INTENTS, Intent
from sandbox.contract.results import Access
from sandbox.linux.caller.resolve_path_as_caller import Walked
from sandbox.linux.kernel import observed_syscalls
from sandbox.linux.strace import line_grammar
from sandbox.linux.strace.trace_addresses import DatagramSockets, connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.linux.strace.traced_processes import TracedProcess

#: The most repeated calls remembered.
REPEATED = 20_000

#: Intents of calls that succeed only where the path has nothing.
NEW = frozenset({Intent.CREATE, Intent.MKDIR, Intent.LINK})

CONNECTS = ("connect", "sendto", "sendmsg", "sendmmsg")

#: Calls after whose success a path may lead elsewhere.
LINKS = frozenset({"symlink", "symlinkat", "link", "linkat", "rename", "renameat", "renameat2"})

#: Calls whose success may be worth telling.
TELLING = observed_syscalls.WRITES | observed_syscalls.OPENS

_WRITES = re.compile(rb"O_(?:WRONLY|RDWR|CREAT|TRUNC|TMPFILE)")
# links of the caller to its own directories, gone once it is; another thread may have others (unshare(2), CLONE_FS)
_OWN = re.compile(r"/proc/(self|thread-self|self/task/thread-self)/(cwd|root)(?=/|$)")
_PROC = "/proc/"
_UNKNOWN = re.compile(r"/proc/(?:self|\d+)(?:/task/(?:thread-self|\d+))?/(?:cwd|root|fd/\d+)/.")
# the number of arguments of each call that are read
_WANTED = {
    call.name: 1 + max(call.flags, *(a.path for a in call.paths), *(a.dirfd for a in call.paths))
    for call in observed_syscalls.CALLS.values()
}
_LINKS = ("readlink", "readlinkat")
_DELETED = (b"(deleted)", b"(deleted)>")


class TracedFiles(Protocol):
    """The host's file system, as far as a trace needs it."""

    def walk(self, pid: int, path: str, *, base: str, follows: bool) -> Walked | None:
        """The place that `path` leads the caller to, `None` where it cannot be told.

        No link is left in its path but those that only the caller had, where it has ended; see `TaskTree`.
        """

    def exists(self, path: str) -> bool:
        """Whether the path exists; a link in the last place is not followed."""

    def changes(self, call: str, intent: Intent, path: str) -> bool:
        """Whether a call that writes there is refused by name, so that it counts though it succeeded."""

    def is_closed_link(self, path: str) -> bool:
        """Whether a path goes through a link closed to every caller; see `TaskTree.is_closed`."""


class _Named(NamedTuple):
    asked: str
    cwd: str
    base: str
    follows: bool
    intent: Intent
    #: Whether the caller is the thread that the links of its process tell of.
    first: bool


def _own_directory(named: _Named, path: str) -> tuple[str, str] | None:
    """The start and the rest of a path that goes through a link to the caller's own directory, as it was then."""
    own = _OWN.match(path) if path.startswith(_PROC) else None
    if own is None or (own.group(1) == "self" and not named.first):
        return None
    return named.cwd if own.group(2) == "cwd" else "/", "." + path[own.end() :]


class TracedCalls:
    """The calls of one trace.

    Args:
        noted: see `TraceParser`.
        miss: called with the reason why something could not be read.

    Attributes:
        datagrams: the sockets that connect to nowhere.
        plain: whether every path of the last failed call is where it is spelled, so that a repetition of it by anybody
            leads to the same.
    """

    def __init__(
        self,
        architecture: observed_syscalls.Architecture,
        places: TracedFiles,
        miss: Callable[[str], object],
        *,
        noted: bool,
    ) -> None:
        self._architecture = architecture
        self._places = places
        self._miss = miss
        self._noted = noted
        self.datagrams = DatagramSockets()
        self._repeated: set[tuple[str, bytes]] = set()
        self.plain = True

    def forget(self) -> None:
        """Forget where paths led, since they may lead elsewhere from now on."""
        self._repeated.clear()

    def moved(self, pid: int, process: TracedProcess, name: str, body: bytes) -> None:
        (argument,) = line_grammar.arguments(body, 1)
        if name == "chdir":
            said = line_grammar.string(argument)
            if said is not None and not said[1]:
                base = process.directory.path
                asked = os.fsdecode(said[0])
                reached = self._places.walk(pid, asked, base=base, follows=True)
                if reached is None:
                    self._miss(f"a working directory could not be followed ({asked})")
                else:
                    process.directory.path = reached.path
            return
        place = line_grammar.descriptor(argument)
        if place is not None:
            path = place.path or process.files.get(place.number, "")
            if path:
                process.directory.path = path

    def succeeded(
        self, pid: int, process: TracedProcess, name: str, body: bytes, result: line_grammar.CallResult
    ) -> Iterator[Access]:
        call = observed_syscalls.CALLS[name]
        opens = name in observed_syscalls.OPENS
        if opens and result.value is not None and result.value >= 0 and not result.noted:
            for named in self._named(pid, process, call, body):
                process.opened(result.value, self._walk(pid, named).path)
        if name in observed_syscalls.WRITES or (opens and _WRITES.search(body)):
            if opens and not self._changes(name, result):
                return
            for named in self._named(pid, process, call, body):
                path = self._walk(pid, named).path
                intent = Intent.WRITE if named.intent is Intent.CREATE else named.intent
                if intent in WRITE_INTENTS and self._places.changes(name, intent, path):
                    yield self._access(pid, name, named, path, intent=intent, errno="", refused=True)

    def _changes(self, name: str, result: line_grammar.CallResult) -> bool:
        """Whether an open may count, by the noted file."""
        opened = line_grammar.descriptor(result.noted) if result.noted else None
        if opened is None or result.noted.endswith(_DELETED):
            return True
        return bool(opened.path) and self._places.changes(name, Intent.WRITE, opened.path)

    def failed(self, pid: int, process: TracedProcess, name: str, body: bytes, errno: str) -> Iterator[Access]:
        if name in CONNECTS:
            target = None if self.datagrams.connects(name, body) else connection(name, body)
            if target is not None:
                yield Access(
                    pid=pid,
                    operation=name,
                    intent=Intent.CONNECT,
                    asked=target.asked,
                    path=target.path,
                    exists=False,
                    errno=errno,
                )
            return
        call = observed_syscalls.CALLS.get(name)
        if call is None or errno == "EBADF" or (errno == "EINVAL" and name in _LINKS):
            return  # no name was looked up, or the name is no link
        repeated = (f"{process.directory.path}\0{name}\0{errno}", body)
        self.plain = True
        if repeated in self._repeated:
            return
        for named in self._named(pid, process, call, body, errno):
            path, passed = self._walk(pid, named)
            for place in passed:
                yield self._access(pid, name, named, place, intent=Intent.PROBE, errno=errno)
            self.plain = self.plain and self._is_plain(named, path)
            # a directory that holds a mount cannot be removed or renamed (EBUSY, rename(2))
            kept = errno == "EBUSY" and self._places.changes(name, named.intent, path)
            yield self._access(pid, name, named, path, intent=named.intent, errno=errno, refused=kept)
            vain = observed_syscalls.named_descriptor(named.asked) is None and not self._places.exists(path)
            if len(call.paths) > 1 and vain:
                break  # a rename or a link of nothing changes nothing
        if self.plain:
            if len(self._repeated) >= REPEATED:
                self._repeated.clear()
            self._repeated.add(repeated)

    def _is_plain(self, named: _Named, path: str) -> bool:
        """Whether no link was followed, and no descriptor used that only its process knows."""
        known = self._noted or named.base in (named.cwd, "/")
        return known and path == os.path.normpath(os.path.join(named.base, named.asked))

    def _named(
        self, pid: int, process: TracedProcess, call: observed_syscalls.Call, body: bytes, errno: str = ""
    ) -> Iterator[_Named]:
        """Each path that a call names and whose place is known."""
        given = line_grammar.arguments(body, _WANTED[call.name])
        said = given[call.flags] if 0 <= call.flags < len(given) else b""
        bits = (
            observed_syscalls.O_CREAT | observed_syscalls.O_TRUNC | 1
            if call.name == "creat"
            else line_grammar.flags(said, self._architecture)
        )
        for argument in call.paths:
            if argument.path >= len(given):
                self._miss("a call in the trace lacks an argument")
                return
            asked, whole = self._asked(call, given[argument.path], errno)
            if asked is None or (asked == "" and not (call.empty or call.null)):
                continue
            if not whole:
                if errno != "ENAMETOOLONG":  # then the kernel read no further either
                    self._miss("a path in the trace is cut short")
                continue
            base = "/"
            if not asked.startswith("/"):
                base = self._base(pid, process, given, argument)
                if not base:
                    continue
            follows = observed_syscalls.follows(self._architecture, call, argument, bits)
            first = process.group == pid
            named = _Named(asked, process.directory.path, base, follows, argument.intent, first)
            if call.name in observed_syscalls.OPENS:
                exists = self._places.exists(self._walk(pid, named).path)
                named = named._replace(intent=observed_syscalls.open_intent(bits, exists=exists))
            yield named

    def _asked(self, call: observed_syscalls.Call, argument: bytes, errno: str) -> tuple[str | None, bool]:
        said = line_grammar.string(argument)
        if said is not None:
            return os.fsdecode(said[0]), not said[1]
        if argument == b"NULL":
            return ("" if call.null else None), True
        # strace writes an address where it could not read; where the call could not either, it names nothing
        if errno != "EFAULT":
            self._miss(f"a path in the trace could not be read ({call.name})")
        return None, True

    def _base(
        self, pid: int, process: TracedProcess, given: list[bytes], argument: observed_syscalls.PathArgument
    ) -> str:
        """The directory a relative path starts from, empty for a descriptor that names none."""
        if argument.dirfd < 0:
            return process.directory.path
        place = line_grammar.descriptor(given[argument.dirfd])
        if place is None:
            self._miss("a call in the trace names no descriptor")
            return ""
        if place.path:
            if place.number == observed_syscalls.AT_FDCWD:
                process.directory.path = place.path
            return place.path
        if place.number == observed_syscalls.AT_FDCWD:
            if self._noted:
                self._miss(f"a directory could not be placed (the working directory of process {pid})")
            return process.directory.path
        found = process.files.get(place.number, "")
        if not found and not place.other and place.number >= 0:
            self._miss(f"a directory could not be placed (descriptor {place.number} of process {pid})")
        return found

    def _walk(self, pid: int, named: _Named) -> Walked:
        """The place that a named path leads to; its process may be gone, and the links in `/proc` with it."""
        asked, base = named.asked, named.base
        spelled = asked if asked.startswith("/") else f"{base.rstrip('/')}/{asked}"
        own = _own_directory(named, spelled)
        if own is not None:
            base, asked = own
        walked = self._placed(pid, named, asked, base)
        own = _own_directory(named, walked.path)
        if own is not None:
            # a link led to a directory of a process that has ended, or is ending: its /proc entry outlives its links
            base, asked = own
            path, passed = self._placed(pid, named, asked, base)
            walked = Walked(path, walked.passed + passed)
        # the link led somewhere when the call was made: its process, or the descriptor, is gone since
        if _UNKNOWN.match(walked.path) and not self._places.is_closed_link(walked.path):
            self._miss(f"a path through the links of a process could not be followed any more ({walked.path})")
        return walked

    def _placed(self, pid: int, named: _Named, asked: str, base: str) -> Walked:
        walked = self._places.walk(pid, asked, base=base, follows=named.follows)
        if walked is None:
            self._miss(f"a path could not be followed ({asked})")
            return Walked(os.path.normpath(os.path.join(base, asked)))
        return walked

    def _access(
        self, pid: int, operation: str, named: _Named, path: str, *, intent: Intent, errno: str, refused: bool = False
    ) -> Access:
        return Access(
            pid=pid,
            operation=operation,
            intent=intent,
            asked=named.asked,
            path=path,
            # by now a successful call has removed what was there, or made what was not
            exists=self._places.exists(path) if errno else intent not in NEW,
            errno=errno,
            follows=named.follows,
            refused=refused,
        )
