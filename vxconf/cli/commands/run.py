"""`vxconf run TASK`: runs one task's command in its sandbox and prints the report after the command's output."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from sandbox.contract.results import RunRefusal, RunResult
from vxconf.cli.after_output import AfterOutput
from vxconf.cli.command_output import CommandOutput, with_lost_output
from vxconf.cli.console import NOT_RUN, UsageError, err, is_coloured, out, raw
from vxconf.cli.find_task import find_task, task_diagnostics_text
from vxconf.cli.forward_signals import SignalForwarder
from vxconf.run.report import block_refusal, engine_refusal, report_text, result_as_dict
from vxconf.run.unmade_outputs import unmade_outputs_text
from vxconf.workspace.project import Refused

if TYPE_CHECKING:
    from vxconf.cli.arguments import Arguments
    from vxconf.resolve.task_model import Exec
    from vxconf.workspace.project import Task


def main(arguments: Arguments) -> int:
    """Runs one task, or several with `run_many`; the status of one task is the command's own, or 124 or 125.

    A group has no command: the tasks it depends on are run.
    """
    timeout = arguments["timeout"]
    if isinstance(timeout, float) and not (timeout > 0 and math.isfinite(timeout)):
        raise UsageError(f"--timeout {timeout} is not a number of seconds above 0")
    seconds = timeout if isinstance(timeout, float) else None
    names = arguments["task"] if isinstance(arguments["task"], list) else []
    if arguments["all"] or arguments["jobs"] is not None or len(names) > 1:
        from vxconf.cli.commands import run_many

        return run_many.main(arguments, timeout=seconds)
    if not names:
        raise UsageError("name a task, or run them --all")
    return _run(find_task(names[0]), arguments, timeout=seconds)


def _run(task: Task, arguments: Arguments, *, timeout: float | None) -> int:
    as_json = arguments["format"] == "json"
    refusals = task.diagnostics()
    if refusals:
        return _refused(task, refusals, as_json=as_json)
    model = task.model
    if model is None or model.exec is None:
        from vxconf.cli.commands import run_many

        return run_many.main(arguments, timeout=timeout, group=True)
    words = arguments["args"]
    args = list(words) if isinstance(words, list) else []
    seconds = timeout if timeout is not None else model.exec.timeout
    # with --format json standard output has the JSON alone
    streams = (2, 2) if as_json else (1, 2)
    sys.stdout.flush()
    sys.stderr.flush()
    after = AfterOutput()
    if task.sandboxed:
        try:
            result = _sandboxed(
                task, model.exec, args, streams, after, timeout=seconds, observer=str(arguments["observer"])
            )
        except Refused as fault:
            return _refused(task, fault.diagnostics, as_json=as_json)
    else:
        from vxconf.run.unsandboxed import run_unsandboxed

        if not as_json:
            err(f"{task.id} has no sandbox block: it runs with everything this user may do\n")
        after.not_heard()
        result = run_unsandboxed(task, model.exec, args, stdout=streams[0], timeout=seconds)
    if arguments["fix"] or arguments["fix_network"]:
        from vxconf.cli.commands import run_fix

        run_fix.fix_and_report(
            task,
            result,
            after,
            as_json=as_json,
            network=bool(arguments["fix_network"]),
            verbose=bool(arguments["verbose"]),
        )
    elif as_json:
        out(json.dumps(result_as_dict(result, task=task.id), indent=2) + "\n")
    else:
        after.err(report_text(result, task, verbose=bool(arguments["verbose"])))
        if result.exit_code == 0:
            after.err(unmade_outputs_text(task))
    return result.exit_code


def _refused(task: Task, refusals: tuple[Any, ...], *, as_json: bool) -> int:
    if as_json:
        result = RunResult(sandboxed=task.sandboxed, exit_code=NOT_RUN, trace_reason="nothing was run")
        data = result_as_dict(result, task=task.id)
        data["refusals"] = [block_refusal(diagnostic) for diagnostic in refusals] or [
            engine_refusal(RunRefusal(message="the block is refused"))
        ]
        out(json.dumps(data, indent=2) + "\n")
    else:
        raw(task_diagnostics_text(refusals, task, colour=is_coloured(sys.stderr)))
        err(f"{task.id} was not run\n")
    return NOT_RUN


def _sandboxed(
    task: Task,
    run: Exec,
    args: list[str],
    streams: tuple[int, int],
    after: AfterOutput,
    *,
    timeout: float | None,
    observer: str,
) -> RunResult:
    from sandbox.session.session import Session

    request = task.request()
    # a terminal also sends its size, and a quit that would leave it in raw mode
    also = (signal.SIGWINCH,) if request.config.pty else ()
    with Session() as session, SignalForwarder(session.interrupt, also):
        session.declare((request,))
        # once a reader is gone the command gets SIGPIPE
        output, errors = (CommandOutput(one, lambda: session.signal(signal.SIGPIPE)) for one in streams)
        result = session.run(
            request,
            command=run.command,
            args=args,
            env=dict(run.define),
            pass_through=run.pass_through,
            on_stdout=after.heard(streams[0], output.write),
            on_stderr=after.heard(streams[1], errors.write),
            timeout=timeout,
            observer=observer,
            stdin=_standard_input(),
            terminal=_terminal() if request.config.pty else None,
            capture=False,
        )
        return with_lost_output(result, output, errors)


def _standard_input() -> int | None:
    try:
        os.fstat(0)
    except OSError:
        return None
    return 0


def _terminal() -> int | None:
    """The first descriptor of the caller that is a terminal, or `None`."""
    return next((fd for fd in (0, 1, 2) if os.isatty(fd)), None)
