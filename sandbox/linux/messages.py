"""What the executor, the supervisor and a warden say to each other.

One socket a run, between the executor and the run's warden: frames of a four-byte length and a pickle. Both
ends are the same program under the same user, and nothing inside a sandbox ever holds the socket.
"""

from __future__ import annotations

import os
import pickle
import struct
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from sandbox.planning.name_grants import GrantedNames
from sandbox.planning.operations import Bind, Operation, Origin
from sandbox.proxy.policy.policy import Policy
from sandbox.request.protected_names import ProtectedNames

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator

    from sandbox.contract.results import Access, Observer
    from sandbox.planning.plan import Plan

#: Why a trace has a hole when its strace ended before the command did; an attempt is made again for nothing else.
LOST = "strace ended before the command did"

_LENGTH = struct.Struct("<I")


class Base(NamedTuple):
    """What a sandbox is begun with, before anything of its task is known.

    Attributes:
        bwrap: absolute path of bubblewrap.
        nested: whether it does without a `/proc` of its own, and shows this one read-only.
    """

    bwrap: str
    nested: bool = False

    def word(self) -> bytes:
        """As the supervisor is told of it."""
        return (b"nested " if self.nested else b"full ") + os.fsencode(self.bwrap)

    @classmethod
    def told(cls, word: bytes) -> Base:
        """The base of a word."""
        kind, _, bwrap = word.partition(b" ")
        return cls(os.fsdecode(bwrap), nested=kind == b"nested")


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """How a task's terminal begins.

    Attributes:
        modes: as `termios.tcgetattr` tells those of the caller's terminal, empty without one.
    """

    rows: int = 24
    columns: int = 80
    modes: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """All a warden needs to build one sandbox and run one command in it.

    Attributes:
        operations: the plan, parents before children.
        boundary: directories in which every look at a hidden name must arrive.
        command: the program and its arguments.
        environment: exactly the command's.
        observer: `auto`, `mask`, `notify`, `strace` or `none`.
        tracer: absolute path of strace, where it is the observer; else empty.
        timeout: seconds for the command, or none; `grace`: seconds between TERM and KILL.
        executed: names no call may make or change.
        granted: what the plan's `Name` and `Names` operations cover.
        held: the plan, where nothing serves its granted names and an observer answers for their directories; `granted`
            is empty then.
        staging: an existing empty directory on the file system of the granted names, for what the task makes beside
            them; empty where the plan grants no name.
        network: which hosts, ports and sockets are reached; nothing unless told.
        screen: the terminal the command gets; its standard input is then a socket to send the terminal's ends over.
        nested: whether the sandbox's base is a nested one.
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
    held: Plan | None = None
    staging: str = ""
    network: Policy = field(default_factory=Policy)
    screen: Screen | None = None
    nested: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The command is about to be executed behind finished walls."""

    pid: int
    observer: Observer


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenAccesses:
    """Calls observed since the last such message, each distinct one once."""

    accesses: tuple[Access, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Nothing of the command ran.

    Attributes:
        transient: whether a second attempt may succeed (a mount vanished while it was copied).
        unheard: the kernel refuses the filter a listener.
        masked: it refuses a `/proc` of the task's own, and `reason` is its word alone.
        unfused: likewise a FUSE file system, where one was not insisted on.
    """

    reason: str
    hint: str = ""
    transient: bool = False
    unheard: bool = False
    masked: bool = False
    unfused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The command and everything it started are gone.

    Attributes:
        status: the command's wait status, `None` when process 1 went without telling it.
        exec_errno: why the command could not be executed, 0 when it was.
        incomplete: why the trace has a hole, empty when it has none.
        leftovers: what the task made beside granted names and left there, as it saw the paths; in a held directory it
            is there still.
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
    """From the executor: send `number` to the command's group; `SIGKILL` ends the whole sandbox."""

    number: int


Message = Started | SeenAccesses | Failed | Finished | Signal | Spec


#: An operation as plain values: its class's name, path, the origin's two, the rest.
Row = tuple[str, tuple[Any, ...]]


def _kinds(above: type[Operation]) -> Iterator[type[Operation]]:
    for kind in above.__subclasses__():
        # a class with slots was made twice, and the first has none
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
# the slots themselves: of binds there may be thousands, and a frozen class's own way takes three times as long
_BIND_PATH, _BIND_ORIGIN, _BIND_DIRECTORY, _BIND_WRITABLE = (
    getattr(Bind, name).__set__ for name in ("path", "origin", "directory", "writable")
)
_ORIGIN_FIELD, _ORIGIN_REASON = (getattr(Origin, name).__set__ for name in ("field", "reason"))


def packed(operations: Iterable[Operation]) -> list[Row]:
    """Rows to send instead of objects, each of which costs as much to pickle as the mount it stands for."""
    return [(name, values(operation)) for operation in operations for name, values in (_VALUES[type(operation)],)]


def unpacked(rows: Iterable[Row]) -> tuple[Operation, ...]:
    """The operations again."""
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
    """One frame."""
    body = encoded(message)
    return _LENGTH.pack(len(body)) + body


def encoded(message: Message) -> bytes:
    """A frame's body, see `decode`."""
    if isinstance(message, Spec):
        # the operations apart, as rows
        bare = replace(message, operations=())
        return pickle.dumps((bare, packed(message.operations)), protocol=5)
    return pickle.dumps(message, protocol=5)


@dataclass(slots=True)
class Decoder:
    """Frames out of a stream, however it was cut."""

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
    """A frame's body."""
    message: Message | tuple[Spec, list[Row]] = pickle.loads(body)  # noqa: S301  both ends are ours
    if isinstance(message, tuple):
        bare, rows = message
        return replace(bare, operations=unpacked(rows))
    return message


def receive_body(connection: socket.socket) -> bytes | None:
    """Block for the body of one frame; `None` when the other end is gone."""
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
