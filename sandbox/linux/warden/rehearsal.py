"""EFFECT: a rehearsal of a task, with nothing of a task.

After a fork the first write to each page costs a copy of it, and counting references is a write. A spare runs through
the code of a task while it waits, so that those copies are made before a task comes.
"""

from __future__ import annotations

import contextlib
import functools
import os
import struct

from sandbox.linux.caller.caller_memory import Caller, UnreadableMemory
from sandbox.linux.kernel import fuse_protocol
from sandbox.linux.kernel.fuse_protocol import Op
from sandbox.linux.kernel.syscall_numbers import ARCHITECTURES
from sandbox.linux.observe.recorder import Recorder
from sandbox.linux.warden.request_loop import RequestLoop
from sandbox.linux.warden_messages import Finished, Spec, Started, decode, encode, encoded
from sandbox.planning.operations import Bind, Cover, Origin, ReadOnlyRoot, Seal

_HEADER = struct.Struct("<IIQQIIIHH")
_ABOVE, _PLACE = fuse_protocol.ROOT, fuse_protocol.ROOT + 1
_PLUS = struct.pack("<QQIIQII", 0, 0, 4096, 0, 0, 0, 0)
_REQUESTS = (
    (Op.INIT, 0, struct.pack("<4I", fuse_protocol.MAJOR, fuse_protocol.MINOR, 0, 0)),
    (Op.LOOKUP, _ABOVE, b"home\0"),
    (Op.OPENDIR, _PLACE, bytes(8)),
    (Op.READDIRPLUS, _PLACE, _PLUS),
)


@functools.cache
def spec() -> bytes:
    """A spec that nobody runs, encoded."""
    origin = Origin(reason="rehearsed")
    operations = (
        ReadOnlyRoot(path="/", origin=origin),
        Cover(path="/home", origin=origin),
        Bind(path="/home/file", origin=origin, directory=False),
        Seal(path="/home/secret", origin=origin),
    )
    environment = {"PATH": "/usr/bin"}
    return encoded(Spec(operations=operations, boundary=(), command=("true",), environment=environment, cwd="/"))


def serve() -> None:
    """Read a spec in a warden, and answer the requests that the kernel makes first."""
    read = decode(spec())
    if not isinstance(read, Spec):
        return
    requests = RequestLoop(read.operations, read.boundary, Recorder(ARCHITECTURES[os.uname().machine]))
    for word in (Started(pid=0, observer="mask"), Finished(status=0)):
        encode(word)
    with contextlib.suppress(OSError, UnreadableMemory):  # no descriptor is left: the task will be told
        nobody = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            requests.rehearse(nobody, [_request(*one) for one in _REQUESTS])
            with Caller(os.getpid()) as caller:
                os.close(caller.descriptor(nobody))
        finally:
            os.close(nobody)


def _request(op: int, node: int, body: bytes) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), op, 1, node, 0, 0, 0, 0, 0) + body
