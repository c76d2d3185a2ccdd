"""EFFECT: a warden's life before and around its task: it prepares a sandbox, receives a task, serves it and ends."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import traceback
from typing import TYPE_CHECKING, NoReturn

from sandbox.contract.errors import Masked, NotStarted, remedy
from sandbox.linux.kernel import kernel_calls
from sandbox.linux.kernel.wake import Wake
from sandbox.linux.warden import rehearsal
from sandbox.linux.warden.spare import Spare, prepare
from sandbox.linux.warden.warden import Warden, send
from sandbox.linux.warden_messages import Failed, Spec, decode, receive_body
from sandbox.proxy.io.server_ports_on_host import publish

if TYPE_CHECKING:
    from sandbox.linux.warden_messages import Base

#: The descriptors that come with a task: the control socket and the three standard streams.
DESCRIPTORS = 4


def main(handover: socket.socket, base: Base, *, supervisor: int, spare: bool) -> NoReturn:
    """Prepare a sandbox, serve the one task that is handed over, and end.

    Args:
        handover: a socket to the supervisor. One packet brings the control socket and the three standard streams. One
            goes back when the command starts, and the socket's closing tells of this process's end.
        base: what the sandbox starts from.
        supervisor: the number of the parent.
        spare: whether this warden was forked ahead of any task.
    """
    code = 1
    control: socket.socket | None = None
    try:
        kernel_calls.become_subreaper()
        wake = Wake()
        prepared = _prepared(base, wake, supervisor, handover)
        if spare:
            rehearsal.serve()
        usable = not (spare and isinstance(prepared, Spare)) or _wait(handover, prepared, wake)
        request = _receive_request(handover)
        if request is None:
            os._exit(0)
        control, stdio = request
        if isinstance(prepared, Spare) and (not usable or prepared.stale()):
            prepared.discard()
            prepared = _prepared(base, wake, supervisor, handover, control)
        elif spare and isinstance(prepared, Exception):
            # the resources that were lacking may have been those of the task before
            prepared = _prepared(base, wake, supervisor, handover, control)
        if isinstance(prepared, Exception):
            raise prepared  # noqa: TRY301  told below, as any other
        _serve(handover, control, stdio, prepared, wake)
        code = 0
        # the executor goes on first: this process has only its own end left
        os.sched_yield()
    except NotStarted as error:
        _fail(
            control or _lost_control(handover, spare=spare),
            error.message,
            error.hint,
            no_proc=isinstance(error, Masked),
        )
    except BaseException as error:  # noqa: BLE001  the executor must hear of any error
        if os.environ.get("VXCONF_DEBUG"):
            traceback.print_exc()
        reason = f"the sandbox's warden failed: {type(error).__name__}: {error}"
        _fail(control or _lost_control(handover, spare=spare), reason, remedy(error))
    _end_children()
    os._exit(code)


def _prepared(base: Base, wake: Wake, supervisor: int, *sockets: socket.socket) -> Spare | Exception:
    """A sandbox without a task, or why there is none; the joiner closes its copies of `sockets`."""
    # a bubblewrap that is killed while it starts, as by this process's end, leaves a child that waits for ever
    kernel_calls.die_with_parent(0)
    made = _made(base, wake, *sockets)
    kernel_calls.die_with_parent(signal.SIGKILL)
    if os.getppid() != supervisor:
        _end_children()
        os._exit(1)
    return made


def _made(base: Base, wake: Wake, *sockets: socket.socket) -> Spare | Exception:

    def close() -> None:
        wake.close()
        for one in sockets:
            one.close()

    try:
        return prepare(base, close)
    except (NotStarted, OSError) as error:
        return error


def _serve(
    handover: socket.socket, control: socket.socket, stdio: tuple[int, ...], prepared: Spare, wake: Wake
) -> None:
    body = receive_body(control)
    if body is None:
        return
    # process 1 reads the spec as well, at the same time
    prepared.hand(body, stdio)
    spec = decode(body)
    if not isinstance(spec, Spec):
        return
    published = publish(spec.network.published)
    for fd in stdio:
        os.close(fd)

    def begun() -> None:
        with contextlib.suppress(OSError):  # the supervisor no longer waits for it
            handover.send(b"begun")

    Warden(spec, control, prepared, wake, begun=begun, published=published).run()


def _fail(control: socket.socket | None, reason: str, hint: str = "", *, no_proc: bool = False) -> None:
    if control is not None:
        send(control, Failed(reason=reason, hint=hint, no_proc=no_proc))


def _wait(handover: socket.socket, prepared: Spare, wake: Wake) -> bool:
    """Wait for a task as a spare; false when the prepared sandbox is of no use any more."""
    settled = prepared.settle()
    wake.clear()  # the joiner's end woke it
    poll = select.poll()
    for fd in (handover.fileno(), prepared.link.fileno(), wake.descriptor):
        poll.register(fd, select.POLLIN)
    # a word of process 1's, or a child that ended, means a failure
    if settled and _all_alive() and {fd for fd, _ in poll.poll()} == {handover.fileno()}:
        return True
    with contextlib.suppress(OSError):
        # the supervisor's next send fails from now on; a task that was sent before is still received
        handover.shutdown(socket.SHUT_RD)
    return False


def _all_alive() -> bool:
    """Whether no child has ended unnoticed: the pipe may have told of another's end than the joiner's."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _receive_request(handover: socket.socket) -> tuple[socket.socket, tuple[int, ...]] | None:
    word, fds, _, _ = socket.recv_fds(handover, 16, DESCRIPTORS)
    for fd in fds:
        # socket.recv_fds sets no close-on-exec; a child with a copy of the control socket keeps the executor waiting
        os.set_inheritable(fd, False)
    if 0 < len(fds) < DESCRIPTORS:
        # the kernel drops descriptors for which this process has no number left
        lost = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        _fail(socket.socket(fileno=fds[0]), f"a task cannot be handed over: {lost.strerror}", remedy(lost))
    if not word or len(fds) != DESCRIPTORS:
        return None
    return socket.socket(fileno=fds[0]), tuple(fds[1:])


def _lost_control(handover: socket.socket, *, spare: bool) -> socket.socket | None:
    """The control socket of a task whose warden failed before it received it; a spare has none coming."""
    if spare:
        return None
    with contextlib.suppress(OSError):
        _, fds, _, _ = socket.recv_fds(handover, 16, DESCRIPTORS)
        return socket.socket(fileno=fds[0]) if fds else None
    return None


def _end_children() -> None:
    """Kill this process's children, one of which a bubblewrap may have left that was killed while it started."""
    with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
        for child in children.read().split():
            os.kill(int(child), signal.SIGKILL)
