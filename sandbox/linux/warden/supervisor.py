"""EFFECT: the fork server of a session: one thread, started once; each task's warden is a fork of it.

The supervisor holds no state of a task. It forks one spare warden ahead, which prepares what is the same for every
task. It ends when the executor closes its end of the socket, and every warden ends with it.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import select
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING

from sandbox.contract.errors import remedy
from sandbox.linux.inside import resource_limits
from sandbox.linux.kernel import kernel_calls
from sandbox.linux.warden import choose_task_filter, lifecycle, rehearsal
from sandbox.linux.warden.lifecycle import DESCRIPTORS
from sandbox.linux.warden_messages import Base, Failed, encode
from sandbox.proxy.policy.host_rules import HostRules
from sandbox.proxy.policy.policy import Policy
from sandbox.terminal import restore_modes

if TYPE_CHECKING:
    from collections.abc import Iterable

# a session that runs one task has no use for a spare
_SPARE_FROM = 2
_IDLE_SECONDS = 2.0
# a task that has not begun after this time waits for something
_START_SECONDS = 0.2
# a short task takes this long beside its start; a spare that is made then would only delay its end
_REST_SECONDS = 0.004
# tasks that come this close together wait for the spare, and not for the task before
_CLOSE_SECONDS = 0.03
_END_SECONDS = 5.0


def main(descriptor: int) -> None:
    """Serve tasks until the executor is gone.

    Args:
        descriptor: a seqpacket socket; each packet names a sandbox's base and brings the control socket and the three
            standard streams. Other packets lend a terminal of the caller's.
    """
    requests = socket.socket(fileno=descriptor)
    requests.set_inheritable(False)
    # nobody waits for a warden: it reports to the executor alone
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    # a warden that is killed while bubblewrap starts leaves a child of bubblewrap's that waits for ever
    kernel_calls.become_subreaper()
    # bubblewrap refuses to start with capabilities, unless root starts it
    kernel_calls.pass_on_no_capability()
    requests.send(b"ready")
    choose_task_filter.assembled("writes")
    choose_task_filter.assembled("all")
    rehearsal.spec()
    resource_limits.most_processes()
    resource_limits.kernel_version()
    kernel_calls.last_capability()
    # every warden reads its task's lists: the patterns for that are compiled once, here
    HostRules(Policy(allow=("*.example.org:443", "192.0.2.1", "[2001:db8::1]")))
    # every fork shares the objects made so far; a collection would write to their pages, and copy them
    gc.collect()
    gc.freeze()
    Supervisor(requests).serve()


class Supervisor:
    """The fork server's state: its wardens, and one spare that is made once tasks follow each other."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._wardens: set[int] = set()
        self._spare: socket.socket | None = None
        self._base = Base("")
        # the warden that got a task last, while a spare would only delay that task's start
        self._starting: socket.socket | None = None
        # the time at which the next spare is made
        self._due: float | None = None
        self._handed = 0.0
        self._close = False
        self._served = 0
        self._lending = restore_modes.LentTerminals()

    def serve(self) -> None:
        """Serve until the executor is gone."""
        while True:
            poll = select.poll()
            poll.register(self._requests.fileno(), select.POLLIN)
            self._lending.watch(poll)
            if self._starting is not None:
                poll.register(self._starting.fileno(), select.POLLIN)
            ready = {fd for fd, _ in poll.poll(self._patience())}
            self._lending.hear(ready)
            if self._starting is not None and self._starting.fileno() in ready:
                self._forget_starting()
                self._due = time.monotonic() + (0 if self._close else _REST_SECONDS)
            if self._due is not None and time.monotonic() >= self._due:
                self._make_spare()
            elif not ready and self._due is None:
                self._drop_spare()
            if self._requests.fileno() not in ready:
                self._sweep()
                continue
            data, fds, _, _ = socket.recv_fds(self._requests, 4096, DESCRIPTORS)
            for fd in fds:
                # socket.recv_fds sets no close-on-exec; a child with a copy keeps the executor waiting
                os.set_inheritable(fd, False)
            if not data:
                self._lending.end()
                _end_children()
                return
            self._take(data, fds)
            for fd in fds:
                os.close(fd)
            self._sweep()

    def _take(self, data: bytes, fds: list[int]) -> None:
        if data.startswith(restore_modes.WORD):
            if len(fds) == restore_modes.DESCRIPTORS:
                self._lending.take(data, fds)
        elif len(fds) == DESCRIPTORS:
            self._hand_over(Base.from_word(data), fds)
        elif fds:
            # the kernel drops descriptors for which this process has no number left
            lost = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            _refuse(fds[0], Failed(reason=f"a task cannot be handed over: {lost.strerror}", hint=remedy(lost)))

    def _hand_over(self, base: Base, fds: list[int]) -> None:
        self._forget_starting()
        spare, self._spare = self._spare, None
        if base != self._base and spare is not None:
            spare.close()
            spare = None
        self._base = base
        if spare is not None:
            try:
                socket.send_fds(spare, [b"run"], fds)
            except OSError:  # the spare found itself of no use, and ended
                spare.close()
                spare = None
        try:
            if spare is None:
                spare = self._fork(fds, spare=False)
                socket.send_fds(spare, [b"run"], fds)
        except OSError as error:
            # the executor of one task may be gone, and the supervisor serves others
            _refuse(fds[0], Failed(reason=f"no process can be started: {error.strerror}", hint=remedy(error)))
        else:
            self._served += 1
        now = time.monotonic()
        self._close, self._handed = now - self._handed < _CLOSE_SECONDS, now
        self._starting, self._due = spare, now + _START_SECONDS

    def _sweep(self) -> None:
        """Kill what wardens left behind, which is this process's child by now."""
        children = _children()
        _end(children - self._wardens)
        # the kernel leaves a child out of its list when another one ends while it is read (proc(5), children)
        self._wardens = {pid for pid in self._wardens if pid in children or os.path.exists(f"/proc/{pid}")}

    def _patience(self) -> float | None:
        """Milliseconds to wait for a request, `None` for as long as it takes."""
        if self._due is not None:
            return max(0.0, self._due - time.monotonic()) * 1000
        return _IDLE_SECONDS * 1000 if self._wardens else None

    def _make_spare(self) -> None:
        """Make a spare, now that the last task has begun or ended."""
        self._forget_starting()
        self._due = None
        if self._served >= _SPARE_FROM and self._spare is None:
            with contextlib.suppress(OSError):  # the next task's own attempt tells why
                self._spare = self._fork((), spare=True)

    def _forget_starting(self) -> None:
        if self._starting is not None:
            self._starting.close()
            self._starting = None

    def _fork(self, fds: Iterable[int], *, spare: bool) -> socket.socket:
        """Fork a warden; the socket through which it gets a task."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        supervisor = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            theirs.close()
            raise
        if pid == 0:
            ours.close()
            self._requests.close()
            self._lending.close()
            for one in filter(None, (self._spare, self._starting)):
                one.close()
            for fd in fds:
                os.close(fd)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            lifecycle.main(theirs, self._base, supervisor=supervisor, spare=spare)
        theirs.close()
        self._wardens.add(pid)
        return ours

    def _drop_spare(self) -> None:
        if self._spare is not None:
            self._spare.close()
            self._spare = None


def _refuse(descriptor: int, failed: Failed) -> None:
    """Tell an executor, by its control socket, that nothing will run."""
    control = socket.socket(fileno=descriptor)
    with contextlib.suppress(OSError):
        control.sendall(encode(failed))
    control.detach()


def _children() -> set[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
            return set(map(int, children.read().split()))
    except OSError:  # a kernel without CONFIG_PROC_CHILDREN
        return set()


def _end(children: set[int]) -> None:
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _end_children() -> None:
    """Kill every warden, and every process that becomes this one's child by that."""
    end = time.monotonic() + _END_SECONDS
    while (children := _children()) and time.monotonic() < end:
        _end(children)
        time.sleep(0.001)


if __name__ == "__main__":
    main(int(sys.argv[1]))
