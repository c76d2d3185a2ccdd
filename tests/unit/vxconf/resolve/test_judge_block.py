"""A block is judged once for each platform that is asked about; later stages read what the file system may change."""

from __future__ import annotations

import functools
import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import sandbox
import vxconf
from sandbox.contract.errors import NotStarted
from sandbox.request import build, network_and_socket_refusals, write_grant_shapes
from sandbox.session.session import Session
from vxconf.cli.commands import explain
from vxconf.workspace.project import Refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Tree
    from vxconf.cli.arguments import Arguments

    Factory = Callable[[Tree], Path]

_BLOCK = (
    'exec.command = "x"\n'
    'exec.sandbox.allow = { read = ["*.md", "{a,b}.txt"], write = ["dist", "gen/*.py", "out/"],'
    ' network = ["a.test:443"], localBinding = [4000] }\n'
)
_TREE = {
    ".vx/workspace.toml": "",
    "shop/vx.toml": "[tasks.build]\n" + _BLOCK,
    "shop/a.txt": "",
    "shop/node_modules/money": "",
}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the calls of each judging function."""
    counts: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        made = getattr(owner, name)

        @functools.wraps(made)
        def counting(*args: Any, **given: Any) -> Any:
            counts[f"{owner.__name__.rpartition('.')[2]}.{name}"] += 1
            return made(*args, **given)

        monkeypatch.setattr(owner, name, counting)

    count(build, "_judged")
    count(write_grant_shapes, "judge")
    count(network_and_socket_refusals, "judge")
    return counts


@pytest.mark.skipif(sys.platform != "linux", reason="the run is one of Linux")
def test_a_run_judges_a_block_once(
    workspace_factory: Factory, counted: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(*_: object) -> None:
        raise NotStarted("nobody builds a sandbox here")

    monkeypatch.setattr(Session, "hand_over", nobody)
    monkeypatch.setattr("sandbox.linux.run.prepare.find_bwrap", lambda _path, _workspace: "/bin/true")
    task = vxconf.load(str(workspace_factory(_TREE))).task("shop#build")
    assert task.diagnostics() == ()
    request = task.request()
    with sandbox.Session() as session:
        session.declare((request,))
        result = session.run(request, command="true")
    assert [refusal.message for refusal in result.refusals] == ["nobody builds a sandbox here"]
    assert counted == {"build._judged": 1, "write_grant_shapes.judge": 1, "network_and_socket_refusals.judge": 1}


@pytest.mark.parametrize(("platform", "times"), [("linux", 1), ("all", 2)])
def test_an_explanation_judges_a_block_once_for_each_platform(
    workspace_factory: Factory, counted: Counter[str], monkeypatch: pytest.MonkeyPatch, platform: str, times: int
) -> None:
    monkeypatch.chdir(workspace_factory(_TREE) / "shop")
    words: Arguments = {
        "task": "build",
        "platform": platform,
        "format": "json",
        "why": None,
        "mechanism": True,
        "C": None,
    }
    assert explain.main(words) == 0
    assert counted == {
        "build._judged": times,
        "write_grant_shapes.judge": times,
        "network_and_socket_refusals.judge": times,
    }


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        ("shop/out", 'grant "{root}/shop/out/" passes through the link {root}/shop/out'),
        ("shop/gen", 'grant "{root}/shop/gen/*.py" passes through the link {root}/shop/gen'),
        ("shop", "the project {root}/shop is no longer a directory"),
    ],
)
def test_a_link_that_is_put_in_place_after_the_block_was_judged_is_refused(
    workspace_factory: Factory, moved: str, words: str
) -> None:
    root = workspace_factory({**_TREE, "shop/out/x": "", "shop/gen/x": "", "else/x": ""})
    task = vxconf.load(str(root)).task("shop#build")
    assert task.diagnostics() == ()
    os.rename(root / moved, root / "before")
    (root / moved).symlink_to(root / "else")
    with pytest.raises(Refused) as refused:
        task.request()
    found = [(one.code, one.message) for one in refused.value.diagnostics]
    assert ("VX314", words.format(root=root)) in found


def test_a_plan_refuses_what_the_file_system_has_put_in_the_way_of_a_request(workspace_factory: Factory) -> None:
    root = workspace_factory(_TREE)
    request = vxconf.load(str(root)).task("shop#build").request()
    (root / "shop/out").write_text("")
    (root / "shop/gen").symlink_to("/")
    with pytest.raises(sandbox.RequestRefused) as refused:
        sandbox.plan(request)
    assert [(one.field, one.code) for one in refused.value.refusals] == [
        ("allowWrite[1]", "VX314"),
        ("allowWrite[2]", "VX303"),
    ]
