"""The law of what a check calls covered: it can be removed, and the task has the same access to everything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.contract.errors import RequestRefused
from sandbox.planning.linux_plan import plan
from sandbox.request.linked_packages import ListedProjects
from tests.property.strategies import FACTS, HOME, WORKSPACE, trees
from tests.support.memory_files import MemoryFiles
from vxconf.document.parse import parse
from vxconf.lint.grant_warnings import warnings_of_grants
from vxconf.resolve.judge_block import BlockSetting, JudgedBlock, judge_block
from vxconf.resolve.task_model_from_data import fill_defaults

if TYPE_CHECKING:
    from sandbox.planning.path_reach import Plan
    from vxconf.document.document import Document
    from vxconf.resolve.task_model import SandboxModel

PROJECT = f"{WORKSPACE}/a"
_PIECES = ("a", "b", "c", ".d", ".", "{a,b}", "*", ".vscode", ".git")
_WIDE = ("/", "~", "~/", "..", ".", "./", "../..", "/home/", WORKSPACE)
_grants = st.one_of(
    st.sampled_from(_WIDE),
    st.builds(
        lambda start, pieces, end: start + "/".join(pieces) + end,
        st.sampled_from(["", "", "", "./", "~/", f"{WORKSPACE}/", "../"]),
        st.lists(st.sampled_from(_PIECES), min_size=1, max_size=3),
        st.sampled_from(["", "/"]),
    ),
)
_lists = st.lists(_grants, max_size=4)


@st.composite
def _worlds(draw: st.DrawFn) -> MemoryFiles:
    files = draw(trees(WORKSPACE))
    return files if files.kind(PROJECT) is not None else MemoryFiles.of(f"{PROJECT}/a", f"{PROJECT}/b/c")


def _judged(
    block: dict[str, Any], files: MemoryFiles, nested: tuple[str, ...]
) -> tuple[SandboxModel, JudgedBlock, Document]:
    data = {"tasks": {"t": {"exec": {"command": "x", "sandbox": block}}}}
    run = fill_defaults(data).tasks[0].exec
    assert run is not None
    assert run.sandbox is not None
    document = parse(json.dumps(data).encode(), file="vx.json")
    where = BlockSetting(
        platform="linux",
        workspace=WORKSPACE,
        project=PROJECT,
        projects=ListedProjects(nested),
        cache_dir=None,
        files=files,
        facts=FACTS,
    )
    return run.sandbox, judge_block(run.sandbox, document, where), document


def _planned(judged: JudgedBlock, files: MemoryFiles) -> Plan | None:
    try:
        return plan(judged.bare, files) if judged.bare is not None else None
    except RequestRefused:
        return None


@settings(max_examples=80, deadline=None)
@given(_worlds(), _lists, _lists, st.booleans(), st.sampled_from([(), (f"{PROJECT}/b",), (f"{PROJECT}/.d",)]))
def test_an_entry_that_is_called_covered_can_be_removed_and_nothing_changes(
    files: MemoryFiles, read: list[str], write: list[str], hermetic: bool, nested: tuple[str, ...]
) -> None:
    block = {"allow": {"read": read, "write": write}, "hermetic": hermetic}
    model, judged, document = _judged(block, files, nested)
    found = warnings_of_grants(model, judged, document, files=files, stores=(), is_made=lambda _path: False)
    before = _planned(judged, files)
    asked = [*files.kinds, *(f"{path}/new" for path in files.kinds), HOME, "/", "/etc/x", f"{PROJECT}/.vscode/x"]
    for caution in found:
        if caution.code != "VX404":
            continue
        side, index = caution.path.rpartition(".")[2].rstrip("]").split("[")
        assert side in {"read", "write"}
        left = {"read": list(read), "write": list(write)}
        del left[side][int(index)]
        after = _planned(_judged({"allow": left, "hermetic": hermetic}, files, nested)[1], files)
        if before is None and after is None:
            continue
        assert before is not None
        assert after is not None
        for path in asked:
            assert after.access(path, files) == before.access(path, files), path
