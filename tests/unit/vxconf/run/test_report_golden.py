"""Reports for people and for programs from the same results: the golden files in fixtures/reports."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import vxconf
from sandbox.contract.results import (
    Fix,
    FixInputs,
    FixPaths,
    Hint,
    Protections,
    RunRefusal,
    RunResult,
    Violation,
    WithheldGrant,
)
from vxconf.edit.add_entries import Change
from vxconf.run.report import changes_text, report_text, result_as_dict

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.contract.results import DenialClass, ViolationKind
    from tests.conftest import Tree

REPORTS = next(p for p in Path(__file__).resolve().parents if (p / "pyproject.toml").exists()) / "fixtures" / "reports"
WALLED = Protections(filesystem="full", network="full", sockets="full", observer="full")


def _denied(kind: ViolationKind, operation: str, path: str, why: str, class_: DenialClass = "grant") -> Violation:
    errno = "ENOENT" if kind == "read" else "EROFS"
    target = path.removeprefix("/ws/p/")
    line = f"{operation} {target}: {errno}, {path} is {why}"
    return Violation(kind=kind, operation=operation, target=target, path=path, errno=errno, line=line, class_=class_)


def _ran(**more: Any) -> RunResult:
    result = RunResult(
        sandboxed=True,
        exit_code=1,
        command_exit_code=0,
        started=True,
        duration_ms=12.5,
        cpu_ms=8.0,
        peak_rss_bytes=4096,
        observer="mask",
        trace="complete",
        protections=WALLED,
    )
    return dataclasses.replace(result, **more)


NO_GRANT, NO_WRITE, EXECUTED = "covered by no grant", "covered by no write grant", "a name other programs execute"
OUTBOUND = Violation(
    kind="network",
    operation="network-outbound",
    target="a.test:443",
    path="",
    errno="",
    line="deny network-outbound a.test:443 (host is not on the allow list)",
)
RESULTS = {
    "pass": _ran(exit_code=0),
    "every-class": _ran(
        violations=(
            _denied("read", "openat", "/ws/p/notes.md", NO_GRANT),
            _denied("read", "openat", "/ws/p/no.ini", NO_GRANT, "ignore"),
            _denied("write", "mkdir", "/ws/p/gen", NO_WRITE),
            _denied("write", "openat", "/ws/p/.9f3a21.tmp", NO_WRITE, "ignore"),
            _denied("write", "openat", "/ws/libs/d/a.js", NO_WRITE, "run-upstream"),
            _denied("write", "openat", "/ws/p/.bashrc", EXECUTED, "tool-fault"),
            _denied("read", "openat", "/ws/p/.npmrc", NO_GRANT, "credential"),
            OUTBOUND,
        ),
        hints=(
            Hint(line="/ws/libs/d/a.js is an output of libs#build: run that task", class_="run-upstream"),
            Hint(line="writing to /tmp/x was refused: have it write to $TMPDIR", class_="use-tmpdir"),
        ),
        fix=Fix(
            allow=FixPaths(read=("notes.md",), write=("gen/",), network=("a.test:443",)),
            ignore=FixPaths(read=("no.ini",), write=("*.tmp",)),
            inputs=FixInputs(files=("notes.md",)),
            withheld=("/ws/p/.npmrc",),
            by_hand=(WithheldGrant(target="/ws/p/.npmrc", reason="holds credentials", remedy="pass a variable"),),
        ),
    ),
    "hints-alone": _ran(
        exit_code=2,
        command_exit_code=2,
        hints=(Hint(line='no grant lets the task read its own directory /ws/p: allow.read = ["."]', class_="grant"),),
    ),
    "signal": _ran(exit_code=137, command_exit_code=137, signal="SIGKILL"),
    "timed-out": _ran(exit_code=124, command_exit_code=143, signal="SIGTERM", timed_out=True),
    "partial": _ran(trace="partial", trace_reason="more than 100000 distinct calls", observer="notify"),
    "not-started": RunResult(
        sandboxed=True,
        exit_code=125,
        trace_reason="nothing was run",
        refusals=(RunRefusal(message="no bwrap", hint="install bubblewrap"),),
    ),
    "odd-text": _ran(
        violations=(_denied("read", "openat", "/ws/p/a\x1b[31m\n", NO_GRANT),),
        fix=Fix(allow=FixPaths(read=("a\x1b[31m\n",))),
    ),
}


def _golden(path: Path, found: str) -> None:
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_gives_the_report_and_the_json_beside_it(name: str, workspace_factory: Callable[[Tree], Path]) -> None:
    root = workspace_factory({"p/vx.toml": (REPORTS / "vx.toml").read_text(encoding="utf-8")})
    task = vxconf.load(str(root)).task("p#build")
    result = RESULTS[name]
    _golden(REPORTS / f"{name}.txt", report_text(result, task))
    _golden(REPORTS / f"{name}.json", json.dumps(result_as_dict(result, task=task.id), indent=2) + "\n")


def test_written_entries_are_reported_instead_of_suggestions(workspace_factory: Callable[[Tree], Path]) -> None:
    root = workspace_factory({"p/vx.toml": (REPORTS / "vx.toml").read_text(encoding="utf-8")})
    task = vxconf.load(str(root)).task("p#build")
    changes = [
        Change("p/vx.toml", 5, "tasks.build.exec.sandbox.allow.read", "notes.md"),
        Change("p/vx.toml", 6, "tasks.build.exec.sandbox.allow.write", "gen/"),
        Change("p/vx.toml", 9, "tasks.build.exec.sandbox.ignore.read", "a\x1b/"),
    ]
    _golden(REPORTS / "fixed.txt", report_text(RESULTS["every-class"], task, suggest=False) + changes_text(changes))


def test_no_report_is_left_of_a_case_that_is_gone() -> None:
    names = {path.stem for path in REPORTS.iterdir() if path.suffix in {".txt", ".json"}}
    assert names == {*RESULTS, "fixed"}
