"""EFFECT: strace as the observer of one task, where the kernel refuses a listener, or where it is asked for.

strace traces the command and all it starts, but lives in the host's pid namespace: the task cannot see, signal or
trace it, nor hold its output. It runs in the task's own user and network namespaces, with no capability but
CAP_SYS_PTRACE there, and behind a filter of its own: a task that finds a flaw in strace is to gain nothing by it.

strace uses a seccomp filter (`--seccomp-bpf`) only for commands that it starts itself. The command therefore brings a
filter of this project's, which stops the watched calls alone, and strace starts a command that does nothing. It then
knows what to make of the stops of the process it was attached to (strace 5.3; `seccomp_before_sysentry` and
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
from sandbox.linux.caller.links_as_caller import CallFails, TaskTree, Unread
from sandbox.linux.caller.resolve_path_as_caller import Walked, walk
from sandbox.linux.kernel import bpf, kernel_calls, seccomp_filter
from sandbox.linux.kernel.observed_syscalls import WRITES
from sandbox.linux.kernel.syscall_numbers import ARCHITECTURES
from sandbox.linux.strace.trace_calls import NEW
from sandbox.linux.strace.trace_parser import WATCHED, TraceParser
from sandbox.linux.warden_messages import LOST

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.contract.results import Access
    from sandbox.linux.connect.reported_connections import ReportedConnections
    from sandbox.linux.kernel.syscall_numbers import Architecture
    from sandbox.linux.observe.recorder import Recorder
    from sandbox.request.protected_names import ProtectedNames


_ATTACH_SECONDS = 20.0
_SETTLE_SECONDS = 20.0
_CHUNK = 1 << 16
# reads in one go, before other descriptors have their turn
_BURST = 16
_PAUSE = 0.0005
_WORDS = 4096
_OUTPUT = 3
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
_NOTHING = ("/bin/sh", "-c", "")


class TraceFailure(OSError):
    """strace could not be attached, and nothing of the command ran.

    Attributes:
        hint: the remedy where the kernel refuses it, empty where a second attempt may succeed.
    """

    hint = ""


class TraceRefused(TraceFailure):
    """The kernel lets nobody trace here (ptrace(2), ptrace_scope)."""

    hint = (
        "let ptrace pass in the container (Docker: --cap-add SYS_PTRACE), set kernel.yama.ptrace_scope below 3, or "
        "use the observer none, under which nothing is seen"
    )


@functools.cache
def traced() -> bytes:
    """The command's second filter: the watched calls stop for its tracer, all others run."""
    return _program({name: bpf.returns(bpf.TRACE) for name in WATCHED} | _seldom())


def _seldom() -> dict[str, bpf.Block]:
    # send(3) of a connected socket is this call without an address
    return {"sendto": bpf.if_any_set(4, bpf.TRACE, bpf.ALLOW)}


@functools.cache
def confined() -> bytes:
    """The filter of strace itself, which may trace, read, and write to descriptors it holds."""
    refused = (
        dict.fromkeys((*WRITES, "socket", "socketpair", "bind", "connect"), seccomp_filter.EPERM)
        | seccomp_filter.REFUSED
    )
    # strace opens its output with this; RLIMIT_FSIZE of 0 keeps it from giving any file a byte
    del refused["creat"]
    return _program({name: bpf.returns(bpf.refuse(code)) for name, code in refused.items()})


def _program(blocks: dict[str, bpf.Block]) -> bytes:
    return seccomp_filter.assembled(_architecture(), blocks)


def _architecture() -> Architecture:
    return ARCHITECTURES[os.uname().machine]


class _Places:
    """The host's file system, which the sandbox's equals but for what is hidden."""

    def __init__(self, executed: ProtectedNames) -> None:
        self._executed = executed
        self._tree = TaskTree(late=True)

    def hold(self, command: int) -> None:
        """Hold the task's root: a call is read when its process may have ended.

        Raises:
            TraceFailure: it cannot be held.
        """
        try:
            self._tree.hold(command)
        except Unread as error:
            raise TraceFailure(f"the command's root cannot be held: {error}") from error

    def walk(self, pid: int, path: str, *, base: str, follows: bool) -> Walked | None:
        try:
            return walk(functools.partial(self._tree.link, pid), path, base=base, follows=follows)
        except (Unread, CallFails):
            return None

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def is_closed_link(self, path: str) -> bool:
        return self._tree.is_closed(path)

    def changes(self, call: str, intent: Intent, path: str) -> bool:
        if not self._executed:
            return False
        # a call that succeeded made what it makes: nothing was there before
        brings = intent is Intent.RENAME and os.path.isdir(path)
        return self._executed.refuses(call, intent, path, exists=intent not in NEW, brings=brings)


class Tracer:
    """The strace of one task.

    Args:
        strace: absolute path of the program.
        inside: a process in the task's namespaces except the pid one, as the host numbers it; it may end afterwards.
        recorder: gets the accesses that strace saw.
        outbound: gets the connections among them.
        executed: names that other programs execute, which no task may write.
        emptied: directories of which the task is shown nothing.

    Attributes:
        lost: the reason that is told where strace ended before the command did.

    Raises:
        OSError: the namespaces cannot be opened.
    """

    lost = LOST

    def __init__(
        self,
        strace: str,
        inside: int,
        recorder: Recorder,
        outbound: ReportedConnections,
        executed: ProtectedNames,
        *,
        emptied: tuple[str, ...] = (),
    ) -> None:
        self._emptied = emptied
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
            command: its number on the host.
            cwd: its working directory.

        Returns:
            A descriptor that `serve` reads.

        Raises:
            TraceFailure: strace was not attached; the error says what it wrote.
        """
        output, inside = os.pipe2(os.O_CLOEXEC)
        words, words_inside = os.pipe2(os.O_CLOEXEC)
        _until(lambda: _status(command, "State:") == "T", "the command did not wait for strace")
        self._places.hold(command)
        self._pid = os.fork()
        if self._pid == 0:
            self._become(command, inside, words_inside)
        for fd in (inside, words_inside, self._network, self._inner, self._outer):
            os.close(fd)
        self._output, self._words = output, words
        os.set_blocking(words, False)
        self._wait(command)
        os.set_blocking(output, False)
        self._parser = TraceParser(
            _architecture(), self._places, cwd=cwd, root=command, noted=True, emptied=self._emptied
        )
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
                # bubblewrap makes no second user namespace where the first has the caller's own number
                if error.errno != errno.EINVAL:
                    raise
            os.closerange(_OUTPUT + 1, 1 << 20)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            # a capability in the task's own user namespace is worth nothing outside
            kernel_calls.drop_every_capability(but=kernel_calls.TRACING)
            kernel_calls.install_filter(confined(), listener=False)
            os.execve(self._strace, _argv(self._strace, command), _ENVIRONMENT)  # noqa: S606  a fixed program, no text of the task's
        except BaseException as error:  # noqa: BLE001  a forked child must never run its parent's code
            os.write(2, f"{self._strace} could not be started: {error}".encode("utf-8", "surrogateescape"))
        finally:
            os._exit(127)

    def _wait(self, command: int) -> None:
        """Wait until the command is traced, and the process that does nothing has ended."""
        end = time.monotonic() + _ATTACH_SECONDS
        said = b""
        while b"+++ exited with" not in said or _status(command, "TracerPid:") in ("", "0"):
            left = end - time.monotonic()
            if left <= 0:
                raise TraceFailure("strace did not attach in time")
            # only the command's status shows that it is traced
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
        """Whether strace told that the command ended."""
        return self._parser is not None and self._parser.ended

    def serve(self) -> bool:
        """Parse what strace has written; false once strace has ended."""
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
        """Parse the rest once everything inside is gone, and say what is missing."""
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
        # a command may end by a call that no tracer is asked about, before its trace is read
        why = "" if parser.ended else "strace did not see the command end" if self._open else self.lost
        if words := self._heard():
            why = f"strace said: {words}"
        if why or parser.incomplete:
            self._recorder.missed(why or parser.incomplete)


def _argv(strace: str, command: int) -> tuple[str, ...]:
    # strace passes over a name behind a question mark where the architecture or the version lacks it
    calls = ",".join(f"?{name}" for name in WATCHED)
    return (
        strace,
        "-f",
        "-q",
        "-y",
        "--seccomp-bpf",
        # the bytes that are sent are not needed
        "-s",
        "0",
        "-e",
        f"trace={calls}",
        "-e",
        # with all signals left out, strace would not tell of a process that ended either
        "signal=!SIGCHLD",
        "-o",
        f"/proc/self/fd/{_OUTPUT}",
        "-p",
        str(command),
        "--",
        *_NOTHING,
    )


def _failure(said: str) -> TraceFailure:
    """The failure that strace's own words tell of."""
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
    """A word of a process's status, empty when the process is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            return next((line.split()[1] for line in status if line.startswith(field)), "")
    except OSError:
        return ""
