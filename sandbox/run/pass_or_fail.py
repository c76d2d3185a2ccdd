"""From the end of a command and its judge's findings to a pass or a fail, the same on both platforms.

A failed run gets hints and the fix; a pass asks for neither.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.contract.results import Hint, RunRefusal, RunResult, refusals_of
from sandbox.run.exit_status import CANNOT_EXECUTE, NOT_STARTED, TIMED_OUT

if TYPE_CHECKING:
    from sandbox.contract.errors import SandboxError
    from sandbox.contract.results import Observer, Protections, Trace, Violation
    from sandbox.judge.failure_facts import Aftermath
    from sandbox.judge.judge import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """The end of a command that was started, and how much of it was seen.

    Attributes:
        status: as a shell says it, 128+n for a signal; `None` where the end was not seen.
        signal: the name of the signal that ended it.
        lost: why the caller's descriptors took no more of the output, empty where they took all.
        duration_ms, cpu_ms, peak_rss_bytes, trace, trace_reason, protections: see `RunResult`.
    """

    status: int | None
    signal: str | None
    observer: Observer
    trace: Trace
    trace_reason: str
    protections: Protections
    timed_out: bool = False
    duration_ms: float = 0.0
    cpu_ms: float | None = None
    peak_rss_bytes: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    lost: str = ""


def not_started(error: SandboxError) -> RunResult:
    """The result of a run that never began."""
    return RunResult(sandboxed=True, exit_code=NOT_STARTED, trace_reason="nothing was run", refusals=refusals_of(error))


def settled(end: CommandEnd, judge: Judge, violations: tuple[Violation, ...], after: Aftermath) -> RunResult:
    """The result of a run that began.

    Args:
        end: how the command ended.
        judge: the judge that heard every access.
        violations: all there were, those found after the end among them.
        after: the facts for notes beside a failure.
    """
    own = end.status
    code = exit_code(own, violations, end.trace, timed_out=end.timed_out) or int(bool(end.lost))
    explained = end.timed_out or own is None or own >= CANNOT_EXECUTE
    after = dataclasses.replace(after, explained=explained, survived=own == 0)
    beside = judge.beside(after) if code else None
    return RunResult(
        sandboxed=True,
        exit_code=code,
        command_exit_code=own,
        signal=end.signal,
        timed_out=end.timed_out,
        started=True,
        duration_ms=end.duration_ms,
        cpu_ms=end.cpu_ms,
        peak_rss_bytes=end.peak_rss_bytes,
        observer=end.observer,
        trace=end.trace,
        trace_reason=end.trace_reason,
        protections=end.protections,
        violations=violations,
        hints=(*_unseen(end), *_lost(end), *(judge.hints(after, beside) if code else ())),
        fix=judge.fix(survived=after.survived, beside=beside) if code else None,
        refusals=() if own is not None else (RunRefusal(message="the sandbox died while the command ran"),),
        stdout=end.stdout,
        stderr=end.stderr,
    )


def exit_code(own: int | None, violations: tuple[Violation, ...], trace: Trace, *, timed_out: bool) -> int:
    """The run's exit code; `own` is the command's, `None` where its end was not seen.

    A pass needs a command that ended with 0, no violation and a complete trace, unless no trace was asked for.
    """
    if timed_out:
        return TIMED_OUT
    if own == 0 and (violations or trace == "partial"):
        return 1
    return NOT_STARTED if own is None else own


def _unseen(end: CommandEnd) -> tuple[Hint, ...]:
    """A note on a command that passed while not all it did was seen."""
    if end.status != 0 or end.trace != "partial":
        return ()
    return (Hint(line=f"the command passed, but not all it did was seen: {end.trace_reason}"),)


def _lost(end: CommandEnd) -> tuple[Hint, ...]:
    """A note on output that was not delivered: the command may have passed before its last bytes were."""
    return (Hint(line=f"not all the command wrote could be passed on: {end.lost}"),) if end.lost else ()
