"""EFFECT: a warden's life before and around its task: what it prepares, how a task reaches it, how it ends."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import stat
import traceback
from typing import TYPE_CHECKING, NoReturn

from sandbox.contract.errors import Masked, NotStarted, remedy
from sandbox.linux.kernel import kernel_calls
from sandbox.linux.kernel.wake import Wake
from sandbox.linux.messages import Failed, Spec, decode, receive_body
from sandbox.linux.warden import rehearsal
from sandbox.linux.warden.spare import Spare, prepare
from sandbox.linux.warden.warden import Warden, send
from sandbox.proxy.io.published_ports import publish

if TYPE_CHECKING:
    from sandbox.linux.messages import Base

#: What is handed over with a task: the control socket and the three standard streams.
DESCRIPTORS = 4


def main(handover: socket.socket, base: Base, *, supervisor: int, spare: bool) -> NoReturn:
    """Prepare a sandbox, serve the one task that is handed over, and end.

    Args:
        handover: to the supervisor; one packet brings the control socket and the three standard streams. One goes back
            when the command starts, and its closing tells of this process's end.
        base: what the sandbox is begun with.
        supervisor: the parent's number.
        spare: whether it was made ahead of any task.
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
            # what was lacking may have been the task's before this one
            prepared = _prepared(base, wake, supervisor, handover, control)
        if isinstance(prepared, Exception):
            raise prepared  # noqa: TRY301  said below, as every other
        _serve(handover, control, stdio, prepared, wake)
        code = 0
        # the executor goes first: all this process has left to do is to be taken down
        os.sched_yield()
    except NotStarted as error:
        _fail(control or _taken(handover, spare=spare), error.message, error.hint, masked=isinstance(error, Masked))
    except BaseException as error:  # noqa: BLE001  the executor must hear of whatever it is
        if os.environ.get("VXCONF_DEBUG"):
            traceback.print_exc()
        reason = f"the sandbox's warden failed: {type(error).__name__}: {error}"
        _fail(control or _taken(handover, spare=spare), reason, remedy(error))
    _end_children()
    os._exit(code)


def _prepared(base: Base, wake: Wake, supervisor: int, *sockets: socket.socket) -> Spare | Exception:
    """A sandbox without a task, or why there is none; the joiner keeps none of `sockets`."""
    # a bubblewrap killed while it starts, as it is when this process ends, leaves a child that waits for ever
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
    letters = any(map(_takes_letters, stdio))
    # process 1 reads it as well, at the same time
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

    Warden(spec, control, prepared, wake, begun=begun, published=published, datagrams=letters).run()


def _takes_letters(stream: int) -> bool:
    """Whether a standard stream is an AF_UNIX datagram socket, which can be turned to any address."""
    if not stat.S_ISSOCK(os.fstat(stream).st_mode):
        return False
    with socket.socket(fileno=os.dup(stream)) as sock:
        return sock.family == socket.AF_UNIX and sock.type == socket.SOCK_DGRAM


def _fail(control: socket.socket | None, reason: str, hint: str = "", *, masked: bool = False) -> None:
    if control is not None:
        send(control, Failed(reason=reason, hint=hint, masked=masked))


def _wait(handover: socket.socket, prepared: Spare, wake: Wake) -> bool:
    """Wait, as a spare, for a task; false when what was prepared is of no use any more."""
    settled = prepared.settle()
    wake.hush()  # it rang for the joiner
    poll = select.poll()
    for fd in (handover.fileno(), prepared.link.fileno(), wake.descriptor):
        poll.register(fd, select.POLLIN)
    # a child that ended, or a word of process 1's, means that it failed
    if settled and _all_alive() and {fd for fd, _ in poll.poll()} == {handover.fileno()}:
        return True
    with contextlib.suppress(OSError):
        # from now on the supervisor's sending fails; a task that was sent before is still to be received
        handover.shutdown(socket.SHUT_RD)
    return False


def _all_alive() -> bool:
    """Whether no child ended unheard: what rang while the joiner's end was waited for may have been another's."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _receive_request(handover: socket.socket) -> tuple[socket.socket, tuple[int, ...]] | None:
    word, fds, _, _ = socket.recv_fds(handover, 16, DESCRIPTORS)
    for fd in fds:
        # recv_fds drops the flag that would do it; a child that keeps the control socket keeps the executor waiting
        os.set_inheritable(fd, False)
    if 0 < len(fds) < DESCRIPTORS:
        # the kernel drops what it has no number for
        lost = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        _fail(socket.socket(fileno=fds[0]), f"a task cannot be handed over: {lost.strerror}", remedy(lost))
    if not word or len(fds) != DESCRIPTORS:
        return None
    return socket.socket(fileno=fds[0]), tuple(fds[1:])


def _taken(handover: socket.socket, *, spare: bool) -> socket.socket | None:
    """The control socket of a task whose warden failed before it took it; none is promised to a spare."""
    if spare:
        return None
    with contextlib.suppress(OSError):
        _, fds, _, _ = socket.recv_fds(handover, 16, DESCRIPTORS)
        return socket.socket(fileno=fds[0]) if fds else None
    return None


def _end_children() -> None:
    """A bubblewrap killed while it starts leaves a child that waits for it for ever, and that is now ours."""
    with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
        for child in children.read().split():
            os.kill(int(child), signal.SIGKILL)
