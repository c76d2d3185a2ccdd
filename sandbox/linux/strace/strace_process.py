"""EFFECT: strace as the observer of one task, where the kernel refuses a listener, or where it is asked for.

It traces the command and all it starts, but lives in the host's pid namespace: the task cannot see,
signal or trace it, nor hold what it writes to. It runs in the task's own user and network namespaces with no
capability but the one to trace there, and behind a filter of its own: a flaw in it that a task finds must not be worth
more than the task is.

strace takes the speed of a seccomp filter only for commands it starts itself. So the command brings a filter of ours
that stops the watched calls alone, and strace is given a command that does nothing to start: it then knows what to
make of the stops of the process it was attached to (strace 5.3; told apart by `seccomp_before_sysentry` and
`TCB_SECCOMP_FILTER` in its source).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import resource
import select
import signal
import time
from typing import TYPE_CHECKING, NoReturn

from sandbox.contract.intents import Intent
from sandbox.linux.caller import path_walk
from sandbox.linux.kernel import bpf, kernel_calls, seccomp_filter
from sandbox.linux.kernel.syscall_numbers import ARCHITECTURES
from sandbox.linux.kernel.syscall_table import WRITES
from sandbox.linux.messages import LOST
from sandbox.linux.strace.trace_calls import NEW
from sandbox.linux.strace.trace_parser import WATCHED, TraceParser

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.contract.results import Access
    from sandbox.linux.connect.reported_dials import ReportedDials
    from sandbox.linux.kernel.syscall_numbers import Architecture
    from sandbox.linux.observe.recorder import Recorder
    from sandbox.request.protected_names import ProtectedNames


_ATTACH_SECONDS = 20.0
_SETTLE_SECONDS = 20.0
_CHUNK = 1 << 16
# read in one go before the other doors are looked at
_BURST = 16
_PAUSE = 0.0005
_WORDS = 4096
_OUTPUT = 3
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
_NOTHING = ("/bin/sh", "-c", "")


class TraceFailure(OSError):
    """strace could not be attached; nothing of the command ran.

    Attributes:
        hint: what to do where the kernel refuses it, empty where a second attempt may succeed.
    """

    hint = ""


class TraceRefused(TraceFailure):
    """The kernel lets nobody trace here."""

    hint = (
        "let ptrace pass in the container (Docker: --cap-add SYS_PTRACE), set kernel.yama.ptrace_scope below 3, or "
        "use the observer none, under which nothing is seen"
    )


@functools.cache
def traced() -> bytes:
    """What the command brings beside its own filter: the watched calls stop for its tracer, all else runs."""
    return _program({name: bpf.returns(bpf.TRACE) for name in WATCHED} | _seldom())


def _seldom() -> dict[str, bpf.Block]:
    # a program's plain `send` is this call without an address
    return {"sendto": bpf.if_any_set(4, bpf.TRACE, bpf.ALLOW)}


@functools.cache
def confined() -> bytes:
    """What strace itself may do: trace, read, and write to what it holds."""
    refused = (
        dict.fromkeys((*WRITES, "socket", "socketpair", "bind", "connect"), seccomp_filter.EPERM)
        | seccomp_filter.REFUSED
    )
    # these may open for writing, which is how strace opens its output; a size of nothing is all it can give a file
    for name in ("openat2", "creat"):
        del refused[name]
    return _program({name: bpf.returns(bpf.refuse(code)) for name, code in refused.items()})


def _program(blocks: dict[str, bpf.Block]) -> bytes:
    return seccomp_filter.assembled(_architecture(), blocks)


def _architecture() -> Architecture:
    return ARCHITECTURES[os.uname().machine]


class _Places:
    """The host's file system; the sandbox's is the same but for what is hidden."""

    def __init__(self, executed: ProtectedNames) -> None:
        self._executed = executed
        self._devices: int | None = None

    def hold_devices(self, command: int) -> None:
        """Keep the task's `/dev` at hand: what is traced is read when the process may have ended."""
        with contextlib.suppress(OSError):  # each process is then asked for its own
            self._devices = os.open(f"/proc/{command}/root/dev", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def walk(self, pid: int, path: str, *, base: str, follows: bool, root: str) -> str:
        return path_walk.walk(pid, path, base=base, follows=follows, root=root, devices=self._devices)

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def shut(self, pid: int, path: str) -> bool:
        return path_walk.shut(pid, path)

    def changes(self, call: str, intent: Intent, path: str) -> bool:
        if not self._executed:
            return False
        # the call came off: how it was before follows from what it did
        brings = intent is Intent.RENAME and os.path.isdir(path)
        return self._executed.refuses(call, intent, path, exists=intent not in NEW, brings=brings)


class Tracer:
    """The strace of one task.

    Args:
        strace: absolute path.
        inside: a process in the task's namespaces but the pid one, as the host numbers it; it may end afterwards.
        recorder: is given what strace saw.
        outbound: is given the dials among that.
        executed: names no task may write, wherever it may write.

    Attributes:
        lost: what is said when strace ended before the command did.

    Raises:
        OSError: the namespaces cannot be opened.
    """

    lost = LOST

    def __init__(
        self, strace: str, inside: int, recorder: Recorder, outbound: ReportedDials, executed: ProtectedNames
    ) -> None:
        self._strace = strace
        self._recorder = recorder
        self._outbound = outbound
        self._places = _Places(executed)
        self._network = os.open(f"/proc/{inside}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self._inner = os.open(f"/proc/{inside}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        self._outer = kernel_calls.owning_user_namespace(self._network)
        self._output = self._words = -1
        self._said = b""
        self._pid = 0
        self._parser: TraceParser | None = None
        self._open = False

    def attach(self, command: int, cwd: str) -> int:
        """Attach to the command's process, which has stopped itself or is about to, and let it go on.

        Args:
            command: as the host numbers it.
            cwd: where it stands.

        Returns:
            A descriptor that `serve` reads.

        Raises:
            Failure: with what strace said.
        """
        output, inside = os.pipe2(os.O_CLOEXEC)
        words, words_inside = os.pipe2(os.O_CLOEXEC)
        _until(lambda: _status(command, "State:") == "T", "the command did not wait for strace")
        self._places.hold_devices(command)
        self._pid = os.fork()
        if self._pid == 0:
            self._become(command, inside, words_inside)
        for fd in (inside, words_inside, self._network, self._inner, self._outer):
            os.close(fd)
        self._output, self._words = output, words
        os.set_blocking(words, False)
        self._wait(command)
        os.set_blocking(output, False)
        self._parser = TraceParser(_architecture(), self._places, cwd=cwd, root=command, noted=True)
        self._open = True
        os.kill(command, signal.SIGCONT)
        return output

    def _become(self, command: int, output: int, words: int) -> NoReturn:
        try:
            kernel_calls.die_with_parent(signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
            high = [
                fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 16)
                for fd in (null, null, words, output, self._outer, self._network, self._inner)
            ]
            for number in range(_OUTPUT + 1):
                os.dup2(high[number], number)
            kernel_calls.setns(high[4], "user")
            kernel_calls.setns(high[5], "net")
            try:
                kernel_calls.setns(high[6], "user")
            except OSError as error:
                # bwrap makes no second user namespace where the first already is the caller's own
                if error.errno != errno.EINVAL:
                    raise
            os.closerange(_OUTPUT + 1, 1 << 20)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            # of the task's own user namespace: worth nothing outside it
            kernel_calls.drop_every_capability(but=kernel_calls.TRACING)
            kernel_calls.install_filter(confined(), listener=False)
            os.execve(self._strace, _argv(self._strace, command), _ENVIRONMENT)  # noqa: S606  our own helper
        except BaseException as error:  # noqa: BLE001  a forked child must never run its parent's code
            os.write(2, f"{self._strace} could not be started: {error}".encode("utf-8", "surrogateescape"))
        finally:
            os._exit(127)

    def _wait(self, command: int) -> None:
        """Until the command is traced, and the process that does nothing has come and gone."""
        end = time.monotonic() + _ATTACH_SECONDS
        said = b""
        while b"+++ exited with" not in said or _status(command, "TracerPid:") in ("", "0"):
            left = end - time.monotonic()
            if left <= 0:
                raise TraceFailure("strace did not attach in time")
            # the tracing itself tells of itself nowhere but in the process's status
            ready, _, _ = select.select((self._output,), (), (), _PAUSE if b"+++ exited with" in said else left)
            if ready:
                chunk = os.read(self._output, _CHUNK)
                said += chunk
                if not chunk:
                    raise _failure(self._heard())

    def _heard(self) -> str:
        with contextlib.suppress(BlockingIOError):
            while len(self._said) < _WORDS and (chunk := os.read(self._words, _WORDS)):
                self._said += chunk
        return self._said.decode("utf-8", "replace").strip()[:500]

    @property
    def ended(self) -> bool:
        """Whether it has seen the command end."""
        return self._parser is not None and self._parser.ended

    def serve(self) -> bool:
        """Take what strace has written; false once it has ended."""
        for _ in range(_BURST):
            try:
                chunk = os.read(self._output, _CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                self._open = False
                return False
            if self._parser is not None:
                self._take(self._parser, chunk)
        return True

    def _take(self, parser: TraceParser, chunk: bytes) -> None:
        self._tell(parser.feed(chunk))

    def _tell(self, found: list[Access]) -> None:
        for access in found:
            if access.intent is not Intent.CONNECT or not self._outbound.traced(access):
                self._recorder.traced(access)

    def close(self) -> None:
        """At the end, everything inside being gone: take what is left, and say what is missing."""
        parser = self._parser
        if parser is None:
            return
        end = time.monotonic() + _SETTLE_SECONDS
        while self._open and (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select((self._output,), (), (), left)
            if ready:
                self.serve()
        if self._open:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        self._tell(parser.finish())
        # the command may end at once of what the kernel answers without a tracer, before this is read
        why = "" if parser.ended else "strace did not see the command end" if self._open else self.lost
        if words := self._heard():
            why = f"strace said: {words}"
        self._recorder.incomplete = self._recorder.incomplete or why or parser.incomplete


def _argv(strace: str, command: int) -> tuple[str, ...]:
    # a name with a question mark is passed over where the architecture or this strace lacks it
    calls = ",".join(f"?{name}" for name in WATCHED)
    return (
        strace,
        "-f",
        "-q",
        "-y",
        "--seccomp-bpf",
        # what is sent is not asked for
        "-s",
        "0",
        "-e",
        f"trace={calls}",
        "-e",
        # not of the signals alone: strace then tells of no process that one ended either
        "signal=!SIGCHLD",
        "-o",
        f"/proc/self/fd/{_OUTPUT}",
        "-p",
        str(command),
        "--",
        *_NOTHING,
    )


def _failure(said: str) -> TraceFailure:
    """Why strace did not attach, from its own words."""
    if f": {os.strerror(errno.EPERM)}" in said and "ptrace(" in said:
        return TraceRefused(f"strace may not trace the command: ptrace is refused here ({os.strerror(errno.EPERM)})")
    return TraceFailure(f"strace could not attach: {said or 'it ended without a word'}")


def _until(holds: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + _ATTACH_SECONDS
    while not holds():
        if time.monotonic() > end:
            raise TraceFailure(otherwise)
        time.sleep(_PAUSE)


def _status(pid: int, field: str) -> str:
    """A word of a process's status, empty when it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            return next((line.split()[1] for line in status if line.startswith(field)), "")
    except OSError:
        return ""
