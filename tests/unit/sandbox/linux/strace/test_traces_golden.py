"""Traces of real tools against the verdict expected of them; `UPDATE_GOLDEN=1` rewrites the expectations.

A case is `fixtures/traces/<name>.strace`, recorded by `scripts/record-traces`; what is expected of it lies beside it as
`<name>.expected.json`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sandbox.judge.boundary import Boundary
from sandbox.judge.judge import Judge
from sandbox.linux.caller.resolve_path_as_caller import Walked, walk
from sandbox.linux.kernel.syscall_numbers import X86_64
from sandbox.linux.strace.trace_parser import TraceParser
from tests.support.memory_files import MemoryFiles
from tests.support.plans import planned
from tests.support.traces import COMMANDS, HOST, PROJECT, READ, WRITE

if TYPE_CHECKING:
    from sandbox.contract.intents import Intent
    from sandbox.contract.results import Access

ROOT = next(p for p in Path(__file__).resolve().parents if (p / "pyproject.toml").exists())
# every file, and every directory that holds one
THERE = {WRITE[0], *(str(place) for name in HOST for place in (Path(name), *Path(name).parents))}
CASES = sorted((ROOT / "fixtures/traces").glob("*.strace"))


class Host:
    """The workspace's host; nothing in it is a link."""

    def walk(self, pid: int, path: str, *, base: str, follows: bool) -> Walked:  # noqa: ARG002  no links
        return walk(lambda _: None, path, base=base, follows=follows)

    def exists(self, path: str) -> bool:
        return path in THERE

    def is_closed_link(self, path: str) -> bool:
        return path.startswith("/proc/1/")

    def changes(self, call: str, intent: Intent, path: str) -> bool:  # noqa: ARG002  nothing other programs execute
        return False


def accesses(trace: bytes, size: int = 1 << 16) -> tuple[list[Access], TraceParser]:
    parser = TraceParser(X86_64, Host(), cwd=PROJECT, noted=True)
    found: list[Access] = []
    for start in range(0, len(trace), size):
        found += parser.feed(trace[start : start + size])
    return found + parser.finish(), parser


def verdict(trace: bytes) -> dict[str, Any]:
    found, parser = accesses(trace)
    files = MemoryFiles.of(*(f for f in HOST), f"{WRITE[0]}/", "/home/mel/", "/root/", "/usr/lib/")
    directories = tuple(path if path.endswith(".sh") else f"{path}/" for path in READ)
    plan = planned(files, read=directories, write=tuple(f"{path}/" for path in WRITE))
    judge = Judge(Boundary(plan=plan, project=PROJECT, workspace="/ws", home="/root", temp="/tmp"))
    taken = [judge.take(access) for access in found]
    fix = judge.fix()
    return {
        "ended": parser.ended,
        "incomplete": parser.incomplete,
        "violations": [violation.line for violation in taken if violation is not None],
        "fix": None if fix is None else {"read": list(fix.allow.read), "write": list(fix.allow.write)},
    }


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_a_tool_seen_by_strace_gets_the_verdict_beside_its_trace(path: Path) -> None:
    found = verdict(path.read_bytes())
    expected = path.with_suffix(".expected.json")
    if os.environ.get("UPDATE_GOLDEN") == "1":
        expected.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(expected.read_text())


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
@pytest.mark.parametrize("size", [997, 1])
def test_a_trace_means_the_same_however_it_is_cut(path: Path, size: int) -> None:
    trace = path.read_bytes()[: 20_000 if size == 1 else None]
    assert accesses(trace, size)[0] == accesses(trace)[0]


def test_every_tool_has_its_trace_and_every_trace_its_verdict() -> None:
    assert {path.stem for path in CASES} == set(COMMANDS)
    assert {path.name.removesuffix(".expected.json") for path in (ROOT / "fixtures/traces").glob("*.json")} == set(
        COMMANDS
    )
    assert max(path.stat().st_size for path in CASES) < 200_000
