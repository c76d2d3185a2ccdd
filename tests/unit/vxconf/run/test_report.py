"""The report of a run for people, and its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import vxconf
from sandbox.contract.results import Fix, FixInputs, FixPaths, Hint, RunRefusal, RunResult, Violation, WithheldGrant
from vxconf.run.report import report_text, result_as_dict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sandbox.contract.results import ViolationKind
    from tests.conftest import Tree
    from vxconf.workspace.project import Task

    Factory = Callable[[Tree], Path]

_TEXT = '[tasks.t.exec]\ncommand = "x"\n\n[tasks.t.exec.sandbox.allow]\nread = ["src/"]\n'
_VIOLATION = Violation(
    kind="read", operation="openat", target="a\x1b", path="/ws/a", errno="ENOENT", line="openat a\x1b"
)


def _task(make: Factory) -> Task:
    return vxconf.load(str(make({"p/vx.toml": _TEXT}))).task("p#t")


def _result(**changes: Any) -> RunResult:
    values = {"sandboxed": True, "exit_code": 0, "command_exit_code": 0, "started": True, "trace": "complete"}
    return RunResult(**{**values, **changes})


def test_a_plain_pass_says_nothing(workspace_factory: Factory) -> None:
    assert report_text(_result(), _task(workspace_factory)) == ""


def test_violations_hints_and_the_lines_to_add_are_told_in_that_order(workspace_factory: Factory) -> None:
    fix = Fix(
        allow=FixPaths(read=("a", 'it"s'), write=("dist/",)),
        ignore=FixPaths(write=("*.tmp",)),
        inputs=FixInputs(files=("a",)),
        withheld=("/home/mel/.npmrc",),
        by_hand=(WithheldGrant(target="/home/mel/.npmrc", reason="holds credentials", remedy="pass a variable"),),
    )
    result = _result(exit_code=1, violations=(_VIOLATION,), hints=(Hint(line="look there"),), fix=fix)
    assert report_text(result, _task(workspace_factory)).splitlines() == [
        "p#t: 1 violation, so the task fails",
        "  add to p/vx.toml:5, in [tasks.t.exec.sandbox.allow]",
        '    read = ["a", "it\\"s"]',
        '    write = ["dist/"]  # "dist/" opens everything below',
        "  add to p/vx.toml:4, in [tasks.t.exec.sandbox.ignore]",
        '    write = ["*.tmp"]',
        "  add to p/vx.toml:1, in [tasks.t.cache.inputs]",
        '    files = ["a"]',
        "  may not read /ws/a",
        "hint: look there",
        "never suggested: /home/mel/.npmrc holds credentials: pass a variable",
        "to write these lines: vxconf run p#t --fix",
    ]


def test_a_command_that_failed_by_itself_is_not_said_to_fail_for_a_violation(workspace_factory: Factory) -> None:
    result = _result(exit_code=5, command_exit_code=5, violations=(_VIOLATION, _VIOLATION))
    assert report_text(result, _task(workspace_factory)).startswith(
        "p#t: 2 violations, and the command failed: exit 5\n"
    )


def test_a_run_that_did_not_start_says_why_and_what_to_do(workspace_factory: Factory) -> None:
    refusals = (RunRefusal(message="no bwrap", hint="install it"), RunRefusal(message="other"))
    result = _result(exit_code=125, started=False, refusals=refusals)
    assert report_text(result, _task(workspace_factory)).splitlines() == [
        "error: no bwrap",
        "  help: install it",
        "error: other",
        "p#t was not run",
    ]


def test_a_partial_trace_and_a_timeout_are_reported(workspace_factory: Factory) -> None:
    result = _result(exit_code=124, timed_out=True, trace="none", trace_reason="no observer was asked for")
    lines = report_text(result, _task(workspace_factory)).splitlines()
    assert lines == ["p#t was ended: it ran out of time", "not everything it did was seen: no observer was asked for"]


def test_the_json_carries_every_field_of_a_result() -> None:
    result = _result(
        exit_code=1,
        command_exit_code=0,
        signal=None,
        duration_ms=1.5,
        cpu_ms=1.0,
        peak_rss_bytes=7,
        observer="mask",
        violations=(_VIOLATION,),
        hints=(Hint(line="h", class_="use-tmpdir"),),
        fix=Fix(allow=FixPaths(network=("a.test:443",))),
        refusals=(RunRefusal(message="no bwrap", hint="install it", code="VX302", field="allowWrite[0]"),),
    )
    data = result_as_dict(result, task="p#t")
    assert (data["task"], data["exitCode"], data["commandExitCode"], data["durationMs"]) == ("p#t", 1, 0, 1.5)
    assert (data["cpuMs"], data["peakRssBytes"], data["observer"], data["trace"]) == (1.0, 7, "mask", "complete")
    assert data["hints"] == [{"line": "h", "class": "use-tmpdir"}]
    assert data["violations"][0]["class"] == "grant"
    assert data["violations"][0]["errno"] == "ENOENT"
    assert data["fix"]["allow"]["network"] == ["a.test:443"]
    refusal = data["refusals"][0]
    assert (refusal["code"], refusal["message"], refusal["hint"]) == ("VX302", "no bwrap", "install it")
    assert (refusal["help"], refusal["file"], refusal["path"]) == ("install it", None, "")


def _denied(task: Task, kind: ViolationKind, name: str, why: str = "is covered by no grant") -> Violation:
    path = f"{task.project.directory}/{name}"
    line = f"openat {name}: ENOENT, {path} {why}"
    return Violation(kind=kind, operation="openat", target=name, path=path, errno="ENOENT", line=line)


def test_many_names_of_one_directory_are_one_line_and_verbose_has_each(workspace_factory: Factory) -> None:
    task = _task(workspace_factory)
    numbered = [_denied(task, "write", f"gen/f{number}.txt", "is covered by no write grant") for number in range(1, 13)]
    few = [_denied(task, "read", f"conf/{name}") for name in "abcdef"]
    walled = _denied(task, "read", "sub/.git/HEAD", "is walled off (the repository's data)")
    result = _result(exit_code=1, violations=(*reversed(numbered), *few, walled))
    first, *lines = report_text(result, task).splitlines()
    assert first == "p#t: 19 violations, so the task fails"
    assert lines == [
        *(f"  may not read conf/{name}" for name in "abcdef"),
        "  may not read sub/.git/HEAD: is walled off (the repository's data)",
        "  may not write gen/f1.txt … gen/f12.txt, 12 files",
    ]
    verbose = report_text(result, task, verbose=True).splitlines()[1:]
    assert verbose == [f"  {violation.line} [grant]" for violation in result.violations]


def test_a_place_above_the_project_is_told_from_there(workspace_factory: Factory) -> None:
    task = _task(workspace_factory)
    result = _result(exit_code=1, violations=(_denied(task, "write", "../q/x"),))
    assert "  may not write ../q/x" in report_text(result, task)
