"""EFFECT: a session's fork server: single-threaded, small, started once; each task's warden is a fork of it.

It holds no state of a task. What is the same for every task is made ahead, for one of them. It ends when the
executor's end of its socket closes, and every warden with it.
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
from sandbox.linux.messages import Base, Failed, encode
from sandbox.linux.warden import joiner, lifecycle, rehearsal
from sandbox.linux.warden.lifecycle import DESCRIPTORS
from sandbox.proxy.policy.host_rules import HostRules
from sandbox.proxy.policy.policy import Policy
from sandbox.terminal import restore_modes

if TYPE_CHECKING:
    from collections.abc import Iterable

# a session that runs one task has no use for a spare
_SPARE_FROM = 2
_IDLE_SECONDS = 2.0
# a task that has not begun by then waits for something
_START_SECONDS = 0.2
# what a short task takes beside its start; a spare made then would only delay its end
_REST_SECONDS = 0.004
# tasks that come so close together each wait for the spare more than for the one before
_CLOSE_SECONDS = 0.03
_END_SECONDS = 5.0


def main(descriptor: int) -> None:
    """Serve forks until the executor is gone.

    Args:
        descriptor: a seqpacket socket; each packet names a sandbox's base and brings the control socket and the three
            standard streams. Other packets lend a terminal of the caller's.
    """
    requests = socket.socket(fileno=descriptor)
    requests.set_inheritable(False)
    # wardens are never waited for: what they have to say they say to the executor
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    # a warden that is killed while bubblewrap starts leaves a child of that, which waits for its parent for ever
    kernel_calls.become_subreaper()
    # bubblewrap refuses to start with some, unless it is root who starts it
    kernel_calls.pass_on_no_capability()
    requests.send(b"ready")
    joiner.task_filter("writes")
    joiner.task_filter("all")
    rehearsal.spec()
    resource_limits.most_processes()
    resource_limits.kernel_version()
    kernel_calls.last_capability()
    # every warden reads its task's lists: what does so is compiled once
    HostRules(Policy(allow=("*.example.org:443", "192.0.2.1", "[2001:db8::1]")))
    # what stands now is shared by every fork; collecting it would copy its pages
    gc.collect()
    gc.freeze()
    Supervisor(requests).serve()


class Supervisor:
    """The fork server's state: its wardens, and one spare made ahead once tasks come one after the other."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._wardens: set[int] = set()
        self._spare: socket.socket | None = None
        self._base = Base("")
        # the warden handed a task last, for as long as what is made ahead would only delay that task's start
        self._starting: socket.socket | None = None
        # when the next spare is made
        self._due: float | None = None
        self._handed = 0.0
        self._close = False
        self._served = 0
        self._lending = restore_modes.LentTerminals()

    def serve(self) -> None:
        """Until the executor is gone."""
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
                # recv_fds drops the flag that would do it; a child that keeps one keeps the executor waiting
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
            self._hand_over(Base.told(data), fds)
        elif fds:
            # the kernel drops what it has no number for
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
            except OSError:  # it found itself of no use and ended
                spare.close()
                spare = None
        try:
            if spare is None:
                spare = self._fork(fds, spare=False)
                socket.send_fds(spare, [b"run"], fds)
        except OSError as error:
            # an executor that is gone must not end the supervisor of the others
            _refuse(fds[0], Failed(reason=f"no process can be started: {error.strerror}", hint=remedy(error)))
        else:
            self._served += 1
        now = time.monotonic()
        self._close, self._handed = now - self._handed < _CLOSE_SECONDS, now
        self._starting, self._due = spare, now + _START_SECONDS

    def _sweep(self) -> None:
        """End what wardens left behind, which is this process's own by now."""
        children = _children()
        _end(children - self._wardens)
        # the kernel's list leaves one out when another ends while it is read
        self._wardens = {pid for pid in self._wardens if pid in children or os.path.exists(f"/proc/{pid}")}

    def _patience(self) -> float | None:
        """How long to wait for a request, in milliseconds."""
        if self._due is not None:
            return max(0.0, self._due - time.monotonic()) * 1000
        return _IDLE_SECONDS * 1000 if self._wardens else None

    def _make_spare(self) -> None:
        """The task handed over last has begun or ended: now the next one's part may be made."""
        self._forget_starting()
        self._due = None
        if self._served >= _SPARE_FROM and self._spare is None:
            with contextlib.suppress(OSError):  # the next task's own attempt will say why
                self._spare = self._fork((), spare=True)

    def _forget_starting(self) -> None:
        if self._starting is not None:
            self._starting.close()
            self._starting = None

    def _fork(self, fds: Iterable[int], *, spare: bool) -> socket.socket:
        """A new warden that waits for a task at the other end of the socket."""
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
    except OSError:  # a kernel that does not list them
        return set()


def _end(children: set[int]) -> None:
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _end_children() -> None:
    """End every warden, and what becomes this process's own by that."""
    end = time.monotonic() + _END_SECONDS
    while (children := _children()) and time.monotonic() < end:
        _end(children)
        time.sleep(0.001)


if __name__ == "__main__":
    main(int(sys.argv[1]))
