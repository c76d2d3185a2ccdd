"""From the messages of an attempt on Linux and its judge's findings to one result."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from sandbox.contract.errors import SandboxError
from sandbox.contract.results import Protections
from sandbox.linux.kernel import landlock
from sandbox.run import exit_status, pass_or_fail

if TYPE_CHECKING:
    from sandbox.contract.results import Observer, RunResult, Strength, Trace, Violation
    from sandbox.judge.failure_facts import Aftermath
    from sandbox.judge.judge import Judge
    from sandbox.linux.run.attempt import Report
    from sandbox.linux.warden_messages import Finished

#: The status a shell answers with for a command that is not found.
_NOT_FOUND = 127

# A notified call may change its arguments after the observer has read them (seccomp_unotify(2), "Caveats regarding the
# use of the continue response"); a look in the mask may not.
_STRENGTH: dict[Observer, Strength] = {
    "mask": "full",
    "notify": "weaker",
    "strace": "weaker",
    "log": "weaker",
    "none": "off",
}


def attempt_result(
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
        report: the attempt's messages.
        judge: the judge that heard every access.
        violations: all there were, those found after the end among them.
        after: the facts for notes beside a failure.
        held: whether names were granted where nobody answers calls on them.
        every_socket: whether the task could connect to any socket of the host's.
        nested: whether the task saw this machine's `/proc`, for want of its own.
    """
    if report.started is None:
        return _not_started(report)
    observer, finished = report.started.observer, report.finished
    status, signalled = _own(finished)
    trace, why = _seen(report, observer)
    end = pass_or_fail.CommandEnd(
        status=status,
        signal=signalled,
        timed_out=bool(finished and finished.timed_out),
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
            landlock=_landlock(report.started.landlock),
        ),
        stdout=report.stdout,
        stderr=report.stderr,
        lost=report.lost,
    )
    return pass_or_fail.settled(end, judge, violations, after)


def _landlock(version: int) -> Strength:
    """The strength of Landlock's wall: its first versions confine no signal and no abstract socket."""
    return "off" if not version else "full" if version >= landlock.SCOPED else "weaker"


def _not_started(report: Report) -> RunResult:
    failed = report.failed
    if failed is None:
        return pass_or_fail.not_started(SandboxError("the sandbox's warden died before the command started"))
    return pass_or_fail.not_started(SandboxError(failed.reason, hint=failed.hint))


def _seen(report: Report, observer: Observer) -> tuple[Trace, str]:
    """The part of the command's calls that was seen, and why not all of them were."""
    finished = report.finished
    if finished is not None and finished.status is not None and not finished.incomplete:
        return ("none", "no observer was asked for") if observer == "none" else ("complete", "")
    why = finished.incomplete if finished else report.failed.reason if report.failed else ""
    return "none" if observer == "none" else "partial", why or "the sandbox ended before it told all"


def _own(finished: Finished | None) -> tuple[int | None, str | None]:
    """The command's own exit status as a shell says it, and the signal that ended it."""
    if finished is None or finished.status is None:
        return None, None
    if finished.exec_errno:
        return (_NOT_FOUND if finished.exec_errno == errno.ENOENT else exit_status.CANNOT_EXECUTE), None
    return exit_status.own_status(finished.status)
