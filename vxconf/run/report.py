"""The result of a run as JSON, and as a report for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vxconf.diagnostics import render
from vxconf.diagnostics.diagnostic import dotted, quoted
from vxconf.diagnostics.printable import printable
from vxconf.document.spans import locate
from vxconf.edit.add_entries import additions
from vxconf.run.denials_text import denial_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.contract.results import Fix, FixPaths, RunRefusal, RunResult
    from vxconf.diagnostics.diagnostic import Diagnostic
    from vxconf.edit.add_entries import Change
    from vxconf.workspace.project import Task


def result_as_dict(result: RunResult, *, task: str) -> dict[str, Any]:
    """The result as a JSON object, with the keys of `run --format json`.

    Args:
        result: the result of the run.
        task: the task's reference.
    """
    protections = result.protections
    return {
        "task": task,
        "sandboxed": result.sandboxed,
        "exitCode": result.exit_code,
        "commandExitCode": result.command_exit_code,
        "signal": result.signal,
        "timedOut": result.timed_out,
        "started": result.started,
        "durationMs": result.duration_ms,
        "cpuMs": result.cpu_ms,
        "peakRssBytes": result.peak_rss_bytes,
        "observer": result.observer,
        "trace": result.trace,
        "traceReason": result.trace_reason,
        "protections": {
            "filesystem": protections.filesystem,
            "network": protections.network,
            "sockets": protections.sockets,
            "observer": protections.observer,
            "processes": protections.processes,
            "landlock": protections.landlock,
        },
        "violations": [
            {
                "kind": violation.kind,
                "operation": violation.operation,
                "target": violation.target,
                "path": violation.path,
                "errno": violation.errno,
                "line": violation.line,
                "class": violation.class_,
            }
            for violation in result.violations
        ],
        "hints": [{"line": hint.line, "class": hint.class_} for hint in result.hints],
        "fix": _fix(result.fix) if result.fix is not None else None,
        "refusals": [engine_refusal(refusal) for refusal in result.refusals],
    }


def block_refusal(diagnostic: Diagnostic) -> dict[str, Any]:
    """A refusal with a place in a file as a JSON object: the diagnostic, with its help also as `hint`."""
    return {**render.diagnostic_as_dict(diagnostic), "hint": diagnostic.help}


def engine_refusal(refusal: RunRefusal) -> dict[str, Any]:
    """A refusal without a place in a file as a JSON object with the keys of a diagnostic."""
    return {
        "code": refusal.code or None,
        "severity": "error",
        "file": None,
        "line": None,
        "column": None,
        "endLine": None,
        "endColumn": None,
        "path": "",
        "message": refusal.message,
        "help": refusal.hint,
        "platform": None,
        "hint": refusal.hint,
    }


def report_text(result: RunResult, task: Task, *, suggest: bool = True, verbose: bool = False) -> str:
    """The report that is printed after the command's own output; empty for a plain pass.

    Args:
        result: the result of the run.
        task: the task that was run.
        suggest: whether to print the lines that would let the task pass.
        verbose: whether to print every violation with its system call and error, and fold none.
    """
    return "".join(f"{printable(line)}\n" for line in _lines(result, task, suggest=suggest, verbose=verbose))


def suggestions_text(result: RunResult, task: Task) -> str:
    """The lines that would let a task pass, as its report has them."""
    lines = _suggestions(result.fix, task) if result.fix is not None else ()
    return "".join(f"{printable(line)}\n" for line in lines)


def changes_text(changes: Iterable[Change]) -> str:
    """The lines on the entries that were added to a task's file."""
    lines = (f"{c.file}:{c.line}: added {quoted(c.entry)} to {c.path}{_whole(c.path, (c.entry,))}" for c in changes)
    return "".join(f"{printable(line)}\n" for line in lines)


def _lines(result: RunResult, task: Task, *, suggest: bool, verbose: bool) -> Iterator[str]:
    for refusal in result.refusals:
        yield f"error: {refusal.message}"
        if refusal.hint:
            yield f"  help: {refusal.hint}"
    if not result.started:
        yield f"{task.id} was not run"
    suggested = list(_suggestions(result.fix, task)) if result.fix is not None and suggest else []
    yield from _headline(result, task)
    yield from (f"  {line}" for line in suggested)
    yield from _violations(result, task, verbose=verbose)
    yield from (f"hint: {hint.line}" for hint in result.hints)
    if result.fix is not None:
        yield from (f"never suggested: {one.target} {one.reason}: {one.remedy}" for one in result.fix.by_hand)
    if result.timed_out:
        yield f"{task.id} was ended: it ran out of time"
    if result.started and result.sandboxed and result.trace != "complete":
        yield f"not everything it did was seen: {result.trace_reason}"
    if suggested and result.fix is not None:
        yield f"to write these lines: vxconf run {task.id} --fix{'-network' if result.fix.allow.network else ''}"


def _headline(result: RunResult, task: Task) -> Iterator[str]:
    """The first line: what failed, and why."""
    count, code = len(result.violations), result.command_exit_code
    what = f"{count} violation{'' if count == 1 else 's'}"
    if count and code == 0:
        yield f"{task.id}: {what}, so the task fails"
    elif count:
        ended = f", and the command failed: exit {code}" if code is not None else ""
        yield f"{task.id}: {what}{ended}"
    elif code and result.hints and not result.timed_out:
        yield f"{task.id}: the command failed: exit {code}, with no violation"


def _violations(result: RunResult, task: Task, *, verbose: bool) -> Iterator[str]:
    if verbose:
        yield from (f"  {violation.line} [{violation.class_}]" for violation in result.violations)
    else:
        yield from (f"  {line}" for line in denial_lines(result.violations, task.project.directory))


def _suggestions(fix: Fix, task: Task) -> Iterator[str]:
    """The lines to add, as they would stand in the file, below the tables they belong to."""
    loaded = task.project.loaded
    if loaded is None or loaded.document is None or task.model is None:
        return
    table = ""
    for path, entries in additions(task.model, fix).items():
        line = locate(loaded.document, path).line
        key, value = path[-1], ", ".join(map(quoted, entries))
        if table != dotted(path[:-1]):
            table = dotted(path[:-1])
            yield f"add to {loaded.file}:{line}, in [{table}]"
        said = f"{quoted(key)}: [{value}]" if loaded.document.format == "json" else f"{key} = [{value}]"
        yield f"  {said}{_whole(dotted(path), entries, before='  # ')}"


def _whole(path: str, entries: Iterable[str], *, before: str = ", where ") -> str:
    """The end of a line on grants that open more than the task asked for: the directories among them."""
    wide = [quoted(entry) for entry in entries if entry.endswith("/")]
    if not wide or path.split(".")[-2] != "allow":
        return ""
    return f"{before}{' and '.join(wide)} open{'s' if len(wide) == 1 else ''} everything below"


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "allow": _paths(fix.allow),
        "ignore": _paths(fix.ignore),
        "inputs": {"files": list(fix.inputs.files), "workspaceFiles": list(fix.inputs.workspace_files)},
        "withheld": list(fix.withheld),
        "byHand": [{"target": one.target, "reason": one.reason, "remedy": one.remedy} for one in fix.by_hand],
    }


def _paths(paths: FixPaths) -> dict[str, list[str]]:
    return {"read": list(paths.read), "write": list(paths.write), "network": list(paths.network)}
