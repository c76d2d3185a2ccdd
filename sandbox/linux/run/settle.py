"""From what an attempt on Linux told and its judge found to one result."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from sandbox.contract.errors import SandboxError
from sandbox.contract.results import Protections, RunRefusal, RunResult
from sandbox.run import verdict

if TYPE_CHECKING:
    from sandbox.contract.results import Observer, Strength, Trace, Violation
    from sandbox.judge.aftermath import Aftermath
    from sandbox.judge.judge import Judge
    from sandbox.linux.run.attempt import Report

# as a shell answers: found but not executable, not found
_CANNOT_EXECUTE = 126


_NOT_FOUND = 127


_ENOENT = 2


# a notified call may change its arguments after it was looked at; a look in the mask may not
_STRENGTH: dict[Observer, Strength] = {
    "mask": "full",
    "notify": "weaker",
    "strace": "weaker",
    "log": "weaker",
    "none": "off",
}


def settle(
    report: Report,
    judge: Judge,
    violations: tuple[Violation, ...],
    *,
    after: Aftermath,
    held: bool = False,
    every_socket: bool = False,
    nested: bool = False,
) -> RunResult:
    """Judge an attempt that was made.

    Args:
        report: what the attempt told.
        judge: which heard every access.
        violations: all there were, those found after the end among them.
        after: what is known once a command failed.
        held: whether names were granted where nothing serves them.
        every_socket: whether the task could connect to any socket of the host's.
        nested: whether it saw this machine's `/proc`, for want of its own.
    """
    if report.started is None:
        reason = report.failed.reason if report.failed else "the sandbox's warden died before the command started"
        hint = report.failed.hint if report.failed else ""
        return verdict.not_started(SandboxError(reason, hint=hint))
    observer = report.started.observer
    finished = report.finished
    trace: Trace = "none" if observer == "none" else "complete"
    why = "no observer was asked for" if observer == "none" else ""
    if finished is None or finished.status is None or finished.incomplete:
        trace = "partial" if observer != "none" else "none"
        why = finished.incomplete if finished else report.failed.reason if report.failed else ""
        why = why or "the sandbox ended before it told all"
    status = finished.status if finished is not None else None
    own, signalled = _own(status, finished.exec_errno if finished else 0)
    timed_out = bool(finished and finished.timed_out)
    after = dataclasses.replace(after, explained=timed_out or own is None or own >= _CANNOT_EXECUTE)
    code = verdict.exit_code(own, violations, trace, timed_out=timed_out)
    return RunResult(
        sandboxed=True,
        exit_code=code,
        command_exit_code=own,
        signal=signalled,
        timed_out=timed_out,
        started=True,
        duration_ms=finished.duration_ms if finished else 0.0,
        cpu_ms=finished.cpu_ms if finished else None,
        peak_rss_bytes=finished.peak_rss_bytes if finished else None,
        observer=observer,
        trace=trace,
        trace_reason=why,
        protections=Protections(
            filesystem="weaker" if held else "full",
            network="full",
            sockets="off" if every_socket else "full",
            observer=_STRENGTH[observer],
            processes="weaker" if nested else "full",
        ),
        violations=violations,
        hints=(*verdict.unseen(own, trace, why), *(judge.hints(after) if code else ())),
        fix=judge.fix(survived=own == 0) if code else None,
        refusals=() if own is not None else (RunRefusal(message="the sandbox died while the command ran"),),
        stdout=report.stdout,
        stderr=report.stderr,
    )


def _own(status: int | None, exec_errno: int) -> tuple[int | None, str | None]:
    """The command's own exit status as a shell says it, and the signal that ended it."""
    if status is None:
        return None, None
    if exec_errno:
        return (_NOT_FOUND if exec_errno == _ENOENT else _CANNOT_EXECUTE), None
    return verdict.own_status(status)
