"""Tries to get a message to sockets of the host's by being quicker than who looks; prints what it found as JSON."""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import json
import os
import socket
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LIBC = ctypes.CDLL(None, use_errno=True)
STREAM, LETTERS, LISTED = sys.argv[2:5]
TEMP = os.environ["TMPDIR"]
SECONDS = 1.5
told: dict[str, object] = {}


def name(path: str) -> bytes:
    return struct.pack("H", 1) + path.encode() + b"\0"


def own(kind: int, path: str) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, kind)
    server.bind(path)
    if kind != socket.SOCK_DGRAM:
        server.listen(128)
    return server


class Flip:
    """While it stands, a thread writes two things in turn over the same memory, or does two things in turn."""

    def __init__(self, one: Callable[[], object], other: Callable[[], object]) -> None:
        self._stop = False

        def turn() -> None:
            while not self._stop:
                one()
                other()

        self._thread = threading.Thread(target=turn)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop = True
        self._thread.join()


def until(work: Callable[[], object]) -> int:
    """As often as there is time; how often."""
    end, count = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            work()
        count += 1
    return count


def accepting(server: socket.socket) -> None:
    """Whoever comes is let in and sent away, so that nobody waits."""

    def accept() -> None:
        while True:
            server.accept()[0].close()

    threading.Thread(target=accept, daemon=True).start()


def flipped_address(kind: int, mine: str, target: str) -> None:
    """The address in memory changes between the look and the act."""
    good, bad = name(mine), name(target)
    size = max(len(good), len(bad))
    memory = ctypes.create_string_buffer(good.ljust(size, b"\0"), size)

    def put(raw: bytes) -> None:
        ctypes.memmove(memory, raw.ljust(size, b"\0"), size)

    def connect() -> None:
        with socket.socket(socket.AF_UNIX, kind) as s:
            LIBC.connect(s.fileno(), memory, size)
            s.setblocking(False)
            s.send(b"raced")

    with Flip(lambda: put(good), lambda: put(bad)):
        told[f"tries of a flipped address, kind {kind}"] = until(connect) > 0


def swapped_link(target: str) -> None:
    """The name leads elsewhere by the time it is followed."""
    link = TEMP + "/swapped"
    os.symlink(TEMP + "/stream", link + ".good")
    os.symlink(target, link + ".bad")

    def turn(which: str) -> None:
        os.link(link + which, link + ".new", follow_symlinks=False)
        os.rename(link + ".new", link)

    def connect() -> None:
        with socket.socket(socket.AF_UNIX) as s:
            s.setblocking(False)
            s.connect(link)
            s.send(b"raced")

    turn(".good")
    with Flip(lambda: turn(".good"), lambda: turn(".bad")):
        told["tries of a swapped link"] = until(connect) > 0


def swapped_directory(target: str) -> None:
    """The directory on the way is exchanged for a link to the host's."""
    os.mkdir(TEMP + "/way")
    keeper = own(socket.SOCK_STREAM, f"{TEMP}/way/{os.path.basename(target)}")
    os.symlink(os.path.dirname(target), TEMP + "/elsewhere")

    def exchange() -> None:
        LIBC.renameat2(-100, (TEMP + "/way").encode(), -100, (TEMP + "/elsewhere").encode(), 2)

    def connect() -> None:
        with socket.socket(socket.AF_UNIX) as s:
            s.setblocking(False)
            s.connect(f"{TEMP}/way/{os.path.basename(target)}")
            s.send(b"raced")

    with Flip(exchange, exchange):
        told["tries of a swapped directory"] = until(connect) > 0
    keeper.close()


def swapped_descriptor(target: str) -> None:
    """A look at an innocent socket, while the number comes to mean one that could be turned to the host's."""
    to_host = name(target)
    memory = ctypes.create_string_buffer(to_host, len(to_host))
    data = ctypes.create_string_buffer(b"raced", 5)
    part = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(data), 5), 16)
    header = bytearray(struct.pack("QixxxxQQQQixxxx", ctypes.addressof(memory), 0, ctypes.addressof(part), 1, 0, 0, 0))
    shared = (ctypes.c_char * len(header)).from_buffer(header)
    pair = socket.socketpair()
    number = os.dup(pair[0].fileno())

    def drain() -> None:
        with contextlib.suppress(OSError):
            while pair[1].recv(65536):
                pass

    reader = threading.Thread(target=drain)
    reader.start()
    letters: list[socket.socket] = []

    def harmless() -> None:
        struct.pack_into("i", header, 8, 0)
        os.dup2(pair[0].fileno(), number)

    def harmful() -> None:
        if not letters:
            # the first one, made while sends that were let go are still on their way
            with contextlib.suppress(OSError):
                letters.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        if letters:
            os.dup2(letters[0].fileno(), number)
        struct.pack_into("i", header, 8, len(to_host))

    def send() -> None:
        LIBC.sendmsg(number, shared, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    senders = [threading.Thread(target=until, args=(send,)) for _ in range(3)]
    for sender in senders:
        sender.start()
    with Flip(harmless, harmful):
        told["tries of a swapped descriptor"] = until(send) > 0
    for sender in senders:
        sender.join()
    told["tries with a datagram socket"] = bool(letters)
    os.close(number)
    pair[0].shutdown(socket.SHUT_RDWR)
    reader.join()


def mixed(target: str) -> None:
    """Among the messages of one call some are for the host, and the rest arrives."""
    server = own(socket.SOCK_DGRAM, TEMP + "/mixed")
    server.setblocking(False)
    keep: list[ctypes.Array[ctypes.c_char]] = []
    raw = b""
    for path in (TEMP + "/mixed", target, TEMP + "/mixed"):
        to, data = name(path), b"mixed"
        buffers = [ctypes.create_string_buffer(piece, len(piece)) for piece in (to, data)]
        part = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(buffers[1]), len(data)), 16)
        keep += [*buffers, part]
        raw += struct.pack(
            "QixxxxQQQQixxxx8x", ctypes.addressof(buffers[0]), len(to), ctypes.addressof(part), 1, 0, 0, 0
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        told["sent of three"] = LIBC.sendmmsg(client.fileno(), raw, 3, 0)
    told["arrived"] = server.recv(9).decode()
    try:
        server.recv(9)
    except BlockingIOError:
        told["arrived after"] = "nothing"


def passed_on(target: str) -> None:
    """A connection made in a child, or through a descriptor that was sent, is one all the same."""
    one, other = socket.socketpair()
    with socket.socket(socket.AF_UNIX) as s:
        socket.send_fds(one, [b"x"], [s.fileno()])
    _, fds, _, _ = socket.recv_fds(other, 9, 1)
    with socket.socket(fileno=fds[0]) as got:
        attempt("a descriptor that was sent", lambda: got.connect(target))
    child = os.fork()
    if child == 0:
        with socket.socket(socket.AF_UNIX) as s:
            os._exit(s.connect_ex(target))
    told["a child"] = errno.errorcode.get(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "done")


def attempt(label: str, what: Callable[[], object]) -> None:
    try:
        what()
        told[label] = "done"
    except OSError as error:
        told[label] = errno.errorcode.get(error.errno or 0, str(error.errno))


def undumpable(target: str) -> None:
    """One that forbids being read is refused what cannot be looked at."""
    child = os.fork()
    if child == 0:
        LIBC.prctl(4, 0, 0, 0, 0)
        with socket.socket(socket.AF_UNIX) as s:
            os._exit(s.connect_ex(target))
    told["undumpable"] = errno.errorcode.get(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "done")


def spelled(target: str) -> None:
    folder, base = os.path.split(target)
    directory = os.open(folder, os.O_PATH)
    names = {
        "by a descriptor": f"/proc/self/fd/{directory}/{base}",
        "by the root": f"/proc/self/root{target}",
        "by another's root": f"/proc/1/root{target}",
        "by dots": f"{TEMP}/../../../../../../../../../..{target}",
        "by slashes": target.replace("/", "//"),
        "by /proc": f"/proc/thread-self/root/{target}",
    }
    for label, path in names.items():
        with socket.socket(socket.AF_UNIX) as s:
            attempt(label, lambda s=s, path=path: s.connect(path))  # type: ignore[misc]
    os.chdir(folder)
    with socket.socket(socket.AF_UNIX) as s:
        attempt("by the working directory", lambda: s.connect(base))
    os.chdir("/")
    attempt("linked into its own place", lambda: os.link(target, TEMP + "/linked"))
    attempt("renamed into its own place", lambda: os.rename(target, TEMP + "/renamed"))


def handed() -> None:
    """What a listed server hands over: a socket of its own network, and datagrams to anywhere by it."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(LISTED)
        _, fds, _, _ = socket.recv_fds(s, 9, 2)
    letters, inet = (socket.socket(fileno=fd) for fd in fds)
    attempt("a handed socket to a path", lambda: letters.sendto(b"raced", LETTERS))
    attempt("a handed socket's message to a path", lambda: letters.sendmsg([b"raced"], [], 0, LETTERS))
    attempt("a handed socket to an abstract name", lambda: letters.sendto(b"raced", bytes.fromhex(sys.argv[7])))
    attempt("a handed socket to a port", lambda: inet.sendto(b"raced", ("127.0.0.1", int(sys.argv[5]))))
    attempt("a handed socket connected", lambda: inet.connect(("127.0.0.1", int(sys.argv[5]))))


def flooded() -> None:
    """Far more blocked connects than there are threads for them still leave the others their turn, once they end."""
    busy = own(socket.SOCK_STREAM, TEMP + "/busy")
    busy.listen(0)
    children = []
    for _ in range(100):
        child = os.fork()
        if child == 0:
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(TEMP + "/busy")
            os._exit(0)
        children.append(child)
    with socket.socket(socket.AF_UNIX) as s:
        attempt("while many wait", lambda: s.connect(TEMP + "/stream"))
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)
    rights = array.array("i", [0] * 300)
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    attempt("too many descriptors", lambda: one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]))
    attempt("no such descriptor", lambda: one.sendmsg([b"x"], [(1, 1, array.array("i", [999]))]))
    attempt("a control message too long", lambda: one.sendmsg([b"x"], [(1, 77, bytes(200_000))]))
    raw = ctypes.create_string_buffer(os.urandom(4096), 4096)
    for at in range(0, 4000, 8):
        LIBC.sendmsg(one.fileno(), ctypes.byref(raw, at), socket.MSG_DONTWAIT)
        LIBC.sendmmsg(one.fileno(), ctypes.byref(raw, at), 3, socket.MSG_DONTWAIT)
        LIBC.connect(one.fileno(), ctypes.byref(raw, at), at % 140)
    told["still there"] = True


stream = own(socket.SOCK_STREAM, TEMP + "/stream")
if sys.argv[6] == "descriptor":
    swapped_descriptor(LETTERS)
else:
    accepting(stream)
    spelled(STREAM)
    passed_on(STREAM)
    undumpable(STREAM)
    flipped_address(socket.SOCK_STREAM, TEMP + "/stream", STREAM)
    swapped_link(STREAM)
    swapped_directory(STREAM)
    letters = own(socket.SOCK_DGRAM, TEMP + "/letters")
    threading.Thread(target=lambda: [letters.recv(9) for _ in iter(int, 1)], daemon=True).start()
    flipped_address(socket.SOCK_DGRAM, TEMP + "/letters", LETTERS)
    mixed(LETTERS)
    handed()
    flooded()
sys.stdout.write(json.dumps(told))
sys.stdout.flush()
os._exit(0)
