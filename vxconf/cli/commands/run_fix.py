"""`vxconf run --fix`: writes the suggested grants of a failed run into the task's file, and prints the report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from vxconf.cli.console import err, out
from vxconf.run.apply_fix import Change, Unfixed, write_fix
from vxconf.run.report import changes_text, report_text, result_as_dict

if TYPE_CHECKING:
    from sandbox.contract.results import RunResult
    from vxconf.workspace.project import Task


def fix_and_report(task: Task, result: RunResult, *, as_json: bool) -> None:
    """Write the fix of a failed run, and print the report with the changes, or with the reason why there are none.

    Args:
        task: the task that was run.
        result: the result of the run.
        as_json: whether to print JSON.
    """
    changes: tuple[Change, ...] = ()
    problem: Unfixed | None = None
    if result.exit_code and result.started:
        try:
            if result.fix is None:
                raise _without(result)
            changes = write_fix(task, result.fix)
        except Unfixed as fault:
            problem = fault
    if as_json:
        data: dict[str, Any] = result_as_dict(result, task=task.id)
        data["changes"] = [change._asdict() for change in changes]
        data["unfixed"] = {"message": problem.message, "help": problem.help} if problem is not None else None
        out(json.dumps(data, indent=2) + "\n")
        return
    err(report_text(result, task, suggest=not changes))
    err(changes_text(changes))
    if problem is not None:
        err(f"nothing was written: {problem.message}\n  help: {problem.help}\n")


def _without(result: RunResult) -> Unfixed:
    """The reason why a failed run has no fix."""
    code = result.command_exit_code
    if result.violations or result.trace == "partial" or code is None:
        return Unfixed("no entry would let the task pass", "see what the report says")
    if result.timed_out:
        return Unfixed("nothing was denied: the task ran out of time", "see what the command printed")
    return Unfixed(f"nothing was denied: exit {code} is the command's own", "see what the command printed")
