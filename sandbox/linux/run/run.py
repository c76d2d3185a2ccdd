"""EFFECT: one call of `Session.run`: at most two attempts, what is made for them and what is taken back."""

from __future__ import annotations

import dataclasses
import os
import shlex
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from sandbox.base import environment
from sandbox.base.redact import masker
from sandbox.contract.errors import ASK, Masked, NotStarted, SandboxError, remedy, told
from sandbox.contract.run_options import GRACE, Runner, executable
from sandbox.judge.judge import Judge
from sandbox.linux.inside import resource_limits
from sandbox.linux.messages import Base, Screen, Spec
from sandbox.linux.run import choose_observer
from sandbox.linux.run.attempt import Attempt, Report
from sandbox.linux.run.settle import settle
from sandbox.machine.ask_facts import HostFiles, Snapshot
from sandbox.machine.find_tools import check_bwrap, find_bwrap
from sandbox.machine.learned import masked
from sandbox.planning import linux_plan
from sandbox.planning.name_grants import GrantedNames
from sandbox.proxy.policy import policy_from_config
from sandbox.run import gather, verdict
from sandbox.scratch import make_dirs, quarantine, staging_area, task_tmpdir
from sandbox.terminal import terminal_modes
from sandbox.terminal.output_stream import OutputStream

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from sandbox.contract.results import Access, RunResult, Violation
    from sandbox.contract.run_options import RunOptions
    from sandbox.linux.messages import Failed
    from sandbox.machine.learned import LearnedFacts
    from sandbox.planning.plan import Plan
    from sandbox.request.request import Request


#: Observers that let every call go on.
_WITHOUT_ANSWERS = ("none", "strace")


class Host(Runner, Protocol):
    """The part of a session a run behind a warden needs."""

    @property
    def machine(self) -> LearnedFacts:
        """What the session's runs found out."""

    def hand_over(self, base: Base, fds: list[int]) -> None:
        """Give a warden the control socket and the three standard streams."""

    def lend(self, terminal: int, before: list[Any], meanwhile: list[Any]) -> socket.socket:
        """Have a terminal given back, should this process die."""


class LinuxRun:
    """One call of `Session.run`: at most two attempts, and what surrounds them.

    Args:
        session: whose signals reach the command.
        request: what may be reached.
        command: given to `/bin/sh -c`.
        options: see `RunOptions`.
        explained: finds the machine's part in a failure.
    """

    def __init__(
        self,
        session: Host,
        request: Request,
        command: str,
        options: RunOptions,
        explained: Callable[[SandboxError], SandboxError] | None = None,
    ) -> None:
        self._session = session
        self._explained = explained
        self._request = request
        self._command = " ".join((command, *map(shlex.quote, options.get("args", ()))))
        self._options = options
        self._attempt: Attempt | None = None
        self._area: staging_area.StagingArea | None = None
        self._violations: list[Violation] = []
        self._stopped = False
        self._base = Base("")
        self._lock = threading.RLock()

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
            return self._as_the_machine_can()
        except SandboxError as error:
            return verdict.not_started(self._explained(error) if self._explained is not None else error)
        except OSError as error:
            return verdict.not_started(
                NotStarted(f"the sandbox could not be started: {told(error)}", hint=remedy(error))
            )

    def _as_the_machine_can(self) -> RunResult:
        """Run with all there may be; what this machine turns out not to give, once without that."""
        machine, asked = self._session.machine, self._options.get("observer", "auto")
        weaker = self._request.config.weaker_when_nested
        while True:
            nested = weaker and bool(machine.masked)
            try:
                return self._prepared(choose_observer.chosen(asked, machine), nested=nested)
            except choose_observer.ListenerUnavailable as error:
                machine.unheard = error.message
            except choose_observer.FuseUnusable as error:
                machine.unfused = error.message
            except Masked as error:
                machine.masked = error.message
                if nested or not weaker:
                    raise masked(error.message) from error

    def _prepared(self, observer: str, *, nested: bool) -> RunResult:
        config, facts = self._request.config, self._request.facts
        cwd = self._options.get("cwd") or config.project
        if not os.path.isdir(cwd):
            raise NotStarted(f"the working directory {cwd} is gone", hint="restore it, or run the task elsewhere")
        executable(self._command, self._options.get("env") or {})
        bwrap = find_bwrap(os.environ.get("PATH", ""), self._request.workspace_root)
        check_bwrap(bwrap)
        self._base = Base(bwrap, nested)
        tracer = (
            choose_observer.strace(self._request.workspace_root, self._session.machine) if observer == "strace" else ""
        )
        staging_area.sweep(self._request.workspace_root)
        temporary_directory = task_tmpdir.make(facts.temp_root)
        temp = temporary_directory.path
        held: make_dirs.RunDirectories | None = None
        try:
            planned = linux_plan.plan(self._request, Snapshot(), temp=temp, served=serving(observer))
            asked = observer
            if planned.held:
                observer = _watched(planned, observer)
            if planned.granted:
                self._area = staging_area.make(self._request.workspace_root)
            made, held = make_dirs.PASSING.make(planned.operations)
            before = quarantine.listed(planned, HostFiles())
            if self._area is not None:
                self._area.note(held.used)
            variables = environment.task_environment(
                os.environ,
                define=self._options.get("env") or {},
                pass_through=tuple(self._options.get("pass_through", ())),
                project=config.project,
                workspace=self._request.workspace_root,
                temp=temp,
                grants_git=environment.names_git((*config.allow_read, *config.allow_write)),
            )
            mask = masker(variables)
            boundary = gather.boundary(self._request, planned, temp=temp, observer=observer, mask=mask)
            judge = Judge(boundary, ignore=config.ignore)
            spec = Spec(
                operations=planned.operations,
                boundary=(boundary.project, *boundary.withheld),
                executed=planned.executed,
                granted=GrantedNames() if planned.held else planned.granted,
                held=planned if planned.held else None,
                command=("/bin/sh", "-c", "--", self._command),
                environment=variables,
                cwd=cwd,
                observer=observer,
                tracer=tracer,
                timeout=self._options.get("timeout"),
                grace=GRACE,
                screen=self._screen(),
                nested=nested,
                network=policy_from_config.policy(config, temp=temp, declared=self._session.declared, host=os.environ),
            )
            ended = resource_limits.ended_for_memory()
            report = self._attempts(spec, judge)
            if report.started is None:
                make_dirs.take_back(made)
                _machines_part(report.failed, asked)
            else:
                leftovers = report.finished.leftovers if report.finished is not None else ()
                self._clear(planned, judge, leftovers, before, answered=observer not in _WITHOUT_ANSWERS)
            after = gather.aftermath(
                cwd,
                report.tail,
                processes=resource_limits.most_for_a_task,
                starved=lambda: resource_limits.ended_for_memory() - ended,
            )
            return settle(
                report,
                judge,
                tuple(self._violations),
                after=after,
                held=bool(planned.held),
                every_socket=config.unix_sockets is True,
                nested=nested,
            )
        finally:
            temporary_directory.remove()
            if self._area is not None:
                self._area.remove()
            if held is not None:
                held.release()

    def _clear(
        self, planned: Plan, judge: Judge, leftovers: tuple[str, ...], before: frozenset[str], *, answered: bool
    ) -> None:
        """Take away what the task left where it may leave nothing."""
        shelf, files = quarantine.Quarantine(self._request.facts.temp_root), HostFiles()
        root = self._request.workspace_root
        for violation in quarantine.set_aside(planned, workspace=root, shelf=shelf, files=files, before=before):
            self._tell(violation)
        for path in leftovers:
            if not planned.held:
                self._tell(judge.left(path))
            elif os.path.lexists(path):
                self._tell(judge.left(path, fate=shelf.put(path)))
        if not answered:
            for path in quarantine.unknown(planned, files, before):
                self._tell(judge.left(path, fate="stays, for nobody saw who made it"))

    def _tell(self, violation: Violation | None) -> None:
        if violation is None:
            return
        self._violations.append(violation)
        hear = self._options.get("on_violation")
        if hear is not None:
            hear(violation)

    def _attempts(self, spec: Spec, judge: Judge) -> Report:
        began = time.monotonic()
        report = self._once(spec, judge)
        if choose_observer.again(report.finished) and not self._violations and not self._stopped:
            left = None if spec.timeout is None else spec.timeout - (time.monotonic() - began)
            if left is None or left > 0:
                return self._once(dataclasses.replace(spec, timeout=left), judge)
        if report.failed is not None and report.failed.transient and not self._stopped:
            # a mount or a file vanished while it was being bound; nothing of the command ran
            if self._area is not None:
                # an attempt begins with an empty one
                self._area.remove()
                self._area = staging_area.make(self._request.workspace_root)
            report = self._once(spec, judge)
        return report

    def _screen(self) -> Screen | None:
        caller = self._options.get("terminal")
        if not self._request.config.pty:
            return None
        if caller is None:
            return Screen()
        rows, columns = terminal_modes.size(caller)
        modes = terminal_modes.modes(caller, typed=caller == self._options.get("stdin"))
        return Screen(rows=rows, columns=columns, modes=modes)

    def _once(self, spec: Spec, judge: Judge) -> Report:
        options = self._options
        keep = options.get("capture", True)

        def take(access: Access) -> None:
            self._tell(judge.take(access))

        attempt = Attempt(
            dataclasses.replace(spec, staging=self._area.path if self._area is not None else ""),
            stdin=options.get("stdin"),
            stdout=_stream(options.get("stdout"), options.get("on_stdout"), keep=keep),
            stderr=_stream(options.get("stderr"), options.get("on_stderr"), keep=keep),
            on_access=take,
            on_start=options.get("on_start"),
            caller=options.get("terminal") if spec.screen is not None else None,
        )
        with self._lock:
            self._attempt = attempt
            if self._stopped:
                attempt.signal(signal.SIGKILL)
        self._session.enter(attempt)
        try:
            return attempt.run(lambda fds: self._session.hand_over(self._base, fds), self._session.lend)
        finally:
            self._session.leave(attempt)


def _stream(descriptor: int | None, heard: Callable[[bytes], object] | None, *, keep: bool) -> OutputStream | int:
    return OutputStream(heard, keep) if descriptor is None else descriptor


def _machines_part(failed: Failed | None, asked: str) -> None:
    """Raise what this machine has to do with an attempt that did not start.

    Raises:
        Unheard: strace may observe in its place.
        Unfused: notifications may.
        Masked: a weaker sandbox may be built.
        NotStarted: nobody who met the failure knew its cause.
    """
    if failed is None:
        return
    if asked == "auto" and failed.unheard:
        raise choose_observer.ListenerUnavailable(failed.reason)
    if failed.unfused:
        raise choose_observer.FuseUnusable(failed.reason)
    if failed.masked:
        raise Masked(failed.reason)
    if failed.hint == ASK:
        raise NotStarted(failed.reason, hint=ASK)


def serving(observer: str) -> bool:
    """Whether granted names can be served here, under an observer as it was asked for."""
    if observer == "mask":
        return True  # the sandbox itself says why not, should there be none
    if observer != "auto":
        return False
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _watched(planned: Plan, observer: str) -> str:
    """The observer that answers for held directories; without one, mounts alone must be enough."""
    if observer not in _WITHOUT_ANSWERS:
        return "notify"
    kept = quarantine.beside(planned)
    if kept:
        raise NotStarted(
            f"the observer {observer} keeps no task from {kept}, beside a granted name, once the host replaces it",
            hint="use the observer auto, or grant directories instead, with a trailing slash",
        )
    return observer
