"""`run --fix`: the report of a run, and what of its fix was written into the task's file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from vxconf.cli.console import err, out
from vxconf.run.apply_fix import Change, Unfixed, apply
from vxconf.run.report import as_dict, changed, report

if TYPE_CHECKING:
    from sandbox.contract.results import RunResult
    from vxconf.workspace.project import Task


def written(task: Task, result: RunResult, *, as_json: bool) -> None:
    """Write the fix of a failed run, and print the report with what was changed, or why nothing was."""
    changes: tuple[Change, ...] = ()
    problem: Unfixed | None = None
    if result.exit_code and result.started:
        try:
            if result.fix is None:
                raise _without(result)
            changes = apply(task, result.fix)
        except Unfixed as fault:
            problem = fault
    if as_json:
        data: dict[str, Any] = as_dict(result, task=task.id)
        data["changes"] = [change._asdict() for change in changes]
        data["unfixed"] = {"message": problem.message, "help": problem.help} if problem is not None else None
        out(json.dumps(data, indent=2) + "\n")
        return
    err(report(result, task, suggest=not changes))
    err(changed(changes))
    if problem is not None:
        err(f"nothing was written: {problem.message}\n  help: {problem.help}\n")


def _without(result: RunResult) -> Unfixed:
    """Why a failed run has no fix."""
    code = result.command_exit_code
    if result.violations or result.trace == "partial" or code is None:
        return Unfixed("no entry would let the task pass", "see what the report says")
    if result.timed_out:
        return Unfixed("nothing was denied: the task ran out of time", "see what the command printed")
    return Unfixed(f"nothing was denied: exit {code} is the command's own", "see what the command printed")
