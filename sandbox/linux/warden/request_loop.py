"""EFFECT: answers to a task's requests on two descriptors: those to the mask, and calls that wait at the listener."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import select
import socket
import sys
import time
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.linux.caller.worker_threads import WorkerThreads
from sandbox.linux.connect.connect_and_send_calls import SocketCalls
from sandbox.linux.connect.stand_in_ports import NoProxyYet
from sandbox.linux.kernel import fuse_protocol, kernel_calls, observed_syscalls, seccomp_notification
from sandbox.linux.kernel.fuse_protocol import Op
from sandbox.linux.mask.mask_tree import MaskTree, SeenRequest
from sandbox.linux.mask.served.file_operations import SlowCall
from sandbox.linux.mask.served.passthrough_server import PassthroughServer
from sandbox.linux.names.handed_in import handed_in
from sandbox.linux.names.mounter import Mounter
from sandbox.linux.names.name_calls import NameCalls
from sandbox.linux.names.read_call import HandedDescriptor, ReadCall
from sandbox.linux.names.shown_names import ShownNames
from sandbox.linux.names.write_opens import WriteOpens
from sandbox.linux.observe.recorder import CallAnswer
from sandbox.linux.warden.mode_calls import ModeCalls
from sandbox.planning.operations import Bind, Empty
from sandbox.planning.served_and_staged_names import GrantedNames
from sandbox.proxy.policy.policy import Policy
from sandbox.request.protected_names import ProtectedNames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sandbox.linux.caller.call_paths import NamedPath
    from sandbox.linux.connect.stand_in_ports import StandInPorts
    from sandbox.linux.observe.recorder import Recorder
    from sandbox.planning.operations import Operation

# the largest WRITE that the mask announces, its header, and the least that the kernel asks for (FUSE_MIN_READ_BUFFER)
_READ_SIZE = (1 << 20) + 4096 + 8192
# requests served in one go, before other descriptors have their turn
_BURST = 64
_DISK_THREADS = 4
_SETTLE_SECONDS = 5.0
_LOOK_SECONDS = 0.02


class RequestLoop:
    """Answers requests and notified calls, and hands each to the recorder.

    Where names are served from the host, a caller's memory may be pages of a served file, and a read of it waits until
    this process answers. A thread therefore reads such callers, while the loop goes on.

    Args:
        operations: the plan, which says what the mask shows.
        boundary: directories in which every lookup of a hidden name must arrive; elsewhere the kernel may remember it.
        granted, staging, executed: see `Spec`.
        wake: called from another thread when an access was recorded.
        network: what the task may connect to.
        proxy: the task's own proxy.
    """

    def __init__(
        self,
        operations: tuple[Operation, ...],
        boundary: tuple[str, ...],
        recorder: Recorder,
        *,
        granted: GrantedNames | None = None,
        staging: str = "",
        executed: ProtectedNames | None = None,
        wake: Callable[[], object] = lambda: None,
        network: Policy | None = None,
        proxy: StandInPorts | None = None,
    ) -> None:
        slashed = tuple(directory.rstrip("/") + "/" for directory in boundary)
        # directories above a boundary must not be remembered as missing either: no lookup would get past them
        above = frozenset(parent for directory in boundary for parent in paths.parents(directory))
        self._tree = MaskTree(
            operations,
            remember_missing=lambda path: not (path + "/").startswith(slashed) and path not in above,
        )
        self._bound = {one.path for one in operations if isinstance(one, (Bind, Empty))}
        self._granted = granted
        self._staging = staging
        self._executed = executed
        self._server: PassthroughServer | None = None
        self._names: NameCalls | None = None
        self._recorder = recorder
        self._wake = wake
        self._callers = WorkerThreads(1, self._missed)
        self._disk = WorkerThreads(_DISK_THREADS, self._missed)
        self._sockets = SocketCalls(
            network or Policy(),
            recorder,
            missed=self._missed,
            wake=wake,
            proxy=proxy or NoProxyYet(),
        )
        self._modes = ModeCalls(recorder.architecture, self._sockets.own, missed=self._missed)
        self._opens = WriteOpens(operations, recorder.architecture, self._sockets.own, missed=self._missed)
        self._mask = -1
        self._listener = -1
        self._owner = (0, 0)
        self._time = time.time_ns()
        # memory is used for the pages that are read into, and few requests need more than one
        self._buffer = mmap.mmap(-1, _READ_SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._view = memoryview(self._buffer)

    def open_mask(self, device: int, uid: int, gid: int) -> int:
        """Serve the mask from `device`; everything in it belongs to `uid` and `gid`."""
        # a request may be withdrawn between poll and read, and a read that blocks would then stop the loop
        os.set_blocking(device, False)
        self._mask, self._owner = device, (uid, gid)
        self._recorder.tree.masked = True
        if self._granted:
            self._server = PassthroughServer(self._tree, self._granted, self._staging, self._executed)
            self._recorder.tree.staged = self._server.staged_link
            # files are handled from here on under the task's own rights, and with the mode bits it asks for
            os.umask(0)
            kernel_calls.drop_file_capabilities()
            sys.setswitchinterval(0.0005)
        return device

    def open_names(self, tree: int, mounts: int) -> None:
        """Answer for granted names where no mask serves them.

        Args:
            tree: a writable descriptor of the file system that shows the plan's covers.
            mounts: the task's mount namespace.
        """
        mounter = Mounter(mounts)
        shown = ShownNames(
            tree,
            (path for path in self._tree.directories().values() if path not in self._bound),
            self._granted or GrantedNames(),
            area=self._staging,
            mounter=mounter,
            executed=self._executed or ProtectedNames(),
        )
        self._names = NameCalls(shown)
        self._recorder.tree.refresh = shown.refresh_at
        self._recorder.learn_names(shown.made, shown.is_seen, shown.is_way)
        # files are made from here on under the task's own rights, and with the mode bits it asks for
        os.umask(0)
        kernel_calls.drop_file_capabilities()

    def show_names(self) -> None:
        """Show the granted names that are there, once the plan's mounts stand."""
        if self._names is not None:
            self._names.names.show_everything()

    def rehearse(self, device: int, requests: Iterable[bytes]) -> None:
        """Answer requests that nobody made; `device` takes the answers."""
        self._mask = device
        for raw in requests:
            self._answer(memoryview(raw))

    def close(self) -> tuple[str, ...]:
        """Answer the rest once everything inside is gone; the names that stayed in staging, see `Finished`."""
        if self._mask >= 0:
            self._serve_mask()
        end = time.monotonic() + _SETTLE_SECONDS
        while not all(one.settle(_LOOK_SECONDS) for one in (self._sockets, self._modes, self._opens)):
            if time.monotonic() > end:
                self._missed(TimeoutError("a call was still being made at the end"))
                break
            if self._mask >= 0:  # the thread may look up names in the mask
                self._serve_mask()
        for threads in (self._callers, self._disk):
            if not threads.settle(_SETTLE_SECONDS):
                self._missed(TimeoutError("a call was still being read at the end"))
        if self._names is not None:
            return self._names.names.close()
        return () if self._server is None else self._server.close()

    def ask_for_sockets(self, network: int, first: int) -> None:
        """Learn of the task's own sockets through a netlink socket of its network; `first` is its process 1."""
        self._sockets.ask(socket.socket(fileno=network), first)

    def open_listener(self, listener: int) -> int:
        """Serve the filter's listener."""
        with contextlib.suppress(OSError):  # Linux before 6.6 is slower without it, and no different
            fcntl.ioctl(listener, seccomp_notification.SET_FLAGS, seccomp_notification.SYNC_WAKE_UP)
        self._listener = listener
        self._sockets.open(listener)
        self._modes.open(listener)
        self._opens.open(listener)
        return listener

    def serve(self, descriptor: int, event: int) -> bool:
        """Answer what waits at a descriptor; false once it is closed for good."""
        if descriptor == self._mask:
            return self._serve_mask()
        if event & select.POLLIN:
            self._serve_listener()
            return True
        return False

    def _serve_mask(self) -> bool:
        for _ in range(_BURST):
            try:
                length = os.readv(self._mask, [self._buffer])
            except BlockingIOError:
                return True
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT):  # the request was withdrawn
                    continue
                if error.errno in (errno.ENODEV, errno.ECONNABORTED):  # unmounted, or aborted by somebody (fuse(4))
                    return False
                raise
            self._answer(self._view[:length])
        return True

    def _answer(self, raw: memoryview) -> None:
        try:
            request = fuse_protocol.parse(raw)
        except fuse_protocol.MalformedFuseRequest as error:
            self._missed(error)
            # the header alone is enough for an answer
            if len(raw) >= fuse_protocol.HEADER_SIZE:
                self._reply(fuse_protocol.error(int.from_bytes(raw[8:16], "little"), errno.EIO))
            return
        answer: bytes | memoryview | SeenRequest | SlowCall | None
        try:
            answer = (self._server or self._tree).answer(request, now=self._time, owner=self._owner)
            if isinstance(answer, SeenRequest):
                answer = self._hidden_lookup(request.pid, answer)
        except Exception as error:  # noqa: BLE001  the caller must be answered in any case
            self._missed(error)
            answer = fuse_protocol.error(request.unique, errno.EIO)
        if isinstance(answer, SlowCall):
            work, unique = answer.work, request.unique
            self._disk.do(lambda: self._reply(self._slow_reply(unique, work)))
        elif answer is not None:
            self._reply(answer)

    def _hidden_lookup(self, pid: int, seen: SeenRequest) -> bytes | None:
        """Record a lookup before it is answered: until then the caller stands still."""
        if pid in self._sockets.own:
            return seen.reply
        listed = seen.op in (Op.READDIR, Op.READDIRPLUS)
        note = self._recorder.closed_listing if listed else self._recorder.hidden_lookup
        if self._server is None:
            note(pid, seen.path)
            return seen.reply

        def record() -> None:
            try:
                note(pid, seen.path)
            finally:
                self._reply(seen.reply)
                self._wake()

        self._callers.do(record)
        return None

    def _slow_reply(self, unique: int, work: Callable[[], bytes]) -> bytes:
        try:
            return fuse_protocol.reply(unique, work())
        except OSError as error:
            return fuse_protocol.error(unique, error.errno or errno.EIO)
        except Exception as error:  # noqa: BLE001  the caller must be answered in any case
            self._missed(error)
            return fuse_protocol.error(unique, errno.EIO)

    def _reply(self, answer: bytes | memoryview) -> None:
        try:
            os.write(self._mask, answer)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):  # the caller is gone
                raise

    def _serve_listener(self) -> None:
        raw = bytearray(seccomp_notification.SIZE)
        try:
            fcntl.ioctl(self._listener, seccomp_notification.RECV, raw)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):  # withdrawn, since its caller was killed
                return
            raise
        seen = seccomp_notification.parse(raw)
        if self._sockets.takes(seen):
            self._sockets.serve(seen, readable=self._server is None)
        elif self._server is None:
            self._notified(seen)
        else:
            self._callers.do(lambda: self._notified(seen))

    def _notified(self, seen: seccomp_notification.Notification) -> None:
        made: HandedDescriptor | bytes | None = None
        try:
            answer = CallAnswer(0) if self._modes.names_no_path(seen) else self._recorder.notified(seen)
            if self._names is not None and answer.paths and not answer.errno:
                made = self._made(self._names, seen, answer.paths)
        except Exception as error:  # noqa: BLE001  the caller must be answered in any case
            answer = CallAnswer(errno.EACCES, f"a call could not be read, and was refused ({error})")
        goes_on = made is None and not answer.errno and not answer.unread
        if goes_on and self._modes.takes(seen):
            self._modes.serve(seen)
        elif goes_on and self._granted and self._opens.takes(seen, answer.paths):
            self._opens.serve(seen, answer.paths[0])
        else:
            self._tell(seen, answer, made)
        if self._server is not None and self._recorder.waiting:
            self._wake()

    def _tell(
        self, seen: seccomp_notification.Notification, answer: CallAnswer, made: HandedDescriptor | bytes | None
    ) -> None:
        """Answer a call: refuse it, let it go on, or say what came of it; what was not read of it is a hole."""
        if isinstance(made, HandedDescriptor):
            answered = self._send(handed_in(self._listener, seen.id, made))
        elif made is not None:
            answered = self._send(made)
        else:
            refused = answer.errno
            plain = seccomp_notification.fail(seen.id, refused) if refused else seccomp_notification.go_on(seen.id)
            answered = self._send(plain)
        if answered and answer.unread:  # the caller was there, so what it asked for would have come to be
            self._recorder.missed(answer.unread)

    def _made(
        self, names: NameCalls, seen: seccomp_notification.Notification, paths: tuple[NamedPath, ...]
    ) -> HandedDescriptor | bytes | None:
        """Make a call that changes granted names; the answer, `None` where the call goes on."""
        call = observed_syscalls.by_number(self._recorder.architecture, seen.number)
        # a caller that is gone may have had its number given to another, whose memory was read
        if call is None or not self._waits(seen):
            return None
        try:
            done = names.answer(ReadCall(seen.pid, call, seen.args, paths))
        except OSError as error:
            return seccomp_notification.fail(seen.id, error.errno or errno.EIO)
        return done if done is None or isinstance(done, HandedDescriptor) else seccomp_notification.value(seen.id, done)

    def _waits(self, seen: seccomp_notification.Notification) -> bool:
        try:
            fcntl.ioctl(self._listener, seccomp_notification.ID_VALID, seen.id.to_bytes(8, "little"))
        except OSError:
            return False
        return True

    def _send(self, answer: bytes) -> bool:
        """Answer a call; false where its caller is gone."""
        try:
            fcntl.ioctl(self._listener, seccomp_notification.SEND, bytearray(answer))
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
            return False
        return True

    def _missed(self, error: Exception) -> None:
        self._recorder.missed(f"a call could not be read ({error})")
