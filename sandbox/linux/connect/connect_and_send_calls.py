"""EFFECT: connects and sends that the warden makes for a task, on copies of its sockets, to targets it may reach.

Invariants:
1. A call that could take a socket of the task's to a path of the host's never goes on. The warden makes it, with a copy
   of the address and on a copy of the descriptor, so that nothing the caller changes meanwhile counts.
2. Every call is answered, whatever fails in between, and fails closed.
3. A call that waits (for a full backlog, a slow reader) waits in a thread of its own, and ends with its caller. A
   connect to a host is made at once where the caller's memory may be read at once and the host is there.
"""

from __future__ import annotations

import _thread
import errno
import fcntl
import os
import socket
import struct
from typing import TYPE_CHECKING

from sandbox.linux.caller import caller_memory
from sandbox.linux.caller.caller_memory import Caller
from sandbox.linux.caller.worker_threads import WorkerThreads
from sandbox.linux.connect import send_call
from sandbox.linux.connect.allowed_targets import HOSTS, AllowedTargets
from sandbox.linux.connect.connect_call import at_once, connected, pending
from sandbox.linux.connect.inflight_calls import InflightCalls
from sandbox.linux.connect.reported_connections import ReportedConnections
from sandbox.linux.connect.send_call import WaitingCall
from sandbox.linux.connect.sockets_of_task import SocketsOfTask
from sandbox.linux.kernel import kernel_calls, seccomp_notification, sockaddr
from sandbox.linux.kernel.observed_syscalls import signed

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.linux.connect.stand_in_ports import StandInPorts
    from sandbox.linux.kernel.seccomp_notification import Notification
    from sandbox.linux.observe.recorder import Recorder
    from sandbox.proxy.policy.policy import Policy

#: The most calls that wait at once; any further call waits for one of these.
_THREADS = 256
_SETTLE_SECONDS = 5.0
_MESSAGES = frozenset({"sendmsg", "sendmmsg"})
_SENDS = _MESSAGES | {"sendto"}
_MAKES = frozenset({"socket", "socketpair"})


def _error(code: int) -> OSError:
    return OSError(code, os.strerror(code))


class SocketCalls:
    """The socket calls of one task.

    Args:
        missed: called with the error of a call that could not be read or made.
        wake: called from another thread when something was recorded.
        proxy: the task's own proxy.

    Attributes:
        own: the threads that work for the task; lookups of theirs in the mask are not the task's.
    """

    def __init__(
        self,
        policy: Policy,
        recorder: Recorder,
        *,
        missed: Callable[[Exception], object],
        wake: Callable[[], object],
        proxy: StandInPorts,
    ) -> None:
        self.own: set[int] = set()
        self._recorder = recorder
        self._outbound = ReportedConnections(policy, recorder, proxy)
        self._proxy = proxy
        self._reached: set[tuple[str, int]] = set()
        self._missed = missed
        self._wake = wake
        architecture = recorder.architecture
        self._calls = {architecture.numbers[name]: name for name in ("connect", *_SENDS, *_MAKES)}
        self._datagrams = False
        self._inflight = InflightCalls(frozenset(architecture.numbers[name] for name in _SENDS))
        # the lock is held while a call is let go, so that the first datagram socket is made before that or after it
        self._lock = _thread.allocate_lock()
        self._making = _thread.allocate_lock()
        self._threads = WorkerThreads(_THREADS, missed)
        self._listener = -1
        self._targets = AllowedTargets(policy, recorder, self._first_datagrams)

    def open(self, listener: int) -> None:
        """Answer the calls that wait at `listener`."""
        self._listener = listener

    def ask(self, network: socket.socket, first: int) -> None:
        """Learn of the task's own sockets through a netlink socket of its network; `first` is its process 1."""
        self._targets.sockets = SocketsOfTask(network, first)

    def takes(self, seen: Notification) -> bool:
        """Whether a notified call is a socket call; in any case its thread is done with the call before."""
        self._inflight.arrived(seen.pid)
        return seen.number in self._calls

    def serve(self, seen: Notification, *, readable: bool) -> None:
        """Answer a call.

        Args:
            seen: the call.
            readable: whether this thread, which also serves the mask, may read the caller's memory.
        """
        name = self._calls[seen.number]
        if name not in _MAKES:
            self._proxy.catch_up()
        if seen.pid and (
            (name in _MAKES and self._datagrams) or (readable and name in _MESSAGES and self._plain(seen))
        ):
            if name in _MAKES:
                self._tell(seccomp_notification.go_on(seen.id))
                return
            if self._let_go(seen):
                return
        if readable and name == "connect" and self._answer(seen, self._connected_at_once):
            return
        try:
            self._threads.do(lambda: self._answer_in_thread(seen))
        except RuntimeError as error:
            self._missed(error)
            self._tell(seccomp_notification.fail(seen.id, errno.EAGAIN))

    def settle(self, seconds: float) -> bool:
        """Wait until every call was answered; false where one was not within `seconds`."""
        return self._threads.settle(seconds)

    def _plain(self, seen: Notification) -> bool:
        """Whether none of a call's messages has an address."""
        if self._datagrams:
            return False
        count = min(seen.args[2] & 0xFFFFFFFF, sockaddr.IOV_MAX) if self._calls[seen.number] == "sendmmsg" else 1
        size = sockaddr.MMSGHDR_SIZE
        try:
            memory = os.open(f"/proc/{seen.pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
            try:
                raw = os.pread(memory, size * count, seen.args[1])
            finally:
                os.close(memory)
        except (OSError, OverflowError):
            return False
        # an unreadable header has no address: the call itself answers EFAULT
        whole = range(0, len(raw) - sockaddr.MSGHDR_SIZE + 1, size)
        return not any(sockaddr.header(raw[at : at + size]).addressed for at in whole)

    def _let_go(self, seen: Notification) -> bool:
        """Let a send go on, unless the task has a socket by now that an address could turn elsewhere."""
        with self._lock:
            if self._datagrams:
                return False
            self._inflight.let_go(seen.pid)
            self._tell(seccomp_notification.go_on(seen.id))
            return True

    def _tell(self, answer: bytes) -> None:
        try:
            fcntl.ioctl(self._listener, seccomp_notification.SEND, bytearray(answer))
        except OSError as error:
            if error.errno != errno.ENOENT:  # ENOENT: the caller was killed
                raise

    def _answer_in_thread(self, seen: Notification) -> None:
        """Answer a call in a thread of its own."""
        self._answer(seen, self._entered)
        if self._recorder.waiting:
            self._wake()

    def _answer(self, seen: Notification, made: Callable[[Notification], int | None]) -> bool:
        """Answer a call with what `made` returns or raises; false where `None` leaves the answer to others."""
        try:
            value = made(seen)
            if value is None:
                return False
            answer = seccomp_notification.value(seen.id, value)
        except OSError as error:
            answer = seccomp_notification.fail(seen.id, error.errno or errno.EIO)
        except Exception as error:  # noqa: BLE001  the caller must be answered in any case
            self._missed(error)
            answer = seccomp_notification.fail(seen.id, errno.EPERM)
        self._tell(answer)
        return True

    def _entered(self, seen: Notification) -> int | None:
        self._enter()
        return self._made(seen)

    def _connected_at_once(self, seen: Notification) -> int | None:
        """Connect to a host; `None` where a thread has to do it, since the target is no host or takes its time."""
        if seen.pid == 0:
            return None
        with Caller(seen.pid) as caller, caller.socket(signed(seen.args[0])) as sock:
            if sock.family not in HOSTS:
                return None
            self._still(seen)
            raw = caller.address(seen.args[1], seen.args[2])
            if int.from_bytes(raw[:2], "little") not in HOSTS:
                return None
            with self._targets.of(caller, sock, raw, "connect") as (address, inet):
                if self._place_to_open(sock, inet):
                    return None
                code = at_once(self._waiting(seen, caller, sock), address)
                if code is not None:
                    self._connect_ended(caller, sock, inet, code)
        return code

    def _enter(self) -> None:
        thread = _thread.get_native_id()
        if thread not in self.own:
            self.own.add(thread)
            # a socket's file is opened under the mode bits that the task itself would meet
            kernel_calls.drop_file_capabilities()

    def _made(self, seen: Notification) -> int | None:
        """Make a call; its result, or `None` where it was told to go on."""
        name = self._calls[seen.number]
        if seen.pid == 0:
            raise caller_memory.UnreadableMemory("a notified call could not be attributed")
        if name in _MAKES:
            self._first_datagrams()
            self._tell(seccomp_notification.go_on(seen.id))
            return None
        if name in _MESSAGES and self._plain(seen) and self._let_go(seen):
            return None
        with Caller(seen.pid) as caller, caller.socket(signed(seen.args[0])) as sock:
            self._still(seen)
            if name == "connect":
                return self._connect(seen, caller, sock)
            if name == "sendto" and sock.family == sockaddr.AF_NETLINK and self._let_go(seen):
                return None
            return self._send(seen, caller, sock, name)

    def _still(self, seen: Notification) -> None:
        """Raise `OSError` unless the call still waits: its caller's number may be another's (seccomp_unotify(2))."""
        fcntl.ioctl(self._listener, seccomp_notification.ID_VALID, struct.pack("<Q", seen.id))

    def _first_datagrams(self) -> None:
        """Wait, before there is an AF_UNIX datagram socket, until each send that was let go has its socket."""
        with self._making:
            if self._datagrams:
                return
            with self._lock:
                self._datagrams = True
            if not self._inflight.settle(_SETTLE_SECONDS):
                with self._lock:
                    self._datagrams = False
                raise _error(errno.ENOBUFS)

    def _waiting(self, seen: Notification, caller: Caller, sock: socket.socket, flags: int = 0) -> WaitingCall:
        status = fcntl.fcntl(sock.fileno(), fcntl.F_GETFL)
        nonblocking = bool(status & os.O_NONBLOCK or flags & socket.MSG_DONTWAIT)
        return WaitingCall(caller, sock, lambda: self._still(seen), nonblocking=nonblocking)

    def _connect(self, seen: Notification, caller: Caller, sock: socket.socket) -> int:
        raw = caller.address(seen.args[1], seen.args[2])
        with self._targets.of(caller, sock, raw, "connect") as (address, inet):
            if self._listens(sock, inet):
                code = connected(self._waiting(seen, caller, sock), address)
            else:
                code = errno.ECONNREFUSED
            self._connect_ended(caller, sock, inet, code)
        return 0

    def _place_to_open(self, sock: socket.socket, inet: sockaddr.Inet | None) -> tuple[str, int] | None:
        """Where the proxy must listen for a stream's target and is not known to; `None` where it need not."""
        if inet is None or sock.type != socket.SOCK_STREAM:
            return None
        place = self._outbound.place(inet)
        return None if place in self._reached else place

    def _listens(self, sock: socket.socket, inet: sockaddr.Inet | None) -> bool:
        """Whether the proxy listens where it must; without that the connect may lead to a server of the task's own."""
        place = self._place_to_open(sock, inet)
        if place is None:
            return True
        if not self._proxy.reach(*place):
            return False
        self._reached.add(place)
        return True

    def _connect_ended(self, caller: Caller, sock: socket.socket, inet: sockaddr.Inet | None, code: int) -> None:
        """Report a connect that came to an errno, 0 for none.

        Raises:
            OSError: the errno is not 0.
        """
        stream = sock.type == socket.SOCK_STREAM
        # a proxy that listens there reports its refusals itself
        if inet is not None and not (stream and self._outbound.place(inet) in self._reached):
            told = pending(sock) if code == errno.EINPROGRESS else code
            self._outbound.ended(caller.thread, inet, told, sends=stream)
        if code:
            raise _error(code)

    def _send(self, seen: Notification, caller: Caller, sock: socket.socket, name: str) -> int:
        if name == "sendto":
            flags = seen.args[3] & 0xFFFFFFFF
            raw = caller.address(seen.args[4], seen.args[5])
            waiting = self._waiting(seen, caller, sock, flags)
            return self._message(waiting, raw, [(seen.args[1], seen.args[2])], control=b"", flags=flags, call=name)
        flags = (seen.args[2] if name == "sendmsg" else seen.args[3]) & 0xFFFFFFFF
        waiting = self._waiting(seen, caller, sock, flags)
        if name == "sendmsg":
            return self._headed(waiting, seen.args[1], flags, name)
        done = 0
        for index in range(min(seen.args[2] & 0xFFFFFFFF, sockaddr.IOV_MAX)):
            at = seen.args[1] + index * sockaddr.MMSGHDR_SIZE
            try:
                sent = self._headed(waiting, at, flags, name)
                caller.write(at + sockaddr.MMSG_SENT, sent.to_bytes(4, "little"))
            except OSError:
                if done:
                    return done
                raise
            done += 1
        return done

    def _headed(self, waiting: WaitingCall, at: int, flags: int, call: str) -> int:
        caller = waiting.caller
        header = sockaddr.header(caller.read(at, sockaddr.MSGHDR_SIZE))
        if header.name_size < 0:
            raise _error(errno.EINVAL)
        raw = caller.address(header.name, min(header.name_size, sockaddr.STORAGE)) if header.addressed else b""
        parts, control = send_call.parts_of(caller, header), send_call.control_of(caller, header)
        return self._message(waiting, raw, parts, control=control, flags=flags, call=call)

    def _message(
        self, waiting: WaitingCall, raw: bytes, parts: list[tuple[int, int]], *, control: bytes, flags: int, call: str
    ) -> int:
        caller, sock = waiting.caller, waiting.sock
        if sock.family == sockaddr.AF_NETLINK:
            return send_call.question(waiting, raw, parts, flags)
        if not raw:
            return send_call.message(waiting, parts, name=b"", control=control, flags=flags)
        with self._targets.of(caller, sock, raw, call) as (address, inet):
            stream, sent, code = sock.type == socket.SOCK_STREAM, 0, errno.ECONNREFUSED
            if inet is None or (self._listens(sock, inet) if stream else not self._outbound.stands_in(inet)):
                try:
                    sent, code = send_call.message(waiting, parts, name=address, control=control, flags=flags), 0
                except OSError as error:
                    code = error.errno or errno.EIO
            if inet is not None:
                self._outbound.ended(caller.thread, inet, code, sends=True, datagram=not stream)
        if code:
            raise _error(code)
        return sent
