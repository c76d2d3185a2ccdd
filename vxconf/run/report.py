"""The result of a run as JSON, and as a report for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vxconf.diagnostics import render
from vxconf.diagnostics.diagnostic import dotted, quoted
from vxconf.diagnostics.printable import printable
from vxconf.document.spans import locate
from vxconf.edit.add_entries import additions

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


def report_text(result: RunResult, task: Task, *, suggest: bool = True) -> str:
    """The report that is printed after the command's own output; empty for a plain pass.

    Args:
        result: the result of the run.
        task: the task that was run.
        suggest: whether to print the lines that would let the task pass.
    """
    return "".join(f"{printable(line)}\n" for line in _lines(result, task, suggest=suggest))


def suggestions_text(result: RunResult, task: Task) -> str:
    """The lines that would let a task pass, as its report has them."""
    lines = _suggestions(result.fix, task) if result.fix is not None else ()
    return "".join(f"{printable(line)}\n" for line in lines)


def changes_text(changes: Iterable[Change]) -> str:
    """The lines on the entries that were added to a task's file."""
    lines = (f"{c.file}:{c.line}: added {quoted(c.entry)} to {c.path}{_whole(c.path, (c.entry,))}" for c in changes)
    return "".join(f"{printable(line)}\n" for line in lines)


def _lines(result: RunResult, task: Task, *, suggest: bool) -> Iterator[str]:
    for refusal in result.refusals:
        yield f"error: {refusal.message}"
        if refusal.hint:
            yield f"  help: {refusal.hint}"
    if not result.started:
        yield f"{task.id} was not run"
    yield from _violations(result, task)
    yield from (f"hint: {hint.line}" for hint in result.hints)
    if result.fix is not None:
        if suggest:
            yield from _suggestions(result.fix, task)
        yield from (f"never suggested: {one.target} {one.reason}: {one.remedy}" for one in result.fix.by_hand)
    if result.timed_out:
        yield f"{task.id} was ended: it ran out of time"
    if result.started and result.sandboxed and result.trace != "complete":
        yield f"not everything it did was seen: {result.trace_reason}"


def _violations(result: RunResult, task: Task) -> Iterator[str]:
    count = len(result.violations)
    if count:
        failed = ", so the task fails" if result.command_exit_code == 0 else ""
        yield f"{task.id}: {count} violation{'' if count == 1 else 's'}{failed}"
    yield from (f"  {violation.line} [{violation.class_}]" for violation in result.violations)


def _suggestions(fix: Fix, task: Task) -> Iterator[str]:
    loaded = task.project.loaded
    if loaded is None or loaded.document is None or task.model is None:
        return
    for path, entries in additions(task.model, fix).items():
        line = locate(loaded.document, path).line
        added = ", ".join(map(quoted, entries))
        yield f"{loaded.file}:{line}: add {added} to {dotted(path)}{_whole(dotted(path), entries)}"


def _whole(path: str, entries: Iterable[str]) -> str:
    """The end of a line on grants that open more than the task asked for: the directories among them."""
    wide = [quoted(entry) for entry in entries if entry.endswith("/")]
    if not wide or path.split(".")[-2] != "allow":
        return ""
    return f", where {' and '.join(wide)} open{'s' if len(wide) == 1 else ''} everything below"


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
