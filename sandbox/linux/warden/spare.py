"""EFFECT: the part of a sandbox that is the same for every task: namespaces, and a process 1 in them that waits."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.linux.inside import bubblewrap_namespaces
from sandbox.linux.warden import joiner as joining

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sandbox.linux.inside.bubblewrap_namespaces import Bubblewrap
    from sandbox.linux.warden_messages import Base

_SETTLE_SECONDS = 30.0
_CREDENTIALS = 2  # SCM_CREDENTIALS


@dataclass(slots=True)
class Spare:
    """Namespaces that stand, with nothing of a task in them.

    Attributes:
        link: a socket to the joiner, and to the process 1 that it forks.
        joiner: the joiner's number, 0 once it has ended.
        first: the number of process 1, 0 while it is not known.
        asked: a netlink socket of the task's network, where process 1 is known and the kernel has one.
    """

    link: socket.socket
    joiner: int
    bubblewrap: Bubblewrap
    _mounts: int
    first: int = 0
    asked: tuple[int, ...] = ()

    def settle(self) -> bool:
        """Wait until process 1 waits for a spec and the joiner is gone; false where one failed before."""
        poll = select.poll()
        poll.register(self.link.fileno(), select.POLLIN)
        poll.poll(_SETTLE_SECONDS * 1000)
        try:
            word, fds, _ = received(self.link)
        except OSError:
            return False
        kind, _, number = word.partition(b" ")
        if kind != b"first":
            return False
        self.first = int(number)
        self.asked = tuple(fds)
        os.waitpid(self.joiner, 0)
        self.joiner = 0
        return True

    def stale(self) -> bool:
        """Whether the host has mounted or unmounted anything since, which the sandbox's root may not have followed."""
        poll = select.poll()
        poll.register(self._mounts, select.POLLPRI)
        return bool(poll.poll(0))

    def hand(self, spec: bytes, stdio: Sequence[int]) -> None:
        """Have process 1 build `spec`, an encoded message without its length."""
        memory = os.memfd_create("spec", os.MFD_CLOEXEC)
        try:
            view = memoryview(spec)
            while view:
                view = view[os.write(memory, view) :]
            os.lseek(memory, 0, os.SEEK_SET)
            socket.send_fds(self.link, [b"spec"], [memory, *stdio])
        finally:
            os.close(memory)
            os.close(self._mounts)

    def discard(self) -> None:
        """End the sandbox, with nothing run in it."""
        self.link.close()
        self.bubblewrap.release()
        for fd in (self._mounts, *self.asked):
            os.close(fd)
        # process 1 ends when the link closes
        for child in filter(None, (self.joiner, self.bubblewrap.pid)):
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def prepare(base: Base, close: Callable[[], object]) -> Spare:
    """Start bubblewrap, and a joiner that enters its namespaces.

    Args:
        base: what the sandbox starts from.
        close: called in the joiner, to close what belongs to the warden alone.

    Raises:
        NotStarted: bubblewrap could not build the namespaces.
        OSError: no process or descriptor is left.
    """
    # this is opened before bubblewrap copies the host's mounts, so that no change in between is missed
    mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
    link, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    starting = bubblewrap_namespaces.start(base)
    # bubblewrap starts meanwhile: a fork takes a third of the time that it takes
    joiner = os.fork()
    if joiner == 0:
        signal.set_wakeup_fd(-1)
        close()
        starting.close()
        link.close()
        os.close(mounts)
        joining.main(inside, proc=not base.nested)
    inside.close()
    waiting = starting.wait()
    link.send(b"%d" % waiting.inside)
    link.setblocking(False)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    return Spare(link, joiner, waiting, mounts)


def received(link: socket.socket) -> tuple[bytes, list[int], int]:
    """One word of the link: its bytes, its descriptors, and the sender's number on the host (unix(7), SO_PASSCRED)."""
    space = socket.CMSG_SPACE(4 * joining.DESCRIPTORS) + socket.CMSG_SPACE(12)
    word, ancillary, _, _ = link.recvmsg(joining.WORD, space, socket.MSG_CMSG_CLOEXEC)
    fds: list[int] = []
    sender = 0
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds += [int.from_bytes(data[i : i + 4], "little", signed=True) for i in range(0, len(data) & ~3, 4)]
        elif level == socket.SOL_SOCKET and kind == _CREDENTIALS:
            sender = int.from_bytes(data[:4], "little", signed=True)
    return word, fds, sender
