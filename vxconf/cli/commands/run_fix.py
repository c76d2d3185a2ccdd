"""`vxconf run --fix`: writes the suggested grants of a failed run into the task's file, and prints the report.

Hosts and loopback ports are written with `--fix-network`, or once somebody at the terminal says yes: what a task says
to a host leaves this machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import termios
from typing import TYPE_CHECKING, Any

from vxconf.cli.console import out
from vxconf.diagnostics.diagnostic import quoted
from vxconf.diagnostics.printable import printable
from vxconf.run.apply_fix import Change, Unfixed, hosts_apart, write_fix
from vxconf.run.report import changes_text, report_text, result_as_dict

if TYPE_CHECKING:
    from sandbox.contract.results import Fix, RunResult
    from vxconf.cli.after_output import AfterOutput
    from vxconf.workspace.project import Task

_YES = frozenset({"y", "yes"})


def fix_and_report(task: Task, result: RunResult, after: AfterOutput, *, as_json: bool, network: bool) -> None:
    """Write the fix of a failed run, and print the report with the changes, or with the reason why there are none.

    Args:
        task: the task that was run.
        result: the result of the run.
        after: standard error, as the task left it.
        as_json: whether to print JSON; nobody is asked anything then.
        network: whether hosts and loopback ports are written without a question.
    """
    changes: tuple[Change, ...] = ()
    problem: Unfixed | None = None
    wanted = result.fix if result.exit_code and result.started else None
    fix, hosts = hosts_apart(wanted) if wanted is not None else (None, ())
    if hosts and (network or (not as_json and _said_yes(hosts, after))):
        fix, hosts = wanted, ()
    if result.exit_code and result.started:
        try:
            changes = _written(task, result, fix, hosts)
        except Unfixed as fault:
            problem = fault
    if as_json:
        data: dict[str, Any] = result_as_dict(result, task=task.id)
        data["changes"] = [change._asdict() for change in changes]
        data["unfixed"] = {"message": problem.message, "help": problem.help} if problem is not None else None
        data["unwrittenNetwork"] = list(hosts)
        out(json.dumps(data, indent=2) + "\n")
        return
    after.err(report_text(result, task, suggest=not changes))
    after.err(changes_text(changes))
    if problem is not None:
        after.err(f"nothing was written: {problem.message}\n  help: {problem.help}\n")
    if hosts:
        after.err(printable(f"not written: {_listed(hosts)} of allow.network, which open this task to others") + "\n")
        after.err("  help: say yes on a terminal, run it with --fix-network, or add them by hand\n")


def _written(task: Task, result: RunResult, fix: Fix | None, hosts: tuple[str, ...]) -> tuple[Change, ...]:
    """Write a fix without the hosts that were not said yes to.

    Raises:
        Unfixed: nothing was written.
    """
    if fix is None:
        raise _without(result)
    if hosts and not any((fix.allow.read, fix.allow.write, fix.ignore.read, fix.ignore.write)):
        raise Unfixed("all that is suggested are hosts", "run it with --fix-network, or add them by hand")
    return write_fix(task, fix)


def _said_yes(hosts: tuple[str, ...], after: AfterOutput) -> bool:
    """Whether somebody at the terminal wants hosts to be written; nobody is there without one."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    # Keys that were typed while the task ran were meant for the task.
    with contextlib.suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    after.err(printable(f"write {_listed(hosts)} to allow.network, so that the task reaches them? [y/N] "))
    sys.stderr.flush()
    answer = os.read(sys.stdin.fileno(), 64)
    return answer.decode("utf-8", "replace").strip().lower() in _YES


def _listed(hosts: tuple[str, ...]) -> str:
    return ", ".join(map(quoted, hosts))


def _without(result: RunResult) -> Unfixed:
    """The reason why a failed run has no fix."""
    code = result.command_exit_code
    if result.violations or result.trace == "partial" or code is None:
        return Unfixed("no entry would let the task pass", "see what the report says")
    if result.timed_out and not result.hints:
        return Unfixed("nothing was denied: the task ran out of time", "see what the command printed")
    if result.hints:
        return Unfixed(f"no entry is sure to help: exit {code} is the command's own", "see the hints of the report")
    return Unfixed(f"nothing was denied: exit {code} is the command's own", "see what the command printed")
