"""EFFECT: one call of `Session.run` on Linux: at most two attempts, and the removal of what they leave."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from typing import TYPE_CHECKING, Any, Protocol

from sandbox.base.secret_masker import masker
from sandbox.contract.errors import ASK, Masked, NotStarted, SandboxError
from sandbox.contract.run_options import GRACE, Runner
from sandbox.judge.judge import Judge
from sandbox.linux.inside import resource_limits
from sandbox.linux.run import choose_observer, second_attempt
from sandbox.linux.run.attempt import Attempt, Report
from sandbox.linux.run.attempt_result import attempt_result
from sandbox.linux.run.prepare import WITHOUT_ANSWERS, find_programs, prepare
from sandbox.linux.warden_messages import Base, Screen, Spec
from sandbox.machine.learned_kernel_limits import masked
from sandbox.planning.served_and_staged_names import GrantedNames
from sandbox.run import facts_for_judge
from sandbox.run.command_run import CommandRun
from sandbox.scratch import grant_directories, names_left_behind, quarantine, staging_area
from sandbox.terminal import terminal_modes

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from sandbox.contract.results import Access, RunResult
    from sandbox.contract.run_options import RunOptions
    from sandbox.linux.run.prepare import Prepared, Programs, Staging
    from sandbox.linux.warden_messages import Failed
    from sandbox.machine.learned_kernel_limits import LearnedKernelLimits
    from sandbox.request.request import Request


class Host(Runner, Protocol):
    """The part of a session a run behind a warden needs."""

    @property
    def machine(self) -> LearnedKernelLimits:
        """The features that the session's runs found missing on this machine."""

    def hand_over(self, base: Base, fds: list[int]) -> None:
        """Give a warden the control socket and the three standard streams."""

    def lend(self, terminal: int, before: list[Any], meanwhile: list[Any]) -> socket.socket:
        """Have a terminal given back, should this process die."""


class LinuxRun(CommandRun):
    """One call of `Session.run`: at most two attempts, and what surrounds them.

    Args:
        host: the session, whose signals reach the command and whose supervisor has the wardens.
        request: what may be reached.
        command: given to `/bin/sh -c`.
        options: see `RunOptions`.
        explained: finds the machine's part in a failure.
    """

    def __init__(
        self,
        host: Host,
        request: Request,
        command: str,
        options: RunOptions,
        explained: Callable[[SandboxError], SandboxError] | None = None,
    ) -> None:
        super().__init__(host, request, command, options)
        self._host = host
        self._explained = explained
        self._base = Base("")
        self._staging: Staging | None = None

    def _with_cause(self, error: SandboxError) -> SandboxError:
        return self._explained(error) if self._explained is not None else error

    def _carry_out(self) -> RunResult:
        """Run with all the machine may have; each thing it turns out not to have is left out from then on."""
        machine, asked = self._host.machine, self._options.get("observer", "auto")
        weaker = self._request.config.weaker_when_nested
        while True:
            nested = weaker and bool(machine.masked)
            try:
                return self._run_under(choose_observer.chosen(asked, machine), nested=nested)
            except choose_observer.ListenerUnavailable as error:
                machine.unheard = error.message
            except choose_observer.FuseUnusable as error:
                machine.unfused = error.message
            except Masked as error:
                machine.masked = error.message
                if nested or not weaker:
                    raise masked(error.message) from error

    def _run_under(self, observer: str, *, nested: bool) -> RunResult:
        """Run under one observer, on a base that is nested or not."""
        cwd = self._checked_directory()
        programs = find_programs(self._request, observer, self._host.machine, nested=nested)
        self._base = programs.base
        staging_area.sweep(self._request.workspace_root)
        with self._temporary_directory() as temp, contextlib.ExitStack() as undo:
            prepared = prepare(self._request, observer, temp, undo)
            self._staging = prepared.staging
            variables = self._variables(temp)
            boundary = facts_for_judge.boundary(
                self._request, prepared.planned, temp=temp, observer=prepared.observer, mask=masker(variables)
            )
            judge = Judge(boundary, ignore=self._request.config.ignore)
            spec = self._spec(prepared, programs, cwd=cwd, temp=temp, variables=variables, nested=nested)
            ended = resource_limits.ended_for_memory()
            try:
                report = self._attempts(spec, judge)
            except BaseException:
                # A run may break off in any way, and nobody is to obey what its task left.
                names_left_behind.set_aside(prepared.planned, prepared.before, shelf=self._shelf())
                raise
            if report.started is None:
                grant_directories.take_back(list(prepared.made))
                _raise_the_machines_part(report.failed, prepared.asked)
            else:
                self._clear(prepared, judge, report.finished.leftovers if report.finished is not None else ())
            after = facts_for_judge.aftermath(
                cwd,
                report.tail,
                processes=resource_limits.most_for_a_task,
                starved=lambda: resource_limits.ended_for_memory() - ended,
            )
            return attempt_result(
                report,
                judge,
                tuple(self._violations),
                after=after,
                held=bool(prepared.planned.held),
                every_socket=self._request.config.unix_sockets is True,
                nested=nested,
            )

    def _spec(
        self,
        prepared: Prepared,
        programs: Programs,
        *,
        cwd: str,
        temp: str,
        variables: dict[str, str],
        nested: bool,
    ) -> Spec:
        """The spec of what a warden builds and runs."""
        planned, request = prepared.planned, self._request
        return Spec(
            operations=planned.operations,
            boundary=(request.config.project, *request.reported),
            executed=planned.executed,
            granted=GrantedNames() if planned.held else planned.granted,
            command=("/bin/sh", "-c", "--", self._command),
            environment=variables,
            cwd=cwd,
            observer=prepared.observer,
            tracer=programs.tracer,
            timeout=self._options.get("timeout"),
            grace=GRACE,
            screen=self._screen(),
            nested=nested,
            network=self._policy(temp),
        )

    def _screen(self) -> Screen | None:
        caller = self._options.get("terminal")
        if not self._request.config.pty:
            return None
        if caller is None:
            return Screen()
        rows, columns = terminal_modes.size(caller)
        modes = terminal_modes.modes(caller, typed=caller == self._options.get("stdin"))
        return Screen(rows=rows, columns=columns, modes=modes)

    def _attempts(self, spec: Spec, judge: Judge) -> Report:
        """Run once, and once more where the first attempt tells nothing of the command."""
        began = time.monotonic()
        report = self._once(spec, judge)
        if second_attempt.tracer_failed(report.finished) and not self._violations and not self._stopped:
            left = None if spec.timeout is None else spec.timeout - (time.monotonic() - began)
            if left is None or left > 0:
                return self._once(dataclasses.replace(spec, timeout=left), judge)
        if second_attempt.nothing_ran(report.failed) and not self._stopped:
            if self._staging is not None:
                self._staging.renew()
            report = self._once(spec, judge)
        return report

    def _once(self, spec: Spec, judge: Judge) -> Report:
        options = self._options

        def take(access: Access) -> None:
            self._tell(judge.take(access))

        stdout, stderr = self._streams()
        attempt = Attempt(
            dataclasses.replace(spec, staging=self._staging.path if self._staging is not None else ""),
            stdin=options.get("stdin"),
            stdout=stdout,
            stderr=stderr,
            on_access=take,
            on_start=self._started,
            caller=options.get("terminal") if spec.screen is not None else None,
        )
        with self._signalled(attempt):
            return attempt.run(lambda fds: self._host.hand_over(self._base, fds), self._host.lend)

    def _shelf(self) -> quarantine.Quarantine:
        return quarantine.Quarantine(self._request.facts.temp_root)

    def _clear(self, prepared: Prepared, judge: Judge, leftovers: tuple[str, ...]) -> None:
        """Take away files the task left where it may leave none."""
        planned, before = prepared.planned, prepared.before
        shelf = self._shelf()
        for violation in names_left_behind.set_aside(planned, before, shelf=shelf):
            self._tell(violation)
        for path in leftovers:
            if not planned.held:
                self._tell(judge.left(path))
            elif os.path.lexists(path):
                self._tell(judge.left(path, fate=shelf.put(path)))
        if prepared.observer in WITHOUT_ANSWERS:
            for path in names_left_behind.unknown(planned, before):
                self._tell(judge.left(path, fate="stays, for nobody saw who made it"))


def _raise_the_machines_part(failed: Failed | None, asked: str) -> None:
    """Raise the machine's part in an attempt that did not start.

    Raises:
        ListenerUnavailable: strace may observe in its place.
        FuseUnusable: notifications may.
        Masked: a weaker sandbox may be built.
        NotStarted: nobody who met the failure knew its cause.
    """
    if failed is None:
        return
    if asked == "auto" and failed.no_listener:
        raise choose_observer.ListenerUnavailable(failed.reason)
    if failed.no_fuse:
        raise choose_observer.FuseUnusable(failed.reason)
    if failed.no_proc:
        raise Masked(failed.reason)
    if failed.hint == ASK:
        raise NotStarted(failed.reason, hint=ASK)
