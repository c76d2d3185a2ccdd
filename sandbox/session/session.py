"""EFFECT: the session, which owns one supervisor and every run it started."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import socket
import subprocess
import threading
from typing import TYPE_CHECKING, Any, Self, Unpack

from sandbox.contract.config import ResolvedSandboxConfig
from sandbox.contract.errors import ASK, NotStarted, RequestRefused, SandboxError, Unavailable
from sandbox.contract.run_options import Running, RunOptions, Signalled
from sandbox.machine.ask_facts import Snapshot, host_facts
from sandbox.machine.learned_kernel_limits import LearnedKernelLimits
from sandbox.planning import linux_plan
from sandbox.request import build, network_and_socket_refusals
from sandbox.request.request import WorkspaceFacts
from sandbox.request.task_outputs import Declared
from sandbox.run.ending_signals import ends
from sandbox.scratch import task_tmpdir
from sandbox.session.server import Server
from sandbox.session.server_readiness import Ready
from sandbox.session.start_supervisor import START_SECONDS, start_supervisor
from sandbox.session.wrap import Wrapped
from sandbox.terminal import restore_modes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from sandbox.contract.errors import Refusal
    from sandbox.contract.results import RunResult
    from sandbox.linux.warden_messages import Base
    from sandbox.planning.macos.macos_path_reach import MacPlan
    from sandbox.planning.path_reach import Plan
    from sandbox.request.linked_packages import LinkedProjects
    from sandbox.request.request import Request
    from sandbox.session.machine_verdict import HostReport
    from sandbox.session.probe_memory import Prober

__all__ = ["Ready", "RunOptions", "Server", "Session", "Wrapped", "plan", "probe"]

_END_SECONDS = 5.0
_TRIAL_SECONDS = 60.0


def probe() -> HostReport:
    """Find out what this machine can do; takes tens of milliseconds and leaves nothing behind."""
    with Session() as session:
        return session.probe()


def plan(request: Request, *, platform: str | None = None) -> Plan | MacPlan:
    """Plan a request on this machine.

    Raises:
        RequestRefused: a grant cannot be given.
    """
    if (platform or request.facts.platform) == "macos":
        from sandbox.planning.macos import plan_of_request

        return plan_of_request.plan(request, Snapshot())
    return linux_plan.plan(request, Snapshot())


class Session:
    """A session, which runs tasks, any number at once, each behind its own walls.

    It is safe from several threads. Nothing is started before the first run, and leaving the context (or `close`) ends
    every run.
    """

    def __init__(self) -> None:
        # The lock is reentrant: a signal handler may come while the main thread holds it.
        self._lock = threading.RLock()
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._left = threading.Condition(self._lock)
        self._runs: set[Signalled] = set()
        self._interrupted = False
        self._declared: dict[ResolvedSandboxConfig, None] = {}
        self._closed = False
        self._swept = False
        #: The features that the session's runs found missing on this machine.
        self.machine = LearnedKernelLimits()
        self._prober: Prober | None = None

    def __enter__(self) -> Self:
        """The session itself; nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything the session started."""
        self.close()

    async def __aenter__(self) -> Self:
        """The session itself; nothing is started yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything the session started."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End every run and the supervisor; a closed session runs nothing more."""
        with self._lock:
            self._closed = True
            runs = tuple(self._runs)
            supervisor, self._supervisor = self._supervisor, None
            channel, self._requests = self._requests, None
        for run in runs:
            run.signal(signal.SIGKILL)
        with self._left:
            # Each run still tells how it ended.
            self._left.wait_for(lambda: not self._runs, _END_SECONDS)
        if channel is not None:
            channel.close()
        if supervisor is not None:
            try:
                supervisor.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                supervisor.kill()
                supervisor.wait()
        self.reset()

    def request(
        self,
        config: ResolvedSandboxConfig,
        *,
        workspace_root: str,
        keyed: Iterable[str] | None = None,
        nested: Iterable[str] = (),
        projects: LinkedProjects | None = None,
        dependency_outputs: Iterable[str] = (),
        dependency_reported: Iterable[str] = (),
        cache_dir: str | None = None,
        links: Iterable[tuple[str, str]] = (),
        declared: Declared | None = None,
    ) -> Request:
        """Judge what one attempt may read and write.

        Args:
            config: the grants, absolute and canonical.
            workspace_root: see `WorkspaceFacts.root` of `sandbox.request.request`; likewise the arguments below.
            keyed: directories of the projects the task's cache key answers for; `None` when it has no cache.
            nested: directories of the workspace's projects.
            projects: the same as something to ask, for a workspace too large to be listed; replaces `nested`.
            dependency_outputs: files and directories other tasks made for this one.
            dependency_reported: directories that hold those outputs; denials in them are this task's matter.
            cache_dir: where the run keeps its cache, when that is not `.vx/cache`.
            links: links the grants were spelled through, each as its place and its text.
            declared: the outputs that the task and those it depends on declare.

        Raises:
            RequestRefused: with every reason found.
        """
        workspace = WorkspaceFacts(
            root=workspace_root,
            keyed=None if keyed is None else tuple(keyed),
            nested=tuple(nested),
            dependency_outputs=tuple(dependency_outputs),
            dependency_reported=tuple(dependency_reported),
            cache_dir=cache_dir,
            links=tuple(links),
            declared=declared or Declared(),
        )
        return build.build(config, workspace, files=Snapshot(), facts=host_facts(), projects=projects)

    def declare(self, tasks: Iterable[Request | ResolvedSandboxConfig]) -> None:
        """Declare tasks of this run, in addition to those declared before.

        A task with `network = true` reaches the hosts that the declared tasks list, together. One that starts before
        they are declared does not. Nothing else depends on it, and a task need not be declared to be run.

        Raises:
            RequestRefused: a config lists an entry that is no host pattern; nothing was declared then.
        """
        configs: dict[ResolvedSandboxConfig, None] = {}
        refused: list[Refusal] = []
        for task in tasks:
            if isinstance(task, ResolvedSandboxConfig):
                refused += network_and_socket_refusals.judge(task)
                configs[task] = None
            else:  # a request's config was judged when the request was built
                configs[task.config] = None
        if refused:
            raise RequestRefused(tuple(refused))
        with self._lock:
            self._declared |= configs

    @property
    def declared(self) -> tuple[ResolvedSandboxConfig, ...]:
        """The tasks of this run, in the order they were declared."""
        with self._lock:
            return tuple(self._declared)

    def run(self, request: Request, *, command: str, **options: Unpack[RunOptions]) -> RunResult:
        """Run one command behind the request's walls and judge it.

        Args:
            request: from `Session.request`.
            command: given to `/bin/sh -c`.
            options: see `RunOptions`.

        Returns:
            A result; one that did not start has `exit_code` 125 and says why in `refusals`.
        """
        return self._run(request, command, options)()

    def start(
        self, request: Request, *, command: str, ready: Ready | None = None, **options: Unpack[RunOptions]
    ) -> Server:
        """Start a server behind the request's walls; it runs until it is stopped or the session is closed.

        Args:
            request: from `Session.request`.
            command: given to `/bin/sh -c`.
            ready: the sign that it is ready, see `Server.wait_ready`.
            options: see `RunOptions`.

        Raises:
            SandboxError: `ready.output` is no regular expression.
        """
        return Server(lambda given: self._run(request, command, given), options, ready)

    def wrap(self, request: Request, *, command: str, **options: Unpack[RunOptions]) -> Wrapped:
        """Wrap a run for a program that starts, feeds and kills its processes itself: the program spawns the wrapper.

        Args:
            request: from `Session.request`.
            command: given to `/bin/sh -c`.
            options: see `RunOptions`; the streams are the spawned process's own.
        """
        cwd = options.get("cwd") or request.config.project
        return Wrapped(lambda given: self._run(request, command, given), options, cwd)

    async def arun(self, request: Request, *, command: str, **options: Unpack[RunOptions]) -> RunResult:
        """Run one command as `run` does, in an event loop; cancelling it ends the whole tree.

        Callbacks are called in another thread.
        """
        run = self._run(request, command, options)
        running = asyncio.ensure_future(asyncio.to_thread(run))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            run.stop()
            await running
            raise

    def probe(self, *, weaker: bool = False) -> HostReport:
        """Find out what this machine can do; it is asked once a mode until `reset`, however many threads ask.

        A run that cannot start asks by itself where the cause lies with the machine, and names that cause.

        Args:
            weaker: the mode: whether the task accepts a weaker sandbox (`weakerWhenNested`).
        """
        from sandbox.session import machine_verdict, probe_memory

        with self._lock:
            if self._prober is None:
                self._prober = probe_memory.Prober(
                    lambda mode: machine_verdict.ask(lambda: self._trial(weaker=mode), self.machine)
                )
            prober = self._prober
        return prober(weaker=weaker)

    def reset(self) -> None:
        """Forget all that was found out about this machine: the next run, and the next `probe`, find out anew."""
        with self._lock:
            self.machine.forget()
            prober = self._prober
        if prober is not None:
            prober.forget()

    def _trial(self, *, weaker: bool) -> RunResult:
        """One sandboxed `true`, built as every run is."""
        import tempfile

        facts = host_facts()
        with tempfile.TemporaryDirectory(prefix="vxconf-probe-") as made:
            root = os.path.realpath(made)
            config = ResolvedSandboxConfig(
                platform="macos" if facts.platform == "macos" else "linux",
                workspace=root,
                project=root,
                weaker_when_nested=weaker,
            )
            request = self.request(config, workspace_root=root)
            return self._run(request, "true", {"timeout": _TRIAL_SECONDS}, explain=False)()

    def _explained(self, error: SandboxError, *, weaker: bool) -> SandboxError:
        """A failure of the machine, with its cause and its cure."""
        if error.hint != ASK:
            return error
        try:
            report = self.probe(weaker=weaker)
        except (OSError, MemoryError, RuntimeError):  # there is too little left to ask with
            return error
        if report.available or not report.cause:
            return error
        return NotStarted(f"{error.message}: {report.cause}", hint=report.fix)

    def signal(self, number: int) -> None:
        """Send a signal to the command of every run; `SIGKILL` ends whole sandboxes.

        A run whose command has not started yet is ended by a signal that ends processes.
        """
        with self._lock:
            runs = tuple(self._runs)
        for run in runs:
            run.signal(number)

    def interrupt(self, number: int) -> None:
        """Send a signal to the command of every run; after one that ends processes no further run begins."""
        self._interrupted = self._interrupted or ends(number)
        self.signal(number)

    def hand_over(self, base: Base, fds: list[int]) -> None:
        """Give a warden the control socket and the three standard streams of a run."""
        with self._lock:
            if self._closed:
                raise Unavailable("the session is closed", hint="run tasks inside the session's context")
            channel = self._requests
            if channel is None or (self._supervisor is not None and self._supervisor.poll() is not None):
                channel = self._start()
            word = base.word()
            try:
                socket.send_fds(channel, [word], fds)
            except (BrokenPipeError, ConnectionResetError):  # it died just now, and `poll` had not heard
                socket.send_fds(self._start(), [word], fds)

    def lend(self, terminal: int, before: list[Any], meanwhile: list[Any]) -> socket.socket:
        """Have the supervisor give a terminal back as it was, should this process die before it says otherwise.

        Returns:
            The line on which to say otherwise.
        """
        ours, theirs = socket.socketpair()
        word = restore_modes.lend_word(before, meanwhile)
        # A supervisor that is gone is noticed by the ends of its wardens.
        with theirs, self._lock, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if self._requests is not None:
                socket.send_fds(self._requests, [word], [theirs.fileno(), terminal])
        return ours

    def _run(self, request: Request, command: str, options: RunOptions, *, explain: bool = True) -> Running:
        """A run as the request's platform has it; modules of the other platform are never imported."""
        if request.facts.platform == "macos":
            from sandbox.macos.run import MacRun

            return MacRun(self, request, command, options)
        from sandbox.linux.run.run import LinuxRun

        explained = functools.partial(self._explained, weaker=request.config.weaker_when_nested) if explain else None
        return LinuxRun(self, request, command, options, explained)

    def _start(self) -> socket.socket:
        """Start the supervisor; its channel."""
        supervisor, channel = start_supervisor()
        if self._requests is not None:
            self._requests.close()
        self._supervisor, self._requests = supervisor, channel
        return channel

    def enter(self, run: Signalled) -> None:
        """Have the session's signals reach a run."""
        with self._lock:
            # a signal handler may come between any two steps: it either finds the run, or is found here
            self._runs.add(run)
            if self._interrupted:
                self._runs.discard(run)
                raise NotStarted("the run was stopped before the command started")
            swept, self._swept = self._swept, True
        if not swept:
            # Sessions that were killed leave temporary directories behind.
            task_tmpdir.sweep(host_facts().temp_root)

    def leave(self, run: Signalled) -> None:
        """Have the session's signals no longer reach a run, which has ended."""
        with self._lock:
            self._runs.discard(run)
            self._left.notify_all()
