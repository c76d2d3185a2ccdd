"""Trees and grants in `fixtures/plans/NAME.json` against the plan or the refusals expected in `NAME.plan.txt`.

`UPDATE_GOLDEN=1` rewrites the expectations; review the difference. A tree lists files, directories
with a trailing `/`, sockets with a trailing `=` and links as `place -> text`.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from sandbox.contract.errors import RequestRefused
from sandbox.planning.operations import shown
from tests.conftest import REPOSITORY
from tests.support.memory_files import MemoryFiles
from tests.support.plans import planned

if TYPE_CHECKING:
    from pathlib import Path

PLANS = REPOSITORY / "fixtures" / "plans"
CASES = sorted(PLANS.glob("*.json"))


def rendered(case: dict[str, Any]) -> str:
    tree = case["tree"]
    links = dict(entry.split(" -> ") for entry in tree if " -> " in entry)
    files = MemoryFiles.of(*(entry for entry in tree if " -> " not in entry), links=links)
    given = {
        "workspace": case["workspace"],
        "project": case["project"],
        "read": tuple(case.get("read", ())),
        "write": tuple(case.get("write", ())),
        "nested": case.get("nested", ()),
        "dependency_outputs": case.get("dependencyOutputs", ()),
        "cache_dir": case.get("cacheDir"),
        "links": [(place, links[place]) for place in case.get("spelledThrough", ())],
        "fields": case.get("fields"),
    }
    try:
        plan = planned(files, temp=case.get("temp"), **given)
    except RequestRefused as refused:
        return "".join(f"refused {r.code} {r.field}: {r.message}\n  hint: {r.hint}\n" for r in refused.refusals)
    lines = [
        f"{operation.describe()}\n  because {operation.origin.field or operation.origin.reason}"
        for operation in plan.operations
    ]
    lines += [f"nothing for {field}: {shown(path)}" for field, path in plan.inert]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_recorded_tree_is_planned_as_expected(path: Path) -> None:
    found = rendered(json.loads(path.read_text(encoding="utf-8")))
    golden = path.with_suffix(".plan.txt")
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


def test_every_expectation_has_its_tree() -> None:
    assert CASES
    assert {path.name.removesuffix(".plan.txt") for path in PLANS.glob("*.plan.txt")} == {path.stem for path in CASES}
