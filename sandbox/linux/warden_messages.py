"""Messages between the executor, the supervisor and a warden.

Each run has one socket between the executor and its warden: frames of a four-byte length and a pickle. Both ends are
the same program under the same user, and no process inside a sandbox holds the socket.

Another socket, the link, leads from a warden to the joiner and to process 1. Each word on it is a packet, some with
descriptors. Inward: `spec` (the spec, three streams), `go` (the parent is the warden), `held` (the warden has the
listener), `run`. Outward: `first` (process 1's number), `listeners`, `mask` (the device), `names` (what covers show, to
be written to), `armed`, `forked`, `ended`, `gone`; `failed`, `vanished`, `no-listener`, `no-proc` and `no-fuse` say why
nothing will run.
"""

from __future__ import annotations

import os
import pickle
import struct
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from sandbox.planning.operations import Bind, Operation, Origin
from sandbox.planning.served_and_staged_names import GrantedNames
from sandbox.proxy.policy.policy import Policy
from sandbox.request.protected_names import ProtectedNames

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator

    from sandbox.contract.results import Access, Observer

#: Why a trace has a hole where strace ended before the command did; another attempt is made for no other reason.
LOST = "strace ended before the command did"

_LENGTH = struct.Struct("<I")


class Base(NamedTuple):
    """The start of a sandbox, before anything of its task is known.

    Attributes:
        bwrap: absolute path of bubblewrap.
        nested: whether the sandbox does without a `/proc` of its own, and shows the present one read-only.
    """

    bwrap: str
    nested: bool = False

    def word(self) -> bytes:
        """The word by which the supervisor is told of the base."""
        return (b"nested " if self.nested else b"full ") + os.fsencode(self.bwrap)

    @classmethod
    def from_word(cls, word: bytes) -> Base:
        """The base of a word."""
        kind, _, bwrap = word.partition(b" ")
        return cls(os.fsdecode(bwrap), nested=kind == b"nested")


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """The terminal of a task, as it begins.

    Attributes:
        modes: those of the caller's terminal, as `termios.tcgetattr` returns them; empty without a terminal.
    """

    rows: int = 24
    columns: int = 80
    modes: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """All that a warden needs to build one sandbox and run one command in it.

    Attributes:
        operations: the plan, parents before children.
        boundary: directories in which every lookup of a hidden name must arrive.
        command: the program and its arguments.
        environment: exactly the command's.
        observer: `auto`, `mask`, `notify`, `strace` or `none`.
        tracer: absolute path of strace where strace is the observer, else empty.
        timeout: seconds for the command, `None` for no limit; `grace`: seconds between SIGTERM and SIGKILL.
        executed: names that other programs execute, which no call may make or change.
        granted: the names that the plan's `Name` and `Names` operations cover.
        staging: an existing empty directory on the file system of the granted names, in which names live that the task
            makes beside them; empty where the plan grants no name.
        network: which hosts, ports and sockets the task reaches; none by default.
        screen: the terminal that the command gets; standard input is then a socket to send the terminal's ends over.
        nested: whether the sandbox's base is nested.
    """

    operations: tuple[Operation, ...]
    boundary: tuple[str, ...]
    command: tuple[str, ...]
    environment: dict[str, str]
    cwd: str
    observer: str = "auto"
    tracer: str = ""
    timeout: float | None = None
    grace: float = 5.0
    executed: ProtectedNames = field(default_factory=ProtectedNames)
    granted: GrantedNames = field(default_factory=GrantedNames)
    staging: str = ""
    network: Policy = field(default_factory=Policy)
    screen: Screen | None = None
    nested: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A message of the warden's: the command is let go, behind finished walls.

    Attributes:
        landlock: the version of Landlock that holds the task, 0 where none does.
    """

    pid: int
    observer: Observer
    landlock: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenAccesses:
    """A message of the warden's: accesses seen since the last such message, each distinct one once."""

    accesses: tuple[Access, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A message of the warden's: nothing of the command ran.

    Attributes:
        transient: whether a second attempt may succeed (a mount's source vanished while it was copied).
        no_listener: whether the kernel refuses the filter a listener.
        no_proc: whether the kernel refuses a `/proc` of the task's own; `reason` is then the kernel's word alone.
        no_fuse: whether the kernel refuses a FUSE mount that was not insisted on; likewise.
    """

    reason: str
    hint: str = ""
    transient: bool = False
    no_listener: bool = False
    no_proc: bool = False
    no_fuse: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A message of the warden's: the command and everything it started are gone.

    Attributes:
        status: the command's wait status, `None` where process 1 went without telling it.
        exec_errno: the errno by which the command was not executed, 0 when it was.
        incomplete: why the trace has a hole, empty where it has none.
        leftovers: paths, as the task saw them, of what it made beside granted names and left there; in a held directory
            they are there still.
    """

    status: int | None
    exec_errno: int = 0
    timed_out: bool = False
    cpu_ms: float = 0.0
    peak_rss_bytes: int | None = None
    duration_ms: float = 0.0
    incomplete: str = ""
    leftovers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A message of the executor's: send `number` to the command's process group; `SIGKILL` ends the whole sandbox."""

    number: int


Message = Started | SeenAccesses | Failed | Finished | Signal | Spec


#: An operation as plain values: the name of its class, its path, the origin's two fields, the rest.
Row = tuple[str, tuple[Any, ...]]


def _kinds(above: type[Operation]) -> Iterator[type[Operation]]:
    for kind in above.__subclasses__():
        # dataclass(slots=True) makes a second class, and the first one is left without slots
        if "__slots__" in vars(kind):
            yield kind
        yield from _kinds(kind)


_CLASSES = {kind.__name__: kind for kind in _kinds(Operation)}
_REST = {
    name: tuple(one.name for one in fields(kind) if one.name not in {"path", "origin"})
    for name, kind in _CLASSES.items()
}
_VALUES: dict[type[Operation], tuple[str, Callable[[Operation], tuple[Any, ...]]]] = {
    kind: (name, attrgetter("path", "origin.field", "origin.reason", *_REST[name])) for name, kind in _CLASSES.items()
}
# slots are set directly: binds may be thousands, and a frozen class's own constructor takes three times as long
_BIND_PATH, _BIND_ORIGIN, _BIND_DIRECTORY, _BIND_WRITABLE = (
    getattr(Bind, name).__set__ for name in ("path", "origin", "directory", "writable")
)
_ORIGIN_FIELD, _ORIGIN_REASON = (getattr(Origin, name).__set__ for name in ("field", "reason"))


def packed(operations: Iterable[Operation]) -> list[Row]:
    """Rows to send in place of objects, each of which takes as long to pickle as the mount it stands for."""
    return [(name, values(operation)) for operation in operations for name, values in (_VALUES[type(operation)],)]


def unpacked(rows: Iterable[Row]) -> tuple[Operation, ...]:
    """The operations that rows stand for."""
    made: list[Operation] = []
    for name, values in rows:
        origin = object.__new__(Origin)
        _ORIGIN_FIELD(origin, values[1])
        _ORIGIN_REASON(origin, values[2])
        if name == "Bind":
            bind = object.__new__(Bind)
            _BIND_PATH(bind, values[0])
            _BIND_ORIGIN(bind, origin)
            _BIND_DIRECTORY(bind, values[3])
            _BIND_WRITABLE(bind, values[4])
            made.append(bind)
        else:
            rest = dict(zip(_REST[name], values[3:], strict=True))
            made.append(_CLASSES[name](path=values[0], origin=origin, **rest))
    return tuple(made)


def encode(message: Message) -> bytes:
    """A message as a frame."""
    body = encoded(message)
    return _LENGTH.pack(len(body)) + body


def encoded(message: Message) -> bytes:
    """A frame's body, see `decode`."""
    if isinstance(message, Spec):
        # operations are sent apart, as rows
        bare = replace(message, operations=())
        return pickle.dumps((bare, packed(message.operations)), protocol=5)
    return pickle.dumps(message, protocol=5)


@dataclass(slots=True)
class Decoder:
    """A decoder of frames out of a stream, however the stream was cut."""

    _buffer: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> Iterator[Message]:
        """Every message that `data` completes."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield decode(body)


def decode(body: bytes) -> Message:
    """The message in a frame's body."""
    message: Message | tuple[Spec, list[Row]] = pickle.loads(body)  # noqa: S301  both ends are this program
    if isinstance(message, tuple):
        bare, rows = message
        return replace(bare, operations=unpacked(rows))
    return message


def receive_body(connection: socket.socket) -> bytes | None:
    """Wait for a frame and return its body; `None` when the other end is gone."""
    head = _exactly(connection, _LENGTH.size)
    return None if head is None else _exactly(connection, _LENGTH.unpack(head)[0])


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            return None
        data += chunk
    return bytes(data)
