"""The profiles of every recorded tree and of every task of every fixture workspace; UPDATE_GOLDEN=1 rewrites them.

Found by walking. What every profile begins with is in one file of its own, so that the others say what differs.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

import vxconf
from sandbox.base.host_facts import HostFacts
from sandbox.contract.config import ResolvedSandboxConfig
from sandbox.contract.errors import RequestRefused
from sandbox.machine import ask_facts
from sandbox.planning.macos.pattern_regex import BELOW, aliases, literal
from sandbox.planning.macos.plan_of_request import plan
from sandbox.planning.macos.profile_text import text
from sandbox.request import credential_stores
from sandbox.request.build import build
from sandbox.request.request import Request, WorkspaceFacts
from tests.conftest import REPOSITORY, WORKSPACES, copy_workspace
from tests.support.memory_files import MemoryFiles
from tests.support.plans import FACTS
from tests.support.seatbelt import Profile

if TYPE_CHECKING:
    from pathlib import Path

FIXTURES = REPOSITORY / "fixtures"
PLANS = sorted((FIXTURES / "plans").glob("*.json"))
GOLDEN = FIXTURES / "profiles"
_UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"


def _rest(profile: str) -> str:
    """A profile without what all begin with."""
    Profile.of(profile)
    # the first thing said of a path, and the line that says why
    start = profile.rindex("\n; ", 0, profile.index("\n(deny file-read* ")) + 1
    begin, rest = profile[:start], profile[start:]
    hermetic = "/System" in begin
    _hold(GOLDEN / ("start-hermetic.sb" if hermetic else "start.sb"), begin)
    return rest


def _hold(expected: Path, found: str) -> None:
    if _UPDATE:
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(found, encoding="utf-8", errors="surrogateescape")
    assert found == expected.read_text(encoding="utf-8", errors="surrogateescape")


def _recorded(case: dict[str, Any]) -> str:
    tree = case["tree"]
    links = dict(entry.split(" -> ") for entry in tree if " -> " in entry)
    files = MemoryFiles.of(*(entry for entry in tree if " -> " not in entry), links=links)
    try:
        request = _request(case, files, links)
        return _rest(text(plan(request, files, temp=case.get("temp"))))
    except RequestRefused as refused:
        return "".join(f"refused {r.code} {r.field}: {r.message}\n  hint: {r.hint}\n" for r in refused.refusals)


def _request(case: dict[str, Any], files: MemoryFiles, links: dict[str, str]) -> Request:
    config = ResolvedSandboxConfig(
        platform="macos",
        workspace=case["workspace"],
        project=case["project"],
        allow_read=tuple(case.get("read", ())),
        allow_write=tuple(case.get("write", ())),
        **(case.get("fields") or {}),
    )
    facts = HostFacts(platform="macos", home=FACTS.home, temp_root=FACTS.temp_root, protected=FACTS.protected)
    return build(
        config,
        WorkspaceFacts(
            root=case["workspace"],
            nested=tuple(case.get("nested", ())),
            dependency_outputs=tuple(case.get("dependencyOutputs", ())),
            cache_dir=case.get("cacheDir"),
            links=tuple((place, links[place]) for place in case.get("spelledThrough", ())),
        ),
        files=files,
        facts=facts,
    )


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_recorded_tree_has_the_profile_expected(path: Path) -> None:
    found = _recorded(json.loads(path.read_text(encoding="utf-8")))
    _hold(path.with_suffix(".profile.sb"), found)


@pytest.mark.parametrize("name", sorted(path.name for path in WORKSPACES.iterdir()))
def test_every_task_of_a_fixture_workspace_has_the_profile_expected(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path.resolve()
    (base / "home").mkdir()
    (base / "tmp").mkdir()
    monkeypatch.setenv("HOME", str(base / "home"))
    monkeypatch.setenv("VX_TMPDIR", str(base / "tmp"))
    # which of the system's secrets could be read is this machine's
    monkeypatch.setattr(credential_stores, "system", lambda _files: ())
    monkeypatch.setattr(ask_facts, "other_homes", lambda _home: ())
    root = copy_workspace(name, base / "ws")
    workspace = vxconf.load(str(root))
    told = []
    for project in workspace.projects:
        for task in project.tasks:
            judged = task.judged("macos")
            if judged is None or judged.request is None:
                continue
            rest = _rest(text(plan(judged.request, judged.files, temp=f"{judged.where.facts.temp_root}/task")))
            told.append(f";; {task.id}\n{rest}")
    assert told
    found = "\n".join(told)
    for place, said in (
        (base / "tmp" / f"vx-{os.getuid()}", "/private/tmp/vx-501"),
        (base / "ws", "/Users/mel/ws"),
        (base / "home", "/Users/mel"),
        (base, "/private"),
    ):
        for form in (str, literal, lambda path: aliases(path).removeprefix("^").removesuffix(BELOW)):
            found = found.replace(form(str(place)), form(said))
    _hold(GOLDEN / f"{name}.sb", found)


def test_every_golden_profile_belongs_to_something() -> None:
    names = {path.name for path in GOLDEN.glob("*.sb")}
    assert names == {"start.sb", "start-hermetic.sb", *(f"{path.name}.sb" for path in WORKSPACES.iterdir())}
    recorded = {path.name.removesuffix(".profile.sb") for path in (FIXTURES / "plans").glob("*.profile.sb")}
    assert recorded == {path.stem for path in PLANS}
