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
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Fixed(NamedTuple):
    """The outcome of the fix of one run.

    Attributes:
        changes: the entries that were written.
        problem: the reason why none was; `None` where some were, and where there was nothing to fix.
        hosts: entries of `allow.network` that nobody said yes to.
    """

    changes: tuple[Change, ...] = ()
    problem: Unfixed | None = None
    hosts: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The keys that `--fix` adds to the JSON of a run."""
        problem = self.problem
        return {
            "changes": [change._asdict() for change in self.changes],
            "unfixed": {"message": problem.message, "help": problem.help} if problem is not None else None,
            "unwrittenNetwork": list(self.hosts),
        }


def fix_and_report(
    task: Task, result: RunResult, after: AfterOutput, *, as_json: bool, network: bool, verbose: bool
) -> None:
    """Write the fix of a failed run, and print the report with the changes, or with the reason why there are none.

    Args:
        task: the task that was run.
        result: the result of the run.
        after: standard error, as the task left it.
        as_json: whether to print JSON; nobody is asked anything then.
        network: whether hosts and loopback ports are written without a question.
        verbose: whether the report has every violation by itself.
    """
    fixed = write(task, result, after, ask=not as_json, network=network)
    if as_json:
        out(json.dumps(result_as_dict(result, task=task.id) | fixed.as_dict(), indent=2) + "\n")
        return
    after.err(report_text(result, task, suggest=not fixed.changes, verbose=verbose))
    after.err(told(fixed))


def write(
    task: Task,
    result: RunResult,
    after: AfterOutput,
    *,
    ask: bool,
    network: bool,
    written: dict[str, bytes] | None = None,
) -> Fixed:
    """Write the fix of a failed run.

    Args:
        task: the task that was run.
        result: the result of the run.
        after: standard error, as the task left it.
        ask: whether somebody at the terminal is asked about hosts and loopback ports.
        network: whether they are written without a question.
        written: what files hold since the fixes of other tasks of this run were written.
    """
    if not (result.exit_code and result.started):
        return Fixed()
    fix, hosts = hosts_apart(result.fix) if result.fix is not None else (None, ())
    if hosts and (network or (ask and _said_yes(hosts, after))):
        fix, hosts = result.fix, ()
    try:
        return Fixed(_written(task, result, fix, hosts, written), hosts=hosts)
    except Unfixed as fault:
        return Fixed(problem=fault, hosts=hosts)


def told(fixed: Fixed) -> str:
    """The lines on what was written, on what was not, and why."""
    lines = changes_text(fixed.changes)
    if fixed.problem is not None:
        lines += f"nothing was written: {printable(fixed.problem.message)}\n  help: {printable(fixed.problem.help)}\n"
    if fixed.hosts:
        hosts = printable(_listed(fixed.hosts))
        lines += f"not written: {hosts} of allow.network, which open this task to others\n"
        lines += "  help: say yes on a terminal, run it with --fix-network, or add them by hand\n"
    return lines


def _written(
    task: Task, result: RunResult, fix: Fix | None, hosts: tuple[str, ...], written: dict[str, bytes] | None
) -> tuple[Change, ...]:
    """Write a fix without the hosts that were not said yes to.

    Raises:
        Unfixed: nothing was written.
    """
    if fix is None:
        raise _without(result)
    if hosts and not any((fix.allow.read, fix.allow.write, fix.ignore.read, fix.ignore.write)):
        raise Unfixed("all that is suggested are hosts", "run it with --fix-network, or add them by hand")
    return write_fix(task, fix, written=written)


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
