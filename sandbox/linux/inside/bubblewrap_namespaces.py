"""EFFECT: bubblewrap, which makes every namespace of a sandbox but the pid one and then waits at a gate.

bubblewrap's processes carry no filter. They therefore stay out of the task's pid namespace, and they end before the
command starts: process 1 keeps the namespaces.
"""

from __future__ import annotations

import json
import os
import select
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.contract.errors import ASK, Masked, NotStarted, remedy

if TYPE_CHECKING:
    from sandbox.linux.warden_messages import Base

# dash redirects descriptors of one digit only
_GATE = 9
_INFO = 8
_GATE_SCRIPT = f"echo >&{_GATE}; read _ <&{_GATE}"
# a task's environment reaches no helper
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
_SETUP_SECONDS = 30.0
# the setting that bubblewrap changes for its own user namespace (--disable-userns)
_OWN_SETTING = "/proc/sys/user/max_user_namespaces"


def bwrap_argv(base: Base) -> tuple[str, ...]:
    """The command line of bubblewrap, the same for every task of a base; the joiner mounts what differs.

    The root is bound writable here, since a writable grant is a copy of it. The joiner makes it read-only in one call.
    Before that no process is inside but the gate's shell, which runs no text of a task.
    """
    return (
        base.bwrap,
        "--unshare-user",
        # --disable-userns changes a setting of the kernel's, through a /proc that may be changed
        *(() if base.nested else ("--disable-userns",)),
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--cap-drop",
        "ALL",
        "--die-with-parent",
        "--new-session",
        "--bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--info-fd",
        str(_INFO),
        "--",
        "/bin/sh",
        "-c",
        _GATE_SCRIPT,
    )


@dataclass(slots=True)
class Bubblewrap:
    """A bubblewrap that waits at its gate.

    Attributes:
        pid: bubblewrap's own process, a child of this one.
        inside: a process in the new namespaces, as the host numbers it.
    """

    pid: int
    inside: int
    gate: socket.socket

    def release(self) -> None:
        """Open the gate, so that bubblewrap's processes end."""
        self.gate.close()


@dataclass(slots=True)
class StartingBubblewrap:
    """A bubblewrap that makes namespaces and mounts.

    Attributes:
        pid: bubblewrap's own process, a child of this one.
    """

    pid: int
    _gate: socket.socket
    _info: int
    _errors: int

    def close(self) -> None:
        """Close its descriptors, in a fork that is not to hold them."""
        self._gate.close()
        os.close(self._info)
        os.close(self._errors)

    def wait(self) -> Bubblewrap:
        """Wait until its mounts stand.

        Raises:
            Masked: `/proc` is partly hidden, and the base asks for a new one.
            NotStarted: bubblewrap ended, with its reason.
        """
        try:
            inside = _until_gate(self._gate, self._info, self._errors)
        except BaseException:
            self._gate.close()
            raise
        finally:
            os.close(self._info)
            os.close(self._errors)
        return Bubblewrap(self.pid, inside, self._gate)


def start(base: Base) -> StartingBubblewrap:
    """Start bubblewrap.

    Raises:
        NotStarted: bubblewrap cannot be executed.
    """
    gate, gate_inside = socket.socketpair()
    info_read, info_write = os.pipe()
    errors_read, errors_write = os.pipe()
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    # dup2(2) onto itself keeps close-on-exec, and a later dup2 could overwrite a descriptor that is still needed
    high = [_raised(fd) for fd in (gate_inside.detach(), info_write, errors_write, null)]
    try:
        pid = os.posix_spawn(
            base.bwrap,
            bwrap_argv(base),
            _ENVIRONMENT,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, high[0], _GATE),
                (os.POSIX_SPAWN_DUP2, high[1], _INFO),
                (os.POSIX_SPAWN_DUP2, high[3], 0),
                (os.POSIX_SPAWN_DUP2, high[3], 1),
                (os.POSIX_SPAWN_DUP2, high[2], 2),
            ],
        )
    except OSError as error:
        gate.close()
        for fd in (info_read, errors_read):
            os.close(fd)
        raise NotStarted(
            f"cannot execute {base.bwrap}: {error.strerror}",
            hint=remedy(error) or "install bubblewrap (Debian: apt install bubblewrap)",
        ) from error
    finally:
        for fd in high:
            os.close(fd)
    return StartingBubblewrap(pid, gate, info_read, errors_read)


def _raised(fd: int) -> int:
    """The descriptor moved above every number that bubblewrap uses, close-on-exec."""
    import fcntl

    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 16)
    os.close(fd)
    return moved


def _until_gate(gate: socket.socket, info: int, errors: int) -> int:
    deadline = time.monotonic() + _SETUP_SECONDS
    description, said, spoke = b"", b"", False
    poll = select.poll()
    for fd in (gate.fileno(), info, errors):
        poll.register(fd, select.POLLIN)
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise NotStarted(f"bubblewrap did not finish within {_SETUP_SECONDS:.0f} s", hint=_told(said))
        for fd, _ in poll.poll(left * 1000):
            if fd == gate.fileno():
                if not gate.recv(16):
                    raise _refused(said + _rest(errors))
                spoke = True
                poll.unregister(fd)
            elif data := os.read(fd, 4096):
                if fd == info:
                    description += data
                else:
                    said += data
            else:
                poll.unregister(fd)
        # bubblewrap writes its description in several pieces
        if spoke and description.rstrip().endswith(b"}"):
            return int(json.loads(description)["child-pid"])


def _rest(fd: int) -> bytes:
    os.set_blocking(fd, False)
    data = b""
    try:
        while chunk := os.read(fd, 4096):
            data += chunk
    except BlockingIOError:
        pass
    return data


def _told(said: bytes) -> str:
    return said.decode("utf-8", "replace").strip()[:500]


def _refused(said: bytes) -> NotStarted:
    text = _told(said)
    if _OWN_SETTING in text:
        return Masked(text)
    return NotStarted(f"bubblewrap could not build the sandbox: {text or 'it ended without a word'}", hint=ASK)
