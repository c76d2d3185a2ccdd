"""EFFECT: process 1 of a task's pid namespace: disarms itself, installs the filter, runs the command and reaps.

Invariant: nothing unfiltered and nothing with a capability ever runs in the task's pid namespace once the command
does. Everything this process needs is imported before it is forked: an import after the mounts could not find its
file, or would be taken for the task's.
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

from sandbox.linux.inside import pty, resource_limits
from sandbox.linux.kernel import kernel_calls

if TYPE_CHECKING:
    import socket

    from sandbox.linux.messages import Spec

#: How process 1 ends: a wait status (or -1) and an errno of execve (or 0).
OUTCOME = struct.Struct("<ii")
#: What it and everything it waited for used: seconds of processor time, and a peak in KiB.
USAGE = struct.Struct("<dq")

_SETUP_FAILED = 125
_FIRST_FREE = 3
# what Python or this engine handles or ignores, and a command expects at its default
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
    unmounted: OSError | None = None,
    proc: int | None = None,
) -> NoReturn:
    """Become process 1 and never return.

    Args:
        spec: what to run, where, with which environment.
        inner: a descriptor of the user namespace the command belongs in.
        program: the filter.
        link: to the warden.
        listener: whether the filter stops calls for the warden.
        masked: whether a mask stands, for the warden's report.
        stops: the filter that stops calls for a tracer, empty where there is none.
        limits: the executor's own limits on open files, soft and hard.
        unmounted: why there is no `/proc` of this pid namespace, where there is none.
        proc: the `/proc` that is there as it was before the plan, for a task that gets none of its own.
    """
    try:
        # a namespace's first process is spared every signal it has no handler for, its own children's KILL included
        for number in _CHANGED_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        if proc is None:
            _open_proc(link, unmounted)
        else:
            _keep_proc()
        if not _enter_user(inner) and proc is not None:
            # where processes outside are in sight, the one that owns the mounts is not to be the task's own
            kernel_calls.enter_new_user_namespace(proc)
        os.setsid()
        os.chdir(spec.cwd)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        resource_limits.limit_processes()
        kernel_calls.drop_every_capability()
        kernel_calls.forbid_attaching()
        _wait_for_warden(link)
        descriptor = _filter(program, link, listener=listener)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        word = b"armed %f %d %d %d" % (usage.ru_utime + usage.ru_stime, usage.ru_maxrss, masked, descriptor)
        _hand_over(link, word, listener=listener)
        _close_all_but(link.fileno())
        status = _command(spec, link, stops)
    except BaseException as error:  # noqa: BLE001  whatever it is, the warden must hear of it
        _tell(link, b"failed " + reason(error))
        os._exit(_SETUP_FAILED)
    _tell(link, b"ended " + OUTCOME.pack(*status))
    _end_rest(link)
    os._exit(0)


def _end_rest(link: socket.socket) -> None:
    """End what the command left running, wait for it, and tell what all of it used.

    The kernel counts the time and memory of nothing that is not waited for. The warden need not wait for this process,
    whose own end takes long: its memory is an interpreter's.
    """
    if os.getpid() != 1:  # it would be everybody's end
        return
    with contextlib.suppress(OSError):  # there is nothing left
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    # who reads the command's streams reads them to their end
    os.closerange(0, _FIRST_FREE)
    own, rest = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + rest.ru_utime + rest.ru_stime
    _tell(link, b"gone " + USAGE.pack(cpu, max(own.ru_maxrss, rest.ru_maxrss)))


def _keep_proc() -> None:
    """Stay with the `/proc` that is there, of which nothing may be writable.

    What is another process's is closed by the user namespace, and by nothing else: the kernel lets a task look only
    at what is of its own.
    """
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            *_, place, options = line.split()[:6]
            if (place == "/proc" or place.startswith("/proc/")) and "ro" not in options.split(","):
                raise OSError(f"{place} is not read-only")


class ProcMasked(OSError):
    """A new `/proc` would show what something hides in the one there is."""


def mount_proc() -> None:
    """A `/proc` of this pid namespace over the one there is, ahead of any task: what comes later makes it read-only.

    Raises:
        Hidden: the kernel refuses it.
    """
    try:
        kernel_calls.mount_proc()
    except PermissionError as error:
        raise ProcMasked(error.errno, error.strerror, error.filename) from error
    _close_settings()


def _open_proc(link: socket.socket, unmounted: OSError | None) -> None:
    """Let processes be written to through `/proc`; its settings stay as they were closed."""
    if isinstance(unmounted, ProcMasked):
        _tell(link, b"masked " + reason(unmounted))
        os._exit(_SETUP_FAILED)
    if unmounted is not None:
        raise unmounted
    kernel_calls.set_mount_attributes(
        kernel_calls.AT_FDCWD, "/proc", remove=kernel_calls.MOUNT_ATTR_RDONLY, recursive=False
    )


def _close_settings() -> None:
    """Make all of `/proc` that is not about a process read-only.

    The kernel lets user 0 change its settings with no capability at all, and root's tasks are user 0.
    """
    with os.scandir("/proc") as entries:
        found = [
            entry.name
            for entry in entries
            if not entry.name.isdecimal()
            and not entry.is_symlink()
            and (entry.is_dir() or entry.stat().st_mode & 0o222)
        ]
    proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    # a copy of a read-only mount is read-only
    kernel_calls.set_mount_attributes(
        kernel_calls.AT_FDCWD, "/proc", add=kernel_calls.MOUNT_ATTR_RDONLY, recursive=False
    )
    try:
        for name in found:
            tree = kernel_calls.clone_name(proc, name, recursive=False)
            try:
                kernel_calls.attach_mount_in(tree, proc, name)
            finally:
                os.close(tree)
    finally:
        os.close(proc)
    kernel_calls.set_mount_attributes(
        kernel_calls.AT_FDCWD, "/proc", remove=kernel_calls.MOUNT_ATTR_RDONLY, recursive=False
    )


def reason(error: BaseException) -> bytes:
    """What the warden is told of an error."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}".encode("utf-8", "surrogateescape")
    return str(error).encode("utf-8", "surrogateescape") or type(error).__name__.encode()


def _tell(link: socket.socket, word: bytes) -> None:
    try:
        link.send(word)
    except OSError:  # the warden is gone, and this process with it in a moment
        os._exit(_SETUP_FAILED)


def _enter_user(inner: int) -> bool:
    """Whether there is a second user namespace; bwrap makes none where the first has the caller's own number."""
    try:
        kernel_calls.setns(inner, "user")
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False
    return True


def _wait_for_warden(link: socket.socket) -> None:
    """The parent is the warden only once the joiner is gone, and the death signal names the parent of that moment."""
    if link.recv(16) != b"go":
        os._exit(_SETUP_FAILED)
    kernel_calls.die_with_parent(signal.SIGKILL)
    poll = select.poll()
    poll.register(link.fileno(), select.POLLIN)
    if any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0)):
        os._exit(_SETUP_FAILED)


def _hand_over(link: socket.socket, word: bytes, *, listener: bool) -> None:
    """Have the warden hold the listener before the first call that stops at it, as sending a descriptor would.

    It takes it itself, for which this process has to let it; nothing else is in this pid namespace yet.
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
        # another listener above this one, or a kernel without the flags
        if not listener or error.errno not in (errno.EBUSY, errno.EINVAL, errno.ENOSYS):
            raise
        _tell(link, b"unheard " + reason(error))
        os._exit(_SETUP_FAILED)


def _close_all_but(keep: int) -> None:
    os.closerange(_FIRST_FREE, keep)
    os.closerange(keep + 1, 1 << 20)


def _lead_session(spec: Spec) -> None:
    os.setsid()
    if spec.screen is not None:
        pty.become_controlling()


def _command(spec: Spec, link: socket.socket, stops: bytes) -> tuple[int, int]:
    """Fork the command, reap until it has ended, return its wait status."""
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
                # a tracer that comes in the middle of a call takes its end for the beginning of the next
                os.kill(os.getpid(), signal.SIGSTOP)
            # the executor hears of the start before anything of the command can be heard
            if link.recv(16) != b"run":
                os._exit(_SETUP_FAILED)
            link.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            # its execve may wait at the listener, and a warden without privilege has to read it there
            kernel_calls.permit_attaching()
            if stops:
                kernel_calls.install_filter(stops, listener=False)
            os.execve(spec.command[0], list(spec.command), spec.environment)  # noqa: S606  the task itself
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
