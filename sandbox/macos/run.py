"""EFFECT: one call of `Session.run` on macOS: what surrounds the command, and what becomes of it."""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import threading
from typing import TYPE_CHECKING

from sandbox.base import environment
from sandbox.base.redact import masker
from sandbox.contract.errors import NotStarted, SandboxError
from sandbox.contract.run_options import GRACE, executable
from sandbox.machine.ask_facts import Snapshot
from sandbox.macos import proxy_handle, system_tools
from sandbox.macos.attempt import MacAttempt
from sandbox.macos.log_judge import LogJudge
from sandbox.macos.log_monitor import LogMonitor
from sandbox.macos.settle import settle
from sandbox.planning.macos import plan_of_request, profile_text
from sandbox.proxy.policy import policy_from_config
from sandbox.run import gather
from sandbox.run import verdict as run_verdict
from sandbox.scratch import make_dirs, task_tmpdir
from sandbox.terminal.output_stream import OutputStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.contract.results import RunResult, Violation
    from sandbox.contract.run_options import Runner, RunOptions
    from sandbox.macos.attempt import EndedCommand
    from sandbox.macos.denial_log import LoggedDenial
    from sandbox.macos.system_tools import SystemTools
    from sandbox.planning.macos.profile_rules import MacPlan
    from sandbox.request.request import Request

_OBSERVERS = ("auto", "none")


class MacRun:
    """One call of `Session.run`.

    Args:
        session: whose signals reach the command.
        request: what may be reached.
        command: given to `/bin/sh -c`.
        options: see `RunOptions`.
        system: the programs; those of every Mac unless told.
    """

    def __init__(
        self, session: Runner, request: Request, command: str, options: RunOptions, *, system: SystemTools | None = None
    ) -> None:
        self._session = session
        self._request = request
        self._command = " ".join((command, *map(shlex.quote, options.get("args", ()))))
        self._options = options
        self._tools = system or system_tools.SYSTEM
        self._attempt: MacAttempt | None = None
        self._violations: list[Violation] = []
        self._stopped = False
        self._lock = threading.RLock()
        self._judging = threading.Lock()

    def stop(self) -> None:
        """End it, from any thread, now or as soon as it starts."""
        with self._lock:
            self._stopped = True
            if self._attempt is not None:
                self._attempt.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Send a signal to the command, from any thread; to nobody while none runs."""
        with self._lock:
            if self._attempt is not None:
                self._attempt.signal(number)

    def __call__(self) -> RunResult:
        """Run to the end; a refusal is a result."""
        try:
            return self._prepared()
        except SandboxError as error:
            return run_verdict.not_started(error)
        except OSError as error:
            return run_verdict.not_started(NotStarted(f"the sandbox could not be started: {error}"))

    def _prepared(self) -> RunResult:
        config = self._request.config
        observer = self._options.get("observer", "auto")
        if observer not in _OBSERVERS:
            raise NotStarted(f"there is no observer {observer!r} on macOS", hint="use auto, which is the log, or none")
        cwd = self._options.get("cwd") or config.project
        if not os.path.isdir(cwd):
            raise NotStarted(f"the working directory {cwd} is gone", hint="restore it, or run the task elsewhere")
        executable(self._command, self._options.get("env") or {})
        system_tools.check(self._tools)
        temp = task_tmpdir.make(self._request.facts.temp_root)
        try:
            return self._between(observer, cwd, temp.path)
        finally:
            temp.remove()

    def _between(self, observer: str, cwd: str, temp: str) -> RunResult:
        config = self._request.config
        policy = policy_from_config.policy(config, temp=temp, declared=self._session.declared, host=os.environ)
        with proxy_handle.opened(policy) as front:
            planned = plan_of_request.plan(self._request, Snapshot(), temp=temp, ports=front.ports)
            tag = f"vx{secrets.token_hex(8)}"
            text = profile_text.text(planned, tag=tag)
            variables = front.told(
                environment.task_environment(
                    os.environ,
                    define=self._options.get("env") or {},
                    pass_through=tuple(self._options.get("pass_through", ())),
                    project=config.project,
                    workspace=self._request.workspace_root,
                    temp=temp,
                    grants_git=environment.names_git((*config.allow_read, *config.allow_write)),
                )
            )
            boundary = gather.boundary(self._request, planned, temp=temp, observer=observer, mask=masker(variables))
            judge = LogJudge(boundary, config)
            front.report(lambda target, reason: self._heard(lambda: judge.connection(target, reason)))
            attempt = self._made(text, variables, cwd)
            made, held = make_dirs.PASSING.make(planned.operations)
            try:
                ended, missing = self._watched(
                    attempt, observer, tag, lambda denial: self._heard(lambda: judge.take(denial))
                )
                missing = front.settle() or missing
                if not ended.started:
                    make_dirs.take_back(made)
                return self._settled(ended, judge, planned, missing=missing, observed=observer != "none")
            finally:
                held.release()

    def _made(self, text: str, variables: dict[str, str], cwd: str) -> MacAttempt:
        options = self._options
        keep = options.get("capture", True)
        attempt = MacAttempt(
            command=(self._tools.sandbox_exec, "-p", text, self._tools.shell, "-c", "--", self._command),
            environment=variables,
            cwd=cwd,
            stdin=options.get("stdin"),
            stdout=_stream(options.get("stdout"), options.get("on_stdout"), keep=keep),
            stderr=_stream(options.get("stderr"), options.get("on_stderr"), keep=keep),
            timeout=options.get("timeout"),
            grace=GRACE,
            on_start=options.get("on_start"),
            pty=self._request.config.pty,
            caller=options.get("terminal"),
        )
        with self._lock:
            self._attempt = attempt
            if self._stopped:
                attempt.signal(signal.SIGKILL)
        return attempt

    def _watched(
        self, attempt: MacAttempt, observer: str, tag: str, hear: Callable[[LoggedDenial], object]
    ) -> tuple[EndedCommand, str]:
        """Run it, and say why not every denial was heard of; empty when all were."""
        if observer == "none":
            return self._run(attempt), ""
        with LogMonitor(self._tools, tag, hear) as monitor:
            ended = self._run(attempt)
            monitor.settle()
        return ended, monitor.missing

    def _run(self, attempt: MacAttempt) -> EndedCommand:
        self._session.enter(attempt)
        try:
            return attempt.run()
        finally:
            self._session.leave(attempt)

    def _settled(
        self, ended: EndedCommand, judge: LogJudge, planned: MacPlan, *, missing: str, observed: bool
    ) -> RunResult:
        cwd = self._options.get("cwd") or planned.project
        after = gather.aftermath(cwd, ended.tail)
        return settle(
            ended,
            judge,
            tuple(self._violations),
            after=after,
            config=self._request.config,
            observed=observed,
            missing=missing,
        )

    def _heard(self, judged: Callable[[], Violation | None]) -> None:
        """Judge what the log or the front told, one at a time, and tell of it."""
        with self._judging:
            violation = judged()
            if violation is None:
                return
            self._violations.append(violation)
            hear = self._options.get("on_violation")
            if hear is not None:
                hear(violation)


def _stream(descriptor: int | None, heard: Callable[[bytes], object] | None, *, keep: bool) -> OutputStream | int:
    return OutputStream(heard, keep) if descriptor is None else descriptor
