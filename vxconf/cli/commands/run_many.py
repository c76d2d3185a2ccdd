"""`vxconf run TASK TASK …`, `-j`, `--all`: runs several tasks after the tasks they need, and prints one summary."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from sandbox.contract.results import RunResult
from sandbox.session.session import Session
from vxconf.cli.after_output import AfterOutput
from vxconf.cli.command_output import CommandOutput, lost
from vxconf.cli.commands.run_fix import Fixed, told, write
from vxconf.cli.console import FOUND, NOT_RUN, OK, UsageError, err, is_coloured, out, raw
from vxconf.cli.find_task import task_diagnostics_text, task_in, workspace_here
from vxconf.cli.forward_signals import SignalForwarder
from vxconf.diagnostics.printable import printable
from vxconf.nearest_names import near_names
from vxconf.run.report import block_refusal, report_text, result_as_dict, suggestions_text
from vxconf.run.schedule import Cycle, Step, schedule
from vxconf.run.task_runner import EndedTask, TaskRunner
from vxconf.run.unmade_outputs import unmade_outputs_text
from vxconf.workspace.find_projects import TooManyDirectories
from vxconf.workspace.project import Task
from vxconf.workspace.references import Unknown

if TYPE_CHECKING:
    from vxconf.cli.arguments import Arguments
    from vxconf.diagnostics.diagnostic import Diagnostic
    from vxconf.workspace.workspace import Workspace

_MOST_JOBS = 1024


def main(arguments: Arguments, *, timeout: float | None, group: bool = False) -> int:
    """Runs several tasks.

    Args:
        arguments: the arguments of `run`.
        timeout: the seconds each command may take, in place of the task's own limit.
        group: whether they are one group and what it depends on; the JSON then has the keys of a single task as well.

    Returns:
        0 when every task passed, 128+n when signal n stopped the run, 125 when nothing was run, else 1.
    """
    if arguments["args"]:
        raise UsageError("arguments after -- take one task: name the task they are for alone")
    steps = _steps(arguments)
    as_json = arguments["format"] == "json"
    refused = {step.task.id: found for step in steps if (found := step.task.diagnostics())}
    if refused:
        return _refused(steps, refused, as_json=as_json, group=group)
    jobs = _jobs(arguments["jobs"])
    fixing = bool(arguments["fix"] or arguments["fix_network"])
    show = _Show(
        as_json=as_json,
        together=jobs > 1 and len(steps) > 1,
        total=len(steps),
        suggest=not fixing,
        verbose=bool(arguments["verbose"]),
    )
    began = time.monotonic()
    with Session() as session:
        session.declare(step.task.resolve() for step in steps if step.task.sandboxed)
        runs = TaskRunner(session, steps, show, jobs=jobs, timeout=timeout, observer=str(arguments["observer"]))
        with SignalForwarder(runs.signal) as heard:
            ended = runs.run()
    show.close()
    unwritten = show.lost()
    passed = all(one.passed for one in ended) and not unwritten
    status = 128 + heard.first if heard.first else OK if passed else FOUND
    fixes = _fixes(ended, as_json=as_json, network=bool(arguments["fix_network"])) if fixing else {}
    if as_json:
        out(json.dumps(_document(ended, status, time.monotonic() - began, fixes, group=group), indent=2) + "\n")
    else:
        err(_summary(ended))
    if unwritten:
        err(f"error: {unwritten}\n")
    return status


def _steps(arguments: Arguments) -> tuple[Step[Task], ...]:
    words = arguments["task"]
    names = list(words) if isinstance(words, list) else []
    workspace = workspace_here()
    try:
        asked = _everywhere(workspace, names) if arguments["all"] else [task_in(workspace, name) for name in names]
        return schedule(asked, lambda task: tuple(workspace.graph.references(task)))
    except Cycle as cycle:
        raise UsageError(f"the tasks wait for each other: {cycle}") from None
    except TooManyDirectories as fault:
        raise UsageError(f"{fault.directory} holds more directories than can be searched for projects") from None


def _everywhere(workspace: Workspace, names: list[str]) -> list[Task]:
    """The tasks of these names in every project, or all tasks without a name."""
    for name in names:
        if "#" in name:
            raise UsageError(f"--all takes bare task names, and {name} names a project")
    found = [task for task in workspace.tasks if not names or task.name in names]
    hiding = workspace.unreadable
    if not hiding:
        _hold_known(workspace, names)
    # an unreadable file may have any task: one of each name stands for them, and is refused
    found += [Task(project, name) for project in hiding for name in names or ["*"] if project.task(name) is None]
    if not found:
        raise UsageError(f"the workspace {workspace.root} has no task")
    return found


def _hold_known(workspace: Workspace, names: list[str]) -> None:
    """Refuses a name that no task of the workspace has."""
    known = [task.name for task in workspace.tasks]
    for name in names:
        if name not in known:
            message = f'no project of {workspace.root} has a task "{name}"'
            raise UsageError(str(Unknown(message, near_names(name, known))))


def _jobs(value: object) -> int:
    if not isinstance(value, float):
        return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    if not (value == int(value) and 1 <= value <= _MOST_JOBS):
        raise UsageError(f"-j {value:g} is not a number of tasks from 1 to {_MOST_JOBS}")
    return int(value)


def _refused(
    steps: tuple[Step[Task], ...], refused: dict[str, tuple[Diagnostic, ...]], *, as_json: bool, group: bool
) -> int:
    """Prints the refusals of the tasks; the status is 125, since nothing is run when one is refused."""
    if as_json:
        ended = [
            EndedTask(
                task=step.task,
                passed=False,
                refusals=refused.get(step.task.id, ()),
                skipped="it is refused" if step.task.id in refused else "another task is refused",
            )
            for step in steps
        ]
        out(json.dumps(_document(tuple(ended), NOT_RUN, 0.0, group=group), indent=2) + "\n")
        return NOT_RUN
    shown: set[Diagnostic] = set()
    for step in steps:
        fresh = tuple(d for d in refused.get(step.task.id, ()) if d not in shown)
        shown.update(fresh)
        raw(task_diagnostics_text(fresh, step.task, colour=is_coloured(sys.stderr)))
    err(f"{' and '.join(refused)} refused: nothing was run\n")
    return NOT_RUN


def _fixes(ended: tuple[EndedTask, ...], *, as_json: bool, network: bool) -> dict[str, Fixed]:
    """Write the fixes of the tasks that failed, once all have ended, and tell of them unless JSON is printed."""
    after, written, fixes = AfterOutput(), dict[str, bytes](), {}
    for one in ended:
        if one.result is None:
            continue
        fixed = write(one.task, one.result, after, ask=not as_json, network=network, written=written)
        fixes[one.task.id] = fixed
        if as_json or not (one.result.exit_code and one.result.started):
            continue
        if not fixed.changes:
            after.err(printable(f"{one.task.id}: no entry was added") + "\n" + suggestions_text(one.result, one.task))
        after.err(told(fixed))
    return fixes


def _document(
    ended: tuple[EndedTask, ...],
    status: int,
    seconds: float,
    fixes: dict[str, Fixed] | None = None,
    *,
    group: bool,
) -> dict[str, Any]:
    added = {name: fixed.as_dict() for name, fixed in (fixes or {}).items()}
    # The group comes last, after the tasks it depends on; it is refused for the reasons of each.
    own = _entry(ended[-1]) | {"refusals": [r for one in ended for r in _entry(one)["refusals"]]} if group else {}
    return own | {
        "tasks": [_entry(one) | added.get(one.task.id, {}) for one in ended],
        "passed": sum(one.passed for one in ended),
        "failed": sum(not one.passed and not _is_skipped(one) for one in ended),
        "skipped": sum(_is_skipped(one) for one in ended),
        "exitCode": status,
        "durationMs": seconds * 1000,
    }


def _entry(one: EndedTask) -> dict[str, Any]:
    task = one.task
    empty = RunResult(sandboxed=task.sandboxed, exit_code=OK if one.passed else NOT_RUN, trace_reason="nothing was run")
    entry = result_as_dict(one.result or empty, task=task.id)
    if one.refusals:
        entry["refusals"] = [block_refusal(diagnostic) for diagnostic in one.refusals]
    return entry | {"passed": one.passed, "skipped": one.skipped or None}


def _is_skipped(one: EndedTask) -> bool:
    return bool(one.skipped) and one.result is None and not one.refusals


def _summary(ended: tuple[EndedTask, ...]) -> str:
    passed = [one for one in ended if one.passed]
    skipped = [one for one in ended if _is_skipped(one)]
    failed = [one for one in ended if not one.passed and not _is_skipped(one)]
    parts = [f"{len(passed)} passed"]
    if failed:
        parts.append(f"{len(failed)} failed ({', '.join(one.task.id for one in failed)})")
    if skipped:
        parts.append(f"{len(skipped)} not run ({', '.join(one.task.id for one in skipped)})")
    return printable(f"{len(ended)} task{'' if len(ended) == 1 else 's'}: {', '.join(parts)}") + "\n"


class _Show:
    """The output while tasks run: with several at once every line has its task's name in front."""

    def __init__(
        self, *, as_json: bool, together: bool, total: int, suggest: bool = True, verbose: bool = False
    ) -> None:
        self._as_json = as_json
        self._together = together
        self._total = total
        self._suggest = suggest
        self._verbose = verbose
        self._lock = threading.Lock()
        self._outputs = {stream: CommandOutput(stream, lambda: None) for stream in (1, 2)}
        self._partial: dict[tuple[str, int], bytes] = {}
        self._after = AfterOutput()
        self._running: list[str] = []
        self._done = 0
        self._status = _Status() if not as_json and is_coloured(sys.stderr) else None

    def started(self, task: Task) -> None:
        with self._lock:
            self._running.append(task.id)
            if not self._together and not self._as_json:
                self._say(f"{printable(task.id)}\n")
            self._draw()

    def output(self, task: Task, stream: int, chunk: bytes) -> None:
        with self._lock:
            if not self._together:
                self._write(stream, chunk)
                self._after.hear(2 if self._as_json else stream, chunk)
                return
            *lines, rest = (self._partial.pop((task.id, stream), b"") + chunk).split(b"\n")
            if lines:
                prefix = f"{printable(task.id)}: ".encode()
                self._after.hear(stream, b"\n")
                self._write(stream, b"".join(prefix + line + b"\n" for line in lines))
            if rest:
                self._partial[task.id, stream] = rest
            self._draw()

    def ended(self, ended: EndedTask) -> None:
        task = ended.task
        with self._lock:
            for stream in (1, 2):
                if rest := self._partial.pop((task.id, stream), b""):
                    self._after.hear(stream, b"\n")
                    self._write(stream, f"{printable(task.id)}: ".encode() + rest + b"\n")
            self._done += 1
            if task.id in self._running:
                self._running.remove(task.id)
            if not self._as_json:
                self._say(_told(ended, suggest=self._suggest, verbose=self._verbose))
            self._draw()

    def _say(self, text: str) -> None:
        """Write text of our own, whose names are printable, to standard error: on a line and in a colour of its own."""
        if text:
            self._write(2, (self._after.begin() + text).encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        if self._status is not None:
            self._status.clear()

    def _write(self, stream: int, data: bytes) -> None:
        if self._status is not None:
            self._status.clear()
        # with --format json standard output has the JSON alone
        self._outputs[2 if self._as_json else stream].write(data)

    def lost(self) -> str:
        """Why not all that the commands wrote was passed on; empty where it was."""
        return lost(*self._outputs.values())

    def _draw(self) -> None:
        if self._status is not None:
            self._status.draw(f"[{self._done}/{self._total}] {', '.join(self._running)}")


def _told(ended: EndedTask, *, suggest: bool, verbose: bool) -> str:
    task = ended.task
    if ended.refusals:
        return (
            task_diagnostics_text(ended.refusals, task, colour=is_coloured(sys.stderr))
            + f"{printable(task.id)} was not run\n"
        )
    if ended.result is None:
        return printable(f"{task.id} was not run: {ended.skipped}") + "\n" if ended.skipped else ""
    text = report_text(ended.result, task, suggest=suggest, verbose=verbose)
    if ended.passed:
        text += unmade_outputs_text(task)
    else:
        text += printable(f"{task.id} {_why(ended, ended.result)}") + "\n"
    return text


def _why(ended: EndedTask, result: RunResult) -> str:
    if ended.skipped:
        return f"did not pass: {ended.skipped}"
    return f"did not pass: exit {result.exit_code}" if result.started else "did not pass: it was not run"


class _Status:
    """The status line at the bottom of a terminal, erased before anything else is written."""

    def __init__(self) -> None:
        self._drawn = False

    def draw(self, text: str) -> None:
        self.clear()
        width = os.get_terminal_size(2).columns if os.isatty(2) else 80
        err(printable(text)[: max(1, width - 1)])
        sys.stderr.flush()
        self._drawn = True

    def clear(self) -> None:
        if self._drawn:
            raw("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False
