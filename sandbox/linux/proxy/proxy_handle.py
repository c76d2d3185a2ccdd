"""EFFECT: the warden's side of a task's proxy: it starts the proxy with the first connection, and takes its reports."""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import pickle
import select
import socket
import sys
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable

    from sandbox.linux.observe.recorder import Recorder
    from sandbox.proxy.policy.policy import Policy

#: The most descriptors in one word to the proxy; the kernel takes 253 (unix(7), SCM_RIGHTS).
BATCH = 200
#: The descriptor of the socket to the warden, in the proxy's process.
LINK = 3
WORD = 8192
#: To the proxy: judge what still waits. From the proxy: that is done; more was refused than can be told.
SETTLE, SETTLED, HOLE = b"settle", b"settled", b"hole"

OPERATION = "network-outbound"
ONLY_TCP = "the proxy carries TCP alone, and no datagrams"

_BOOT = "import sys; sys.path[:] = {path!r}; from sandbox.linux.proxy.proxy_process import main; main()"
_SETTLE_SECONDS = 30.0
_REACH_SECONDS = 20.0
# the most hosts of datagram sockets that are told at the end; a task that fails for want of datagrams has few
_DATAGRAM_HOSTS_LIMIT = 100
# reports taken in one go, before other descriptors have their turn
_BURST = 64


class ProxyHandle:
    """The proxy of one task, started when a connection first waits at a listener.

    Args:
        inside: a process in the task's network, as the host numbers it.
        watch, unwatch: those of the warden's poll.
        wake: called from another thread when it wants something of the proxy.
    """

    def __init__(
        self,
        policy: Policy,
        inside: int,
        recorder: Recorder,
        *,
        watch: Callable[[int, Callable[[int], object]], None],
        unwatch: Callable[[int], None],
        wake: Callable[[], object],
    ) -> None:
        self._policy = policy
        self._recorder = recorder
        self._watch = watch
        self._unwatch = unwatch
        self._network = os.open(f"/proc/{inside}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self._listeners: list[int] = []
        self._link: socket.socket | None = None
        self._names: dict[str, str] = {}
        self._wake = wake
        self._reached: set[tuple[str, int]] = set()
        self._wanted: deque[tuple[tuple[str, int], LockType]] = deque()
        self._waiting: list[tuple[tuple[str, int], LockType]] = []
        self._datagram_hosts: set[str] = set()
        self._started = self._closing = False

    def name(self, address: str) -> str:
        """The name that an address stands in for, else the address; called from any thread."""
        return self._names.get(address, address)

    def reach(self, address: str, port: int) -> bool:
        """Have the proxy listen at a port of an address of its own; false where it cannot. From any other thread."""
        place, answered = (address, port), _thread.allocate_lock()
        answered.acquire()
        self._wanted.append((place, answered))
        self._wake()
        if not self._closing:
            answered.acquire(timeout=_REACH_SECONDS)
        return place in self._reached

    def ask(self) -> None:
        """Send the proxy what threads want of it."""
        while self._wanted:
            place, answered = self._wanted.popleft()
            self._start()
            self._waiting.append((place, answered))
            try:
                if self._link is None:
                    raise BrokenPipeError
                self._link.send(json.dumps(place).encode())
            except OSError:  # the proxy is gone, or far behind
                self._answer(place)

    def datagram_connected(self, asked: str) -> None:
        """Note that a datagram socket was connected to `host:port` of a stand-in; its messages are told at the end."""
        if len(self._datagram_hosts) < _DATAGRAM_HOSTS_LIMIT:
            self._datagram_hosts.add(asked)

    def catch_up(self) -> None:
        """Read every name the proxy has reported: a task may connect to a stand-in right after it was given."""
        while self._link is not None and self._hear():
            pass

    def _answer(self, *places: tuple[str, int]) -> None:
        """Let threads go on that wait for some places."""
        for one in [one for one in self._waiting if one[0] in places]:
            self._waiting.remove(one)
            one[1].release()

    def take(self, listeners: list[int]) -> None:
        """Wait at more listeners, whose descriptors belong to this object from now on."""
        for fd in listeners:
            self._listeners.append(fd)
            self._watch(fd, lambda _: self._start())

    def settle(self) -> None:
        """Take the last reports once everything inside is gone, and end the proxy."""
        self._closing = True
        self._waiting += self._wanted
        self._wanted.clear()
        self._answer(*(place for place, _ in self._waiting))
        if self._link is None and self._waits():
            self._start()
        if self._link is not None:
            self._settle(self._link)
        self._let_go()
        if self._network >= 0:
            os.close(self._network)
            self._network = -1

    def _waits(self) -> bool:
        poll = select.poll()
        for fd in self._listeners:
            poll.register(fd, select.POLLIN)
        return bool(poll.poll(0))

    def _settle(self, link: socket.socket) -> None:
        end = time.monotonic() + _SETTLE_SECONDS
        with contextlib.suppress(OSError):  # the proxy is gone, which the receive below shows
            link.setblocking(True)
            link.send(SETTLE)
        while self._link is not None:
            left = end - time.monotonic()
            if left <= 0 or not select.select((link,), (), (), left)[0]:
                self._missed("what the network's proxy had to report was not told in time")
                return
            if self._hear() == SETTLED:
                return

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        try:
            self._spawn()
        except OSError as error:
            self._missed(f"the network's proxy could not be started ({error.strerror or error})")
        # the proxy has copies of the listeners from now on, or nobody serves them
        self._let_go()

    def _let_go(self) -> None:
        for fd in self._listeners:
            self._unwatch(fd)
            os.close(fd)
        self._listeners.clear()

    def _spawn(self) -> None:
        link, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        debug = bool(os.environ.get("VXCONF_DEBUG"))
        high = _raised(inside.detach())
        try:
            os.posix_spawn(
                sys.executable,
                (sys.executable, "-I", "-S", "-c", _BOOT.format(path=sys.path)),
                {"LC_ALL": "C.UTF-8", **({"VXCONF_DEBUG": "1"} if debug else {})},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, null, 0),
                    (os.POSIX_SPAWN_DUP2, null, 1),
                    *([] if debug else [(os.POSIX_SPAWN_DUP2, null, 2)]),
                    (os.POSIX_SPAWN_DUP2, high, LINK),
                ],
            )
        except OSError:
            link.close()
            raise
        finally:
            os.close(null)
            os.close(high)
        self._give(link)
        link.setblocking(False)
        self._link = link
        self._watch(link.fileno(), lambda _: self._hear_some())

    def _give(self, link: socket.socket) -> None:
        memory = os.memfd_create("policy", os.MFD_CLOEXEC)
        try:
            with open(memory, "wb", closefd=False) as file:
                file.write(pickle.dumps(self._policy))
            os.lseek(memory, 0, os.SEEK_SET)
            socket.send_fds(link, [b"%d" % len(self._listeners)], [memory, self._network])
        finally:
            os.close(memory)
        for start in range(0, len(self._listeners), BATCH):
            socket.send_fds(link, [b"more"], self._listeners[start : start + BATCH])

    def _hear_some(self) -> None:
        for _ in range(_BURST):
            if self._link is None or not self._hear():
                return

    def _hear(self) -> bytes:
        """Take one word from the proxy; empty when none waits."""
        link = self._link
        if link is None:
            return b""
        try:
            word = link.recv(WORD, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""
        except OSError:
            word = b""
        if not word or word == SETTLED:
            if not word:
                self._missed("the network's proxy ended before the task did")
            self._unwatch(link.fileno())
            link.close()
            self._link = None
            self._answer(*(place for place, _ in self._waiting))
        elif word == HOLE:
            self._missed("more hosts were refused than can be told")
        else:
            self._take(json.loads(word))
        return word

    def _take(self, told: list[str]) -> None:
        kind, first, *rest = told
        if kind == "name":
            for address in rest:
                self._names[address] = first
        elif kind == "listening":
            place = (first, int(rest[0]))
            if rest[1]:
                self._reached.add(place)
            self._answer(place)
        elif kind == "datagrams":
            # a connect alone sends nothing; the kernel counts the datagrams sent, and not where to
            for asked in sorted(self._datagram_hosts):
                self._recorder.connection(0, OPERATION, f"{asked}/udp", reason=ONLY_TCP, refused=False)
        elif kind == "failed":
            self._missed(f"the network's proxy failed: {first}")
        else:
            self._recorder.connection(0, OPERATION, first, reason=rest[0])

    def _missed(self, why: str) -> None:
        self._recorder.missed(why)


def _raised(fd: int) -> int:
    """The descriptor moved above those that a program starts with, close-on-exec."""
    import fcntl

    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, LINK + 1)
    os.close(fd)
    return moved
