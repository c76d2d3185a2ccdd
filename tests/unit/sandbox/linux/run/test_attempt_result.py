"""How an attempt whose warden failed is settled."""

from __future__ import annotations

from sandbox.contract.results import RunRefusal, Violation
from sandbox.judge.boundary import Boundary
from sandbox.judge.failure_facts import Aftermath
from sandbox.judge.judge import Judge
from sandbox.linux.run.attempt import Report
from sandbox.linux.run.attempt_result import attempt_result
from sandbox.linux.warden_messages import Failed, Finished, Started
from sandbox.planning.path_reach import Plan

BOUNDARY = Boundary(
    plan=Plan(operations=(), workspace="/ws", project="/ws/p"),
    project="/ws/p",
    workspace="/ws",
    home="/home/mel",
    temp="/tmp/vx-0/t",
)
SEEN = Violation(kind="write", operation="creat", target="x", path="/ws/x", errno="EROFS", line="creat x: EROFS")


def test_a_warden_that_fails_once_the_command_runs_is_no_run_that_never_was() -> None:
    report = Report(started=Started(pid=7, observer="mask"), failed=Failed(reason="it broke"))
    result = attempt_result(report, Judge(BOUNDARY), (SEEN,), after=Aftermath(cwd="/ws/p"))
    assert (result.exit_code, result.command_exit_code, result.started) == (125, None, True)
    assert (result.trace, result.trace_reason) == ("partial", "it broke")
    assert result.violations == (SEEN,)


def test_a_warden_that_fails_before_is() -> None:
    result = attempt_result(Report(failed=Failed(reason="it broke")), Judge(BOUNDARY), (), after=Aftermath(cwd="/ws/p"))
    assert (result.exit_code, result.started, result.refusals) == (125, False, (RunRefusal(message="it broke"),))


def test_a_task_that_may_knock_anywhere_has_no_protection_of_sockets() -> None:
    report = Report(started=Started(pid=7, observer="mask"), finished=Finished(status=0))
    wide = attempt_result(report, Judge(BOUNDARY), (), after=Aftermath(cwd="/ws/p"), every_socket=True)
    narrow = attempt_result(report, Judge(BOUNDARY), (), after=Aftermath(cwd="/ws/p"))
    assert (wide.protections.sockets, narrow.protections.sockets) == ("off", "full")
    assert wide.protections.network == "full"
