"""EFFECT: the one process outside that a task has: has its sandbox built, serves it, reaps it and reports.

Invariants:
1. Nothing of the command runs before the mask, the filter and the listener stand; what fails before is `Failed`.
2. Every request and every notified call is answered, whatever fails in between: an unanswered one hangs its caller.
3. A hole in what was seen is told (`Finished.incomplete`), never passed over.
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
from sandbox.linux.inside import pid1, resource_usage
from sandbox.linux.inside.resource_usage import ResourceUsage
from sandbox.linux.warden.command_timeout import CommandTimeout
from sandbox.linux.warden.signal_and_kill_task import NotStartedYet, TaskProcesses
from sandbox.linux.warden.spare import received
from sandbox.linux.warden.task_services import TaskServices
from sandbox.linux.warden_messages import Decoder, Failed, Finished, SeenAccesses, Signal, Started, encode

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable

    from sandbox.contract.results import Observer
    from sandbox.linux.kernel.wake import Wake
    from sandbox.linux.warden.spare import Spare
    from sandbox.linux.warden_messages import Spec

# a descriptor may be seen to close a little before the word that process 1 sent ahead of it
_LAST_WORD_SECONDS = 0.2


def send(control: socket.socket, message: Failed | Finished | SeenAccesses | Started) -> None:
    """Tell the executor; a warden without one ends."""
    try:
        control.sendall(encode(message))
    except OSError:  # the executor is gone, and this process's death takes the task along
        os._exit(1)


class Warden:
    """The state of one task, from the joiner to the last reaped process.

    Args:
        control: to the executor.
        prepared: the sandbox it is built in.
        begun: called when the command starts.
        published: listeners of the host's that lead to the task's own servers.
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
    ) -> None:
        self._spec = spec
        self._control = control
        self._link = prepared.link
        self._joiner = prepared.joiner
        self._bubblewrap = prepared.bubblewrap
        # the last holder of a mount namespace takes its mounts down: process 1 would report its end only after that
        self._mounts = os.open(f"/proc/{prepared.bubblewrap.inside}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self._wake = wake
        self._tell_begun = begun
        inside = prepared.bubblewrap.inside
        self._services = TaskServices(spec, inside, wake, published=published)
        self._timeout = CommandTimeout(spec.timeout, spec.grace)
        self._processes = TaskProcesses(prepared.first, on_kill=self._timeout.killed)
        self._ask_for_sockets(prepared.asked)
        self._decoder = Decoder()
        self._link_open = True
        self._armed = False
        self._observer: Observer = "none"
        self._landlock = 0
        # usage of process 1 before the command
        self._mark = ResourceUsage(0.0, 0)
        self._failure: Failed | None = None
        self._outcome: tuple[int, int] | None = None
        self._usage: ResourceUsage | None = None

    def run(self) -> None:
        """Serve until everything inside is gone, and report."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        poll = self._services.poll
        poll.watch(self._link.fileno(), lambda _: self._hear_inside())
        poll.watch(self._control.fileno(), lambda _: self._hear_executor())
        poll.watch(self._wake.descriptor, lambda _: self._reap())
        self._greet()
        self._reap()  # a child that ended before this loop began wakes nobody
        while self._usage is None and self._failure is None:
            self._turn()
        self._finish()

    def _turn(self) -> None:
        if not self._services.wait(self._timeout.seconds_left()) and self._timeout.overdue:
            self._unless_not_started(lambda: self._timeout.expire(self._processes))
        self._tell_accesses()

    def _tell_accesses(self) -> None:
        if accesses := self._services.new_accesses():
            send(self._control, SeenAccesses(accesses=accesses))

    def _unless_not_started(self, act: Callable[[], None]) -> None:
        try:
            act()
        except NotStartedYet as error:
            self._fail(str(error))

    def _lose_descriptor(self, _descriptor: int) -> None:
        """Take the end of what was watched for a hole, unless process 1 told of the command's end before it."""
        end = time.monotonic() + _LAST_WORD_SECONDS
        while self._outcome is None and self._link_open and (left := end - time.monotonic()) > 0:
            if not self._hear_inside():
                select.select((self._link,), (), (), left)
        if self._outcome is None and not self._processes.killed:
            self._services.missed("what the observer watched was taken away")

    def _lose_trace(self, why: str) -> None:
        """End a task that strace no longer follows: nobody would see it, and every watched call of it fails."""
        if self._outcome is None:
            self._services.missed(why)
            self._processes.end_first()

    def _fail(self, reason: str, *, kind: str = "failed", hint: str = "") -> None:
        """Say that nothing is to run; `kind` as process 1 tells it."""
        self._failure = self._failure or Failed(
            reason=reason,
            transient=kind == "vanished",
            no_listener=kind == "no-listener",
            no_proc=kind == "no-proc",
            no_fuse=kind == "no-fuse",
            hint="use the observer auto or strace" if kind == "no-listener" else hint,
        )

    # -- the executor ------------------------------------------------------------------------------------------

    def _hear_executor(self) -> None:
        data = self._control.recv(65536)
        if not data:  # the executor is gone: nobody waits for this task any more
            self._processes.end_first()
            os._exit(1)
        for message in self._decoder.feed(data):
            if isinstance(message, Signal):
                number = message.number
                self._unless_not_started(lambda: self._processes.signal(number))  # noqa: B023  called at once

    # -- the joiner and process 1 ------------------------------------------------------------------------------

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
                self._services.poll.unwatch(self._link.fileno())
            return False
        kind, _, rest = word.partition(b" ")
        if self._armed:
            self._hear_armed(kind, rest, sender)
        else:
            self._hear_building(kind, rest, fds)
        return True

    def _hear_building(self, kind: bytes, rest: bytes, fds: list[int]) -> None:
        """Take a word of the joiner, or of process 1 while it builds the sandbox."""
        if kind == b"mask":
            uid, gid = map(int, rest.split())
            self._services.serve(self._services.requests.open_mask(fds[0], uid, gid), self._lose_descriptor)
        elif kind == b"names":
            self._services.requests.open_names(fds[0], self._mounts)
        elif kind == b"listeners":
            self._services.proxy.take(fds)
        elif kind == b"first":
            self._processes.first = int(rest)
            self._ask_for_sockets(fds)
            self._greet()
        elif kind == b"armed":
            self._arm(rest)
        elif kind in (b"failed", b"vanished", b"no-listener", b"no-proc", b"no-fuse"):
            reason, _, hint = rest.decode("utf-8", "surrogateescape").partition("\0")
            self._fail(reason, kind=kind.decode(), hint=hint or (ASK if kind == b"failed" else ""))

    def _ask_for_sockets(self, asked: Iterable[int]) -> None:
        for network in asked:
            self._services.requests.ask_for_sockets(network, self._processes.first)

    def _arm(self, rest: bytes) -> None:
        """Watch a finished sandbox, whose process 1 waits for that, and let bubblewrap's processes go."""
        cpu, peak, masked, landlock, listener = rest.split()
        self._mark = ResourceUsage(float(cpu), int(peak))
        self._armed = True
        self._landlock = int(landlock)
        if int(listener) >= 0:
            with Caller(self._processes.first) as first:
                copy = first.descriptor(int(listener))
            try:
                self._services.requests.show_names()
            except OSError as error:
                self._fail(f"granted names cannot be shown: {error}")
                return
            self._services.serve(self._services.requests.open_listener(copy), self._lose_descriptor)
            self._link.send(b"held")
            self._observer = "mask" if masked == b"1" else "notify"
        elif self._spec.observer == "strace":
            self._observer = "strace"
            self._services.prepare_trace()
        self._bubblewrap.release()

    def _hear_armed(self, kind: bytes, rest: bytes, sender: int) -> None:
        """Take a word of process 1, or of the command's process before it executes the command."""
        if kind == b"forked":
            self._start(sender)
        elif kind == b"ended" and len(rest) == pid1.OUTCOME.size:
            self._outcome = pid1.OUTCOME.unpack(rest)
            self._processes.ended = True
        elif kind == b"gone" and (usage := ResourceUsage.unpacked(rest)) is not None:
            self._gone(usage)
        elif kind == b"failed" and not self._timeout.began:
            self._fail(rest.decode("utf-8", "surrogateescape"))

    def _start(self, command: int) -> None:
        """Let the command go, whose process waits for that."""
        self._processes.forked(command)
        try:
            self._services.trace(command, self._lose_trace)
        except OSError as error:
            hint = getattr(error, "hint", "")
            self._fail(str(error), kind="failed" if hint else "vanished", hint=hint)
            return
        self._timeout.begin()
        send(self._control, Started(pid=command, observer=self._observer, landlock=self._landlock))
        with contextlib.suppress(OSError):  # killed already: its end will be told
            self._link.send(b"run")
        self._tell_begun()

    def _greet(self) -> None:
        """Tell process 1 to go on once its parent is this process."""
        if self._processes.first and not self._joiner:
            with contextlib.suppress(OSError):  # it failed already and has said so
                self._link.send(b"go")

    # -- the end -----------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        self._wake.clear()
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._reaped(pid, status, usage)

    def _reaped(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        if pid in (self._joiner, self._processes.first):
            while self._hear_inside():  # its last words come first
                pass
        if pid == self._joiner:
            self._joiner = 0
            if not self._processes.first:
                self._fail(f"the sandbox could not be built (status {os.waitstatus_to_exitcode(status)})")
            self._greet()
        elif pid == self._processes.first:
            # a process 1 that was killed told nothing of its usage
            self._gone(self._usage or resource_usage.of(usage))
        elif pid == self._bubblewrap.pid and not self._armed:
            self._fail("bubblewrap ended while the sandbox was being built")

    def _gone(self, usage: ResourceUsage) -> None:
        self._usage = usage
        self._processes.gone = True

    def _finish(self) -> None:
        usage = self._usage
        if self._failure is None and not self._timeout.began:
            stopped = self._processes.killed
            self._fail(
                f"{'the run was stopped' if stopped else 'process 1 of the sandbox ended'} before the command started"
            )
        if self._failure is not None or usage is None:
            self._processes.end_first()
            # a second attempt finds the host's ports free
            self._services.proxy.settle()
            send(self._control, self._failure or Failed(reason="the sandbox's end was never seen"))
            return
        leftovers = self._services.close()
        self._tell_accesses()
        send(self._control, self._finished(usage, leftovers))

    def _finished(self, usage: ResourceUsage, leftovers: tuple[str, ...]) -> Finished:
        # a killed process 1 takes the command with it, and tells of no end
        killed = int(signal.SIGKILL) if self._processes.killed else None
        return Finished(
            status=self._outcome[0] if self._outcome else killed,
            exec_errno=self._outcome[1] if self._outcome else 0,
            timed_out=self._timeout.timed_out,
            cpu_ms=usage.cpu_ms_since(self._mark),
            peak_rss_bytes=usage.peak_bytes_since(self._mark),
            duration_ms=(time.monotonic() - self._timeout.began) * 1000,
            incomplete=self._services.recorder.incomplete,
            leftovers=leftovers,
        )
