"""The report of a run for people, and its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import vxconf
from sandbox.contract.results import Fix, FixInputs, FixPaths, Hint, RunRefusal, RunResult, Violation, WithheldGrant
from vxconf.run.report import report_text, result_as_dict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
        "  openat a\\x1b [grant]",
        "hint: look there",
        'p/vx.toml:5: add "a", "it\\"s" to tasks.t.exec.sandbox.allow.read',
        'p/vx.toml:4: add "dist/" to tasks.t.exec.sandbox.allow.write, where "dist/" opens everything below',
        'p/vx.toml:4: add "*.tmp" to tasks.t.exec.sandbox.ignore.write',
        'p/vx.toml:1: add "a" to tasks.t.cache.inputs.files',
        "never suggested: /home/mel/.npmrc holds credentials: pass a variable",
    ]


def test_a_command_that_failed_by_itself_is_not_said_to_fail_for_a_violation(workspace_factory: Factory) -> None:
    result = _result(exit_code=5, command_exit_code=5, violations=(_VIOLATION, _VIOLATION))
    assert report_text(result, _task(workspace_factory)).startswith("p#t: 2 violations\n")


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
