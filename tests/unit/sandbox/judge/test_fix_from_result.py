"""`sandbox.fix`: what a result says would have let it pass, spelled for an attempt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import sandbox
from sandbox.base.host_facts import HostFacts
from sandbox.contract.config import ResolvedSandboxConfig
from sandbox.contract.results import DenialClass, Fix, FixPaths, RunResult, Violation
from sandbox.request.request import JudgedConfig, Request, WorkspaceFacts
from sandbox.request.task_outputs import Declared, anchored
from sandbox.request.walls import Wall

if TYPE_CHECKING:
    from sandbox.contract.results import ViolationKind

P = "/ws/apps/shop"
REQUEST = Request(
    judged=JudgedConfig(config=ResolvedSandboxConfig(platform="linux", workspace="/ws", project=P)),
    workspace_root="/ws",
    workspace=WorkspaceFacts(root="/ws"),
    facts=HostFacts(platform="linux", home="/home/mel", temp_root="/tmp/vx-1"),
    stores=(Wall(path="/home/mel/.npmrc", reason="the credential store ~/.npmrc"),),
)


def denied(kind: ViolationKind, operation: str, path: str, class_: DenialClass = "grant") -> Violation:
    return Violation(kind=kind, operation=operation, target=path, path=path, errno="", line="", class_=class_)


def result(*violations: Violation, fix: Fix | None = None, status: int = 0) -> RunResult:
    return RunResult(sandboxed=True, exit_code=1, command_exit_code=status, violations=violations, fix=fix)


def test_without_an_attempt_it_is_what_the_run_found() -> None:
    found = Fix(allow=FixPaths(read=("x",)))
    assert sandbox.fix(result(denied("read", "openat", f"{P}/x"), fix=found)) is found
    assert sandbox.fix(result()) is None


def test_for_an_attempt_it_is_spelled_for_its_project() -> None:
    run = result(
        denied("read", "openat", f"{P}/notes.md"),
        denied("read", "openat", f"{P}/none.ini", "ignore"),
        denied("write", "mkdir", f"{P}/gen"),
        denied("write", "openat", f"{P}/gen/a"),
        denied("write", "openat", f"{P}/.4f9a1c.tmp", "ignore"),
        denied("write", "openat", f"{P}/.bashrc", "tool-fault"),
        denied("read", "openat", "/home/mel/.npmrc", "credential"),
        denied("network", "network-outbound", ""),
        fix=Fix(allow=FixPaths(network=("a.test:443",))),
    )
    found = sandbox.fix(run, REQUEST)
    assert found is not None
    assert [one.target for one in found.by_hand] == ["/home/mel/.npmrc"]
    assert replace(found, by_hand=()) == Fix(
        allow=FixPaths(read=("notes.md",), write=("gen",), network=("a.test:443",)),
        ignore=FixPaths(read=("none.ini",), write=("*.tmp",)),
        withheld=("/home/mel/.npmrc",),
    )


def test_what_other_tasks_make_is_left_to_them_and_a_cached_task_gets_its_inputs() -> None:
    declared = Declared(upstream=(("libs/money#build", anchored("/ws/libs/money", ("dist/**",))),))
    attempt = replace(
        REQUEST, workspace=WorkspaceFacts(root="/ws", declared=declared), keyed=frozenset({"/ws/libs/money"})
    )
    run = result(denied("write", "openat", "/ws/libs/money/dist/a.js", "run-upstream"))
    assert sandbox.fix(run, attempt) is None
    keyed = sandbox.fix(result(denied("read", "stat", f"{P}/notes.md")), attempt)
    assert keyed is not None
    assert keyed.inputs.files == ("notes.md",)
