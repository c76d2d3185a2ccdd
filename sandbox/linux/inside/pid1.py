"""EFFECT: process 1 of a task's pid namespace: it gives up its rights, installs the filter, runs and reaps the command.

Invariant: once the command runs, no process in the task's pid namespace is without a filter or has a capability. All
that process 1 needs is imported before it is forked: an import after the mounts would not find its file, or would find
a file of the task's.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import select
import signal
import struct
from typing import TYPE_CHECKING, NoReturn

from sandbox.linux.inside import pty, resource_limits, resource_usage
from sandbox.linux.kernel import kernel_calls, landlock

if TYPE_CHECKING:
    import socket

    from sandbox.linux.warden_messages import Spec

#: The end of the command: a wait status (or -1), and an errno of execve (or 0).
OUTCOME = struct.Struct("<ii")

_SETUP_FAILED = 125
_FIRST_FREE = 3
# signals that Python or this engine handles or ignores, and whose default a command expects
_CHANGED_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT, signal.SIGTERM)


def run(
    spec: Spec,
    inner: int,
    program: bytes,
    link: socket.socket,
    *,
    listener: bool,
    masked: bool,
    stops: bytes,
    limits: tuple[int, int],
    rules: landlock.Ruleset,
    unmounted: OSError | None = None,
    proc: int | None = None,
) -> NoReturn:
    """Become process 1 and never return.

    Args:
        spec: the command, its directory and its environment.
        inner: a descriptor of the user namespace that the command belongs in.
        program: the task's filter.
        link: a socket to the warden.
        listener: whether the filter stops calls for the warden.
        masked: whether a mask stands; the warden is told.
        stops: the filter that stops calls for a tracer, empty where there is none.
        limits: the executor's own soft and hard limit on open files.
        rules: the task's Landlock rules; the warden is told their version.
        unmounted: the error by which this pid namespace has no `/proc`, `None` where it has one.
        proc: a mount of the old `/proc` as it was before the plan, for a task that gets no new one.
    """
    try:
        # a signal without a handler never reaches process 1, not even SIGKILL from inside (pid_namespaces(7))
        for number in _CHANGED_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        if proc is None:
            _insist_on_proc(link, unmounted)
        else:
            _keep_proc()
        if not _enter_user(inner) and proc is not None:
            # a task that sees processes outside is not to own the mounts: another user namespace does
            kernel_calls.enter_new_user_namespace(proc)
        os.setsid()
        os.chdir(spec.cwd)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        resource_limits.limit_processes()
        kernel_calls.drop_every_capability()
        kernel_calls.forbid_attaching()
        landlock.restrict(rules)
        _wait_for_warden(link)
        descriptor = _filter(program, link, listener=listener)
        word = b"armed %f %d %d %d %d" % (*resource_usage.own(), masked, rules.version, descriptor)
        _hand_over(link, word, listener=listener)
        _close_all_but(link.fileno())
        status = _command(spec, link, stops)
    except BaseException as error:  # noqa: BLE001  the warden must hear of any error
        _tell(link, b"failed " + reason(error))
        os._exit(_SETUP_FAILED)
    _tell(link, b"ended " + OUTCOME.pack(*status))
    _end_rest(link)
    os._exit(0)


def _end_rest(link: socket.socket) -> None:
    """Kill what the command left running, wait for it, and tell the usage of all.

    The warden does not wait for this process's own end, which takes long: its memory is a whole interpreter's.
    """
    if os.getpid() != 1:  # kill(-1) would then reach every process of the user
        return
    with contextlib.suppress(OSError):  # nothing is left
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    # the streams are closed, so that their readers see the end
    os.closerange(0, _FIRST_FREE)
    _tell(link, b"gone " + resource_usage.own_and_reaped().packed())


def _keep_proc() -> None:
    """Keep the `/proc` that is there, and insist that nothing in it is writable.

    Other processes' entries are closed by the user namespace alone: the kernel lets a task read only entries of its
    own namespace's processes (ptrace(2), PTRACE_MODE_READ).
    """
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            *_, place, options = line.split()[:6]
            if (place == "/proc" or place.startswith("/proc/")) and "ro" not in options.split(","):
                raise OSError(f"{place} is not read-only")


class ProcMasked(OSError):
    """A refusal to mount a new `/proc`, which would show what mounts hide in the present one (mount_too_revealing)."""


def mount_proc() -> None:
    """Mount a read-only `/proc` of this pid namespace over the present one.

    The kernel lets user 0 change settings without any capability (fs/proc/proc_sysctl.c, test_perm), and a task of
    root's is user 0. It lets every process take back what made it the first to be killed (fs/proc/base.c,
    __set_oom_adj).

    Raises:
        ProcMasked: the kernel refuses the mount.
    """
    try:
        kernel_calls.mount_proc()
    except PermissionError as error:
        raise ProcMasked(error.errno, error.strerror, error.filename) from error
    kernel_calls.set_mount_attributes(
        kernel_calls.AT_FDCWD, "/proc", add=kernel_calls.MOUNT_ATTR_RDONLY, recursive=False
    )


def _insist_on_proc(link: socket.socket, unmounted: OSError | None) -> None:
    """Tell the warden why there is no `/proc` of this pid namespace, where there is none."""
    if isinstance(unmounted, ProcMasked):
        _tell(link, b"no-proc " + reason(unmounted))
        os._exit(_SETUP_FAILED)
    if unmounted is not None:
        raise unmounted


def reason(error: BaseException) -> bytes:
    """The words in which the warden is told of an error."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}".encode("utf-8", "surrogateescape")
    return str(error).encode("utf-8", "surrogateescape") or type(error).__name__.encode()


def _tell(link: socket.socket, word: bytes) -> None:
    try:
        link.send(word)
    except OSError:  # the warden is gone, and this process with it in a moment
        os._exit(_SETUP_FAILED)


def _enter_user(inner: int) -> bool:
    """Enter the second user namespace; false where bubblewrap made none, as for the caller's own number."""
    try:
        kernel_calls.setns(inner, "user")
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False
    return True


def _wait_for_warden(link: socket.socket) -> None:
    """Wait until the joiner is gone: only then is the warden the parent, whose death the death signal follows."""
    if link.recv(16) != b"go":
        os._exit(_SETUP_FAILED)
    kernel_calls.die_with_parent(signal.SIGKILL)
    poll = select.poll()
    poll.register(link.fileno(), select.POLLIN)
    if any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0)):
        os._exit(_SETUP_FAILED)


def _hand_over(link: socket.socket, word: bytes, *, listener: bool) -> None:
    """Tell the warden that this process is ready, and wait until it holds the listener.

    The warden copies the descriptor itself, so this process must let it (pidfd_getfd(2)). A send of it would stop at
    the filter already. No other process is in this pid namespace yet.
    """
    if listener:
        kernel_calls.permit_attaching()
    link.send(word)
    if listener and link.recv(16) != b"held":
        os._exit(_SETUP_FAILED)
    kernel_calls.forbid_attaching()


def _filter(program: bytes, link: socket.socket, *, listener: bool) -> int:
    try:
        return kernel_calls.install_filter(program, listener=listener)
    except OSError as error:
        # EBUSY: another filter has a listener; EINVAL, ENOSYS: the kernel lacks the flags (seccomp(2))
        if not listener or error.errno not in (errno.EBUSY, errno.EINVAL, errno.ENOSYS):
            raise
        _tell(link, b"no-listener " + reason(error))
        os._exit(_SETUP_FAILED)


def _close_all_but(keep: int) -> None:
    os.closerange(_FIRST_FREE, keep)
    os.closerange(keep + 1, 1 << 20)


def _lead_session(spec: Spec) -> None:
    os.setsid()
    if spec.screen is not None:
        pty.become_controlling()


def _command(spec: Spec, link: socket.socket, stops: bytes) -> tuple[int, int]:
    """Fork the command, reap until it has ended, return its wait status and its errno of execve."""
    report, report_inside = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(report)
            _lead_session(spec)
            if stops:
                kernel_calls.permit_tracing()
            # the kernel tells the warden the sender's number on the host
            link.send(b"forked")
            if stops:
                # strace that attaches in the middle of a call takes the call's end for the beginning of the next
                os.kill(os.getpid(), signal.SIGSTOP)
            # the executor is told of the start before the command can do anything
            if link.recv(16) != b"run":
                os._exit(_SETUP_FAILED)
            link.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            # execve may wait at the listener, where a warden without privilege has to read this process
            kernel_calls.permit_attaching()
            if stops:
                kernel_calls.install_filter(stops, listener=False)
            os.execve(spec.command[0], list(spec.command), spec.environment)  # noqa: S606  the task's command
        except OSError as error:
            os.write(report_inside, struct.pack("<i", error.errno or 1))
        except BaseException:  # noqa: BLE001  a forked child must never run its parent's code
            os.write(report_inside, struct.pack("<i", 8))
        os._exit(127)
    os.close(report_inside)
    failed = os.read(report, 4)
    os.close(report)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return status, struct.unpack("<i", failed)[0] if failed else 0
