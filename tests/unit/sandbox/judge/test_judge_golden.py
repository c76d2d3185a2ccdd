"""Recorded accesses against the report expected of them; `UPDATE_GOLDEN=1` rewrites the expectations.

A case is `fixtures/accesses/<name>.json`; what is expected of it lies beside it as `<name>.expected.json`.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from sandbox.contract.config import Ignore
from sandbox.contract.intents import Intent
from sandbox.contract.results import Access
from sandbox.judge.boundary import Boundary
from sandbox.judge.failure_facts import Aftermath
from sandbox.judge.judge import Judge
from sandbox.planning import operations
from sandbox.planning.operations import Operation, Origin
from sandbox.planning.path_reach import Plan
from sandbox.request.task_outputs import Declared, anchored
from sandbox.request.walls import Wall

ROOT = next(p for p in Path(__file__).resolve().parents if (p / "pyproject.toml").exists())
CASES = sorted(p for p in (ROOT / "fixtures/accesses").glob("*.json") if not p.name.endswith(".expected.json"))


def operation(raw: dict[str, Any]) -> Operation:
    kind = getattr(operations, raw["op"])
    rest = {key: value for key, value in raw.items() if key not in ("op", "field")}
    made: Operation = kind(origin=Origin(field=raw.get("field", ""), reason="fixture"), **rest)
    return made


def boundary(case: dict[str, Any]) -> Boundary:
    plan = Plan(
        operations=tuple(operation(o) for o in case["operations"]),
        workspace=case["workspace"],
        project=case["project"],
    )
    secret = case.get("secret")
    links = dict(case.get("links", {}))

    def canonical(path: str) -> str:
        return next((to + path[len(link) :] for link, to in links.items() if path.startswith(link)), path)

    def mask(text: str) -> str:
        return text.replace(secret, "***") if secret else text

    return Boundary(
        plan=plan,
        project=case["project"],
        workspace=case["workspace"],
        home=case["home"],
        temp=case.get("temp", ""),
        withheld=tuple(case.get("withheld", ())),
        nested=tuple(case.get("nested", ())),
        walls=tuple(Wall(**w) for w in case.get("walls", ())),
        stores=tuple(Wall(**w) for w in case.get("stores", ())),
        shared=tuple(case.get("shared", ())),
        declared=Declared(
            own=anchored(case["project"], case.get("outputs", ())),
            upstream=tuple((task, tuple(patterns)) for task, patterns in case.get("upstream", {}).items()),
        ),
        directory=lambda path: path in case.get("directories", ()),
        hermetic=case.get("hermetic", False),
        cached=case.get("cached", False),
        canonical=canonical,
        mask=mask,
    )


def aftermath(case: dict[str, Any]) -> Aftermath:
    return Aftermath(
        cwd=case.get("cwd", case["project"]),
        printed=case.get("printed", ""),
        exists=lambda path: path in case.get("exists", ()),
        listens=lambda port: port in case.get("listening", ()),
    )


def report(case: dict[str, Any]) -> dict[str, Any]:
    ignore = Ignore(**{kind: tuple(entries) for kind, entries in case.get("ignore", {}).items()})
    judge = Judge(boundary(case), ignore=ignore)
    taken = [judge.take(Access(pid=1, **{**raw, "intent": Intent(raw["intent"])})) for raw in case["accesses"]]
    fix = judge.fix(survived=case.get("survived", True))
    return {
        "violations": [dataclasses.asdict(v) for v in taken if v is not None],
        "fix": None if fix is None else dataclasses.asdict(fix),
        "hints": [dataclasses.asdict(hint) for hint in judge.hints(aftermath(case))],
    }


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_a_recording_gives_the_report_beside_it(path: Path) -> None:
    found = json.loads(json.dumps(report(json.loads(path.read_text()))))
    expected = path.with_suffix(".expected.json")
    if os.environ.get("UPDATE_GOLDEN") == "1":
        expected.write_text(json.dumps(found, indent=2) + "\n")
    assert found == json.loads(expected.read_text())


def test_cases_and_expectations_come_in_pairs() -> None:
    assert CASES
    directory = ROOT / "fixtures/accesses"
    wanted = {p.with_suffix(".expected.json").name for p in CASES}
    assert wanted == {p.name for p in directory.glob("*.expected.json")}
