"""From the end of a command on macOS and its judge's findings to one result. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.contract.errors import NotStarted
from sandbox.contract.results import Protections
from sandbox.run import exit_status, pass_or_fail

if TYPE_CHECKING:
    from sandbox.contract.config import ResolvedSandboxConfig
    from sandbox.contract.results import RunResult, Trace, Violation
    from sandbox.judge.failure_facts import Aftermath
    from sandbox.macos.attempt import EndedCommand
    from sandbox.macos.log_judge import LogJudge


def attempt_result(
    ended: EndedCommand,
    judge: LogJudge,
    violations: tuple[Violation, ...],
    *,
    after: Aftermath,
    config: ResolvedSandboxConfig,
    observed: bool,
    missing: str,
) -> RunResult:
    """Judge an attempt that was made.

    Args:
        ended: the end of the command.
        judge: the judge that heard every denial.
        violations: all there were.
        after: the facts for notes beside a failure.
        config: whose grants weaken a wall.
        observed: whether the log was asked.
        missing: why not every denial was heard of; empty when all were.
    """
    if not ended.started or ended.status is None:
        return pass_or_fail.not_started(NotStarted(ended.refused or "the command was not started"))
    trace: Trace = "none" if not observed else "partial" if missing else "complete"
    status, signalled = exit_status.own_status(ended.status)
    end = pass_or_fail.CommandEnd(
        status=status,
        signal=signalled,
        timed_out=ended.timed_out,
        duration_ms=ended.duration_ms,
        cpu_ms=ended.usage.cpu_ms if ended.usage is not None else None,
        peak_rss_bytes=ended.usage.peak_rss_bytes if ended.usage is not None else None,
        observer="log" if observed else "none",
        trace=trace,
        trace_reason=missing if observed else "no observer was asked for",
        protections=Protections(
            filesystem="full",
            # A task that may bind has no network of its own, so it may reach every port of this machine.
            network="weaker" if config.local_binding or config.weaker_network_isolation else "full",
            sockets="weaker" if config.unix_sockets is True else "full",
            observer="weaker" if observed else "off",
        ),
        stdout=ended.stdout,
        stderr=ended.stderr,
    )
    return pass_or_fail.settled(end, judge.files, violations, after)
