"""EFFECT: one call of `Session.run` on macOS: the profile, the log and the proxy around one command."""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING

from sandbox.base.secret_masker import masker
from sandbox.contract.errors import NotStarted
from sandbox.contract.run_options import GRACE
from sandbox.machine.ask_facts import Snapshot
from sandbox.macos import proxy_handle, system_tools
from sandbox.macos.attempt import MacAttempt
from sandbox.macos.attempt_result import attempt_result
from sandbox.macos.log_judge import LogJudge
from sandbox.macos.log_monitor import LogMonitor
from sandbox.planning.macos import plan_of_request, profile_text
from sandbox.run import facts_for_judge
from sandbox.run.command_run import CommandRun
from sandbox.scratch import grant_directories

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.contract.results import RunResult, Violation
    from sandbox.contract.run_options import Runner, RunOptions
    from sandbox.macos.attempt import EndedCommand
    from sandbox.macos.denial_log import LoggedDenial
    from sandbox.macos.system_tools import SystemTools
    from sandbox.request.request import Request

_OBSERVERS = ("auto", "none")


class MacRun(CommandRun):
    """One call of `Session.run`.

    Args:
        session: the session, whose signals reach the command.
        request: what may be reached.
        command: given to `/bin/sh -c`.
        options: see `RunOptions`.
        system: the programs; those of every Mac unless told.
    """

    def __init__(
        self, session: Runner, request: Request, command: str, options: RunOptions, *, system: SystemTools | None = None
    ) -> None:
        super().__init__(session, request, command, options)
        self._tools = system or system_tools.SYSTEM
        # The log and the proxy tell of denials from a thread each.
        self._judging = threading.Lock()

    def _carry_out(self) -> RunResult:
        observer = self._options.get("observer", "auto")
        if observer not in _OBSERVERS:
            raise NotStarted(f"there is no observer {observer!r} on macOS", hint="use auto, which is the log, or none")
        cwd = self._checked_directory()
        system_tools.check(self._tools)
        with self._temporary_directory() as temp, proxy_handle.opened(self._policy(temp)) as proxy:
            planned = plan_of_request.plan(self._request, Snapshot(), temp=temp, ports=proxy.ports)
            tag = f"vx{secrets.token_hex(8)}"
            variables = proxy.variables(self._variables(temp))
            boundary = facts_for_judge.boundary(
                self._request, planned, temp=temp, observer=observer, mask=masker(variables)
            )
            judge = LogJudge(boundary, self._request.config)
            proxy.report(lambda target, reason: self._heard(lambda: judge.connection(target, reason)))
            attempt = self._made(profile_text.text(planned, tag=tag), variables, cwd)
            made, held = grant_directories.PASSING.make(planned.operations)
            try:
                ended, missing = self._watched(
                    attempt, observer, tag, lambda denial: self._heard(lambda: judge.take(denial))
                )
                missing = proxy.settle() or missing
                if not ended.started:
                    grant_directories.take_back(made)
                return attempt_result(
                    ended,
                    judge,
                    tuple(self._violations),
                    after=facts_for_judge.aftermath(cwd, ended.tail),
                    config=self._request.config,
                    observed=observer != "none",
                    missing=missing,
                )
            finally:
                held.release()

    def _made(self, profile: str, variables: dict[str, str], cwd: str) -> MacAttempt:
        options = self._options
        stdout, stderr = self._streams()
        return MacAttempt(
            command=(self._tools.sandbox_exec, "-p", profile, self._tools.shell, "-c", "--", self._command),
            environment=variables,
            cwd=cwd,
            stdin=options.get("stdin"),
            stdout=stdout,
            stderr=stderr,
            timeout=options.get("timeout"),
            grace=GRACE,
            on_start=self._started,
            pty=self._request.config.pty,
            caller=options.get("terminal"),
        )

    def _watched(
        self, attempt: MacAttempt, observer: str, tag: str, hear: Callable[[LoggedDenial], object]
    ) -> tuple[EndedCommand, str]:
        """Run the attempt, and say why not every denial was heard of; empty when all were."""
        if observer == "none":
            return self._run(attempt), ""
        with LogMonitor(self._tools, tag, hear) as monitor:
            ended = self._run(attempt)
            monitor.settle()
        return ended, monitor.missing

    def _run(self, attempt: MacAttempt) -> EndedCommand:
        with self._signalled(attempt):
            return attempt.run()

    def _heard(self, judged: Callable[[], Violation | None]) -> None:
        """Judge a denial that the log or the proxy told, one at a time, and tell of the violation."""
        with self._judging:
            self._tell(judged())
