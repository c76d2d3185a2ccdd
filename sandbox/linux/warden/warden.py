"""EFFECT: one process per task, in the host's namespaces: builds the sandbox, holds every door, reports who knocked.

Invariants:
1. Nothing of the command runs before the mask, the filter and the listener stand; what fails before is `Failed`.
2. Every look and every notified call is answered, whatever fails in between: an unanswered one hangs its caller.
3. A hole in what was seen is said (`Finished.incomplete`), never passed over.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import time
from typing import TYPE_CHECKING

from sandbox.contract.errors import ASK
from sandbox.linux.caller.caller_memory import Caller
from sandbox.linux.inside import pid1
from sandbox.linux.kernel.descriptor_poll import DescriptorPoll
from sandbox.linux.kernel.syscall_numbers import ARCHITECTURES
from sandbox.linux.messages import Decoder, Failed, Finished, SeenAccesses, Signal, Started, encode
from sandbox.linux.observe.recorder import Recorder
from sandbox.linux.proxy.proxy_handle import ProxyHandle
from sandbox.linux.warden.request_loop import RequestLoop
from sandbox.linux.warden.spare import received

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable

    from sandbox.contract.results import Observer
    from sandbox.linux.kernel.syscall_numbers import Architecture
    from sandbox.linux.kernel.wake import Wake
    from sandbox.linux.messages import Spec
    from sandbox.linux.observe.held_calls import HeldDirectories
    from sandbox.linux.strace.strace_process import Tracer
    from sandbox.linux.warden.spare import Spare

_SETUP_SECONDS = 30.0
# of what strace has written
_REST_SECONDS = 0.002
# for process 1 to end what is inside, and to wait for it
_BURIAL_SECONDS = 5.0
# what process 1 said before it closed a door may be heard a little later
_LAST_WORD_SECONDS = 0.2


def send(control: socket.socket, message: Failed | Finished | SeenAccesses | Started) -> None:
    """Tell the executor; a warden without one ends."""
    try:
        control.sendall(encode(message))
    except OSError:  # the executor is gone; so is the task, in a moment
        os._exit(1)


def _holding(spec: Spec) -> HeldDirectories | None:
    if spec.held is None or spec.observer == "none":
        return None
    from sandbox.linux.observe.held_calls import HeldDirectories

    return HeldDirectories(spec.held)


class Warden:
    """The state of one task, from the anchor to the last reaped process.

    Args:
        begun: called when the command starts.
        published: listeners of the host's that lead to the task's own servers.
        datagrams: whether a standard stream is an AF_UNIX datagram socket.
    """

    def __init__(
        self,
        spec: Spec,
        control: socket.socket,
        prepared: Spare,
        wake: Wake,
        *,
        begun: Callable[[], object] = lambda: None,
        published: Iterable[socket.socket] = (),
        datagrams: bool = False,
    ) -> None:
        self._spec = spec
        self._control = control
        self._link = prepared.link
        self._joiner = prepared.joiner
        self._anchor = prepared.anchor
        # process 1 would end only after all its mounts were taken down; so that is done after the last word is said
        self._mounts = os.open(f"/proc/{prepared.anchor.inside}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self._wake = wake
        self._tell_begun = begun
        self._architecture: Architecture = ARCHITECTURES[os.uname().machine]
        self._holding = _holding(spec)
        self._recorder = Recorder(
            self._architecture,
            served=spec.granted.served if self._holding is None else self._holding.served,
            executed=spec.executed,
            holding=self._holding,
        )
        self._watching = DescriptorPoll()
        self._front = ProxyHandle(
            spec.network,
            prepared.anchor.inside,
            self._recorder,
            watch=self._watching.watch,
            unwatch=self._watching.unwatch,
            wake=wake.ring,
        )
        self._front.take([listener.detach() for listener in published])
        self._doors = RequestLoop(
            spec.operations if spec.held is None else (),
            spec.boundary,
            self._recorder,
            granted=spec.granted,
            staging=spec.staging,
            executed=spec.executed,
            wake=wake.ring,
            network=spec.network,
            front=self._front,
            datagrams=datagrams,
        )
        self._decoder = Decoder()
        self._joiner_gone = not prepared.joiner
        self._first = prepared.first
        self._command = 0
        self._handle = -1
        self._armed = False
        self._failure: Failed | None = None
        self._outcome: tuple[int, int] | None = None
        self._mark = (0.0, 0)
        self._began = 0.0
        self._deadline = time.monotonic() + _SETUP_SECONDS
        self._timed_out = False
        self._killed = False
        self._link_open = True
        self._observer: Observer = "none"
        self._usage: tuple[float, int] | None = None
        self._tracer: Tracer | None = None

    def run(self) -> None:
        """Serve until everything inside is gone, and report."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self._watching.watch(self._link.fileno(), lambda _: self._hear_inside())
        self._watching.watch(self._control.fileno(), lambda _: self._hear_executor())
        self._watching.watch(self._wake.descriptor, lambda _: self._reap())
        self._greet()
        self._reap()  # what ended before this loop began rang for nobody
        while self._usage is None and self._failure is None:
            self._turn()
        self._finish()

    def _turn(self) -> None:
        left = max(0.0, self._deadline - time.monotonic()) if self._deadline else None
        if not self._watching.wait(left) and self._deadline and time.monotonic() >= self._deadline:
            self._overdue()
        self._front.ask()
        if accesses := self._recorder.drain():
            send(self._control, SeenAccesses(accesses=accesses))

    def _open_door(self, descriptor: int) -> None:
        def serve(event: int) -> None:
            if not self._doors.serve(descriptor, event):
                self._lose_door(descriptor)

        self._watching.watch(descriptor, serve)

    def _lose_door(self, descriptor: int) -> None:
        """A door closes by itself after process 1 has told of the command's end; before that somebody closed it."""
        self._watching.unwatch(descriptor)
        end = time.monotonic() + _LAST_WORD_SECONDS
        while self._outcome is None and self._link_open and (left := end - time.monotonic()) > 0:
            if not self._hear_inside():
                select.select((self._link,), (), (), left)
        if self._outcome is None and not self._killed:
            self._recorder.incomplete = self._recorder.incomplete or "what the observer watched was taken away"

    def _overdue(self) -> None:
        if self._killed:
            self._deadline = 0.0
            self._end_first()
        elif not self._began:
            self._fail(f"the sandbox did not stand within {_SETUP_SECONDS:.0f} s")
        elif self._timed_out:
            self._deadline = 0.0
            self._kill()
        else:
            self._timed_out = True
            self._deadline = time.monotonic() + self._spec.grace
            self._signal(signal.SIGTERM)

    def _fail(self, reason: str, *, kind: str = "failed", hint: str = "") -> None:
        """Nothing is to run; `kind` as process 1 tells it."""
        self._failure = self._failure or Failed(
            reason=reason,
            transient=kind == "vanished",
            unheard=kind == "unheard",
            masked=kind == "masked",
            unfused=kind == "unfused",
            hint="use the observer auto or strace" if kind == "unheard" else hint,
        )

    def _kill(self) -> None:
        if self._handle >= 0 and self._usage is None:
            # process 1 ends the rest, and waits for it: what nobody waits for the kernel counts for nobody
            self._killed = True
            self._deadline = time.monotonic() + _BURIAL_SECONDS
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        elif self._first:
            self._end_first()
        else:
            self._fail("the run was stopped before the command started")

    def _end_first(self) -> None:
        """End process 1, and everything inside with it, unless it was reaped: its number is then another's."""
        if self._first and self._usage is None:
            self._killed = True
            os.kill(self._first, signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if number == signal.SIGWINCH and not self._command:
            return  # a command that has not started asks for the size itself
        if number == signal.SIGKILL or not self._command:
            self._kill()
        elif self._outcome is None:
            try:
                os.killpg(self._command, number)
            except ProcessLookupError:
                return

    def _hear_executor(self) -> None:
        data = self._control.recv(65536)
        if not data:  # the executor is gone: nobody waits for this task any more
            self._end_first()
            os._exit(1)
        for message in self._decoder.feed(data):
            if isinstance(message, Signal):
                self._signal(message.number)

    def _hear_inside(self) -> bool:
        """Take one word from the joiner or process 1; false when none waits."""
        try:
            word, fds, sender = received(self._link)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            word, fds, sender = b"", [], 0
        if not word:
            if self._link_open:
                self._link_open = False
                self._watching.unwatch(self._link.fileno())
            return False
        kind, _, rest = word.partition(b" ")
        if self._armed:
            self._hear_first(kind, rest, sender)
        else:
            self._hear_builder(kind, rest, fds)
        return True

    def _hear_builder(self, kind: bytes, rest: bytes, fds: list[int]) -> None:
        if kind == b"mask":
            uid, gid = map(int, rest.split())
            self._open_door(self._doors.open_mask(fds[0], uid, gid))
        elif kind == b"front":
            self._front.take(fds)
        elif kind == b"first":
            self._first = int(rest)
            self._greet()
        elif kind == b"armed":
            cpu, peak, masked, listener = rest.split()
            self._mark = (float(cpu), int(peak))
            self._armed = True
            if int(listener) >= 0:
                with Caller(self._first) as first:
                    self._open_door(self._doors.open_listener(first.descriptor(int(listener))))
                self._link.send(b"held")
                self._observer = "mask" if masked == b"1" else "notify"
            elif self._spec.observer == "strace":
                self._tracer = self._traced()
            self._anchor.release()
        elif kind in (b"failed", b"vanished", b"unheard", b"masked", b"unfused"):
            reason, _, hint = rest.decode("utf-8", "surrogateescape").partition("\0")
            self._fail(reason, kind=kind.decode(), hint=hint or (ASK if kind == b"failed" else ""))

    def _hear_first(self, kind: bytes, rest: bytes, sender: int) -> None:
        if kind == b"forked":
            self._command = sender
            self._handle = os.pidfd_open(sender)
            if self._tracer is not None and not self._attach(self._tracer):
                return
            self._began = time.monotonic()
            self._deadline = self._began + self._spec.timeout if self._spec.timeout is not None else 0.0
            send(self._control, Started(pid=sender, observer=self._observer, masked=self._observer == "mask"))
            with contextlib.suppress(OSError):  # killed already: its end will be told
                self._link.send(b"run")
            self._tell_begun()
        elif kind == b"ended" and len(rest) == pid1.OUTCOME.size:
            self._outcome = pid1.OUTCOME.unpack(rest)
        elif kind == b"gone" and len(rest) == pid1.USAGE.size:
            self._usage = pid1.USAGE.unpack(rest)
        elif kind == b"failed" and not self._began:
            self._fail(rest.decode("utf-8", "surrogateescape"))

    def _traced(self) -> Tracer:
        from sandbox.linux.connect.reported_dials import ReportedDials
        from sandbox.linux.strace.strace_process import Tracer

        self._observer, spec = "strace", self._spec
        outbound = ReportedDials(spec.network, self._recorder, self._front)
        return Tracer(spec.tracer, self._anchor.inside, self._recorder, outbound, spec.executed)

    def _attach(self, tracer: Tracer) -> bool:
        """Whether strace follows the command, which has not begun."""
        try:
            trace = tracer.attach(self._command, self._spec.cwd)
        except OSError as error:
            hint = getattr(error, "hint", "")
            self._fail(str(error), kind="failed" if hint else "vanished", hint=hint)
            return False

        def serve(_: int) -> None:
            if tracer.serve():
                # strace writes line by line
                self._watching.rest(trace, _REST_SECONDS)
            else:
                self._watching.unwatch(trace)
                if not tracer.ended and self._outcome is None:
                    # what it does from now on nobody sees, and every watched call of it fails
                    self._recorder.incomplete = self._recorder.incomplete or tracer.lost
                    self._end_first()

        self._watching.watch(trace, serve)
        return True

    def _greet(self) -> None:
        """Tell process 1 to go on once its parent is this process."""
        if self._first and self._joiner_gone:
            try:
                self._link.send(b"go")
            except OSError:  # it failed already and has said so
                return

    def _reap(self) -> None:
        self._wake.hush()
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._buried(pid, status, usage)

    def _buried(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        if pid in (self._joiner, self._first):
            while self._hear_inside():  # what it said last
                pass
        if pid == self._joiner:
            self._joiner_gone = True
            if not self._first:
                self._fail(f"the sandbox could not be built (status {os.waitstatus_to_exitcode(status)})")
            self._greet()
        elif pid == self._first:
            # as it told itself, unless it could not
            self._usage = self._usage or (usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
        elif pid == self._anchor.pid and not self._armed:
            self._fail("bubblewrap ended while the sandbox was being built")

    def _finish(self) -> None:
        usage = self._usage
        if self._failure is None and not self._began:
            self._fail("process 1 of the sandbox ended before the command started")
        if self._failure is not None or usage is None:
            self._end_first()
            # a second attempt finds the host's ports free
            self._front.settle()
            send(self._control, self._failure or Failed(reason="the sandbox's end was never seen"))
            return
        self._front.settle()
        if self._tracer is not None:
            self._tracer.close()
        leftovers = self._doors.close()
        if self._holding is not None:
            leftovers += self._holding.leftovers()
        if accesses := self._recorder.drain():
            send(self._control, SeenAccesses(accesses=accesses))
        # process 1 takes the command with it, and tells of no end
        killed = int(signal.SIGKILL) if self._killed else None
        cpu, peak = usage
        cpu -= self._mark[0]
        send(
            self._control,
            Finished(
                status=self._outcome[0] if self._outcome else killed,
                exec_errno=self._outcome[1] if self._outcome else 0,
                timed_out=self._timed_out,
                cpu_ms=max(0.0, cpu * 1000),
                # process 1 starts at the forked interpreter's own mark: only a peak above it is the command's
                peak_rss_bytes=peak * 1024 if peak > self._mark[1] else None,
                duration_ms=(time.monotonic() - self._began) * 1000,
                incomplete=self._recorder.incomplete,
                leftovers=leftovers,
            ),
        )
