"""The library: a workspace, its projects and its tasks."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import vxconf
from tests.conftest import REPOSITORY, Link, Tree, make_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Factory = Callable[[Tree], Path]

_TASK = '[tasks.build.exec]\ncommand = "make"\nsandbox = {}\n[tasks.plain.exec]\ncommand = "x"\n[tasks.all]\n'


@pytest.fixture
def root(workspace_factory: Factory) -> Path:
    return workspace_factory(
        {
            "apps/shop/vx.toml": 'name = "shop-app"\n' + _TASK,
            "apps/shop/package.json": '{"name": "@acme/shop"}',
            "libs/money/vx.json": '{"tasks": {"build": {"exec": {"command": "make"}}}}',
            "libs/money/pyproject.toml": '[project]\nname = "acme-money"\n',
            "libs/broken/vx.toml": "[tasks",
            "libs/odd#name/vx.toml": _TASK,
            "bare/x": "",
        }
    )


def test_importing_the_package_loads_none_of_its_rooms() -> None:
    program = "import sys, vxconf; print([n for n in sys.modules if n.startswith(('vxconf.', 'sandbox', 'typer'))])"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "['vxconf.version']\n"


def test_every_public_name_is_there_and_no_other() -> None:
    for name in vxconf.__all__:
        assert getattr(vxconf, name) is not None
        assert name in dir(vxconf)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = vxconf.nothing_of_the_kind


@pytest.mark.parametrize("start", [".", "apps/shop", "apps/shop/vx.toml", "bare/x", "gone"])
def test_a_workspace_is_loaded_from_anywhere_in_it(root: Path, start: str) -> None:
    workspace = vxconf.load(str(root / start))
    assert workspace.root == str(root)
    assert workspace.chosen_by.rule == "workspace.toml"
    assert [project.relative for project in workspace.projects] == [
        "apps/shop",
        "libs/broken",
        "libs/money",
        "libs/odd#name",
    ]


def test_a_bad_file_never_raises_and_leaves_the_others_alone(root: Path) -> None:
    workspace = vxconf.load(str(root))
    assert [diagnostic.code for diagnostic in workspace.diagnostics] == ["VX004"]
    assert "apps/shop#build" in [task.id for task in workspace.tasks]


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("apps/shop#build", "apps/shop#build"),
        ("./apps/shop/#build", "apps/shop#build"),
        ("@acme/shop#build", "apps/shop#build"),
        ("shop-app#build", "apps/shop#build"),
        ("acme-money#build", "libs/money#build"),
        ("libs/odd#name#build", "libs/odd#name#build"),
        ("plain", "apps/shop#plain"),
    ],
)
def test_a_task_is_found_by_every_name_of_its_project(root: Path, reference: str, found: str) -> None:
    assert vxconf.load(str(root / "apps" / "shop")).task(reference).id == found


@pytest.mark.parametrize(
    ("start", "reference", "near"),
    [
        ("apps/shop", "biuld", "build"),
        ("apps/shop", "BUILD", "build"),
        ("apps/shop", "apps/shpo#build", "apps/shop"),
        ("apps/shop", "@acme/shp#build", "@acme/shop"),
        ("apps/shop", "libs/money#buidl", "build"),
        ("libs/money", "plain", "apps/shop#plain"),
        ("bare", "build", "apps/shop#build"),
        ("bare", "bulid", "apps/shop#build"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(root: Path, start: str, reference: str, near: str) -> None:
    with pytest.raises(vxconf.Unknown) as caught:
        vxconf.load(str(root / start)).task(reference)
    assert near in caught.value.near
    assert near in str(caught.value)


def test_a_name_nobody_is_near_to_suggests_nothing(root: Path) -> None:
    with pytest.raises(vxconf.Unknown) as caught:
        vxconf.load(str(root / "apps/shop")).task("zzzzzzzz")
    assert caught.value.near == ()
    assert "did you mean" not in str(caught.value)


def test_a_name_two_projects_share_names_neither(workspace_factory: Factory) -> None:
    root = workspace_factory({"a/vx.toml": 'name = "same"\n' + _TASK, "b/vx.toml": 'name = "same"\n' + _TASK})
    with pytest.raises(vxconf.Unknown, match="a and b"):
        vxconf.load(str(root)).task("same#build")


def test_a_manifest_that_does_not_parse_gives_no_name(workspace_factory: Factory) -> None:
    root = workspace_factory(
        {"a/vx.toml": _TASK, "a/package.json": "{", "a/pyproject.toml": "[", "b/package.json": "[]"}
    )
    assert vxconf.load(str(root)).project("a").names == ()


def test_a_task_knows_what_it_runs_and_whether_it_has_a_block(root: Path) -> None:
    workspace = vxconf.load(str(root / "apps/shop"))
    build, plain, group = (workspace.task(name) for name in ("build", "plain", "all"))
    assert (build.command, build.sandboxed) == ("make", True)
    assert (plain.command, plain.sandboxed) == ("x", False)
    assert (group.command, group.sandboxed) == (None, False)
    assert build.resolve().project == str(root / "apps" / "shop")
    assert hash(build.resolve()) == hash(vxconf.load(str(root)).task("apps/shop#build").resolve())
    with pytest.raises(vxconf.Refused, match="no sandbox block"):
        plain.resolve()


def test_a_request_has_the_walls_of_its_project_and_workspace(workspace_factory: Factory) -> None:
    root = workspace_factory(
        {
            ".vx/workspace.toml": 'cacheDir = ".tc"\n',
            "p/vx.toml": _TASK,
            "p/sub/kit/vx.toml": "",
            "q/vx.toml": "",
            "p/alias": Link("sub"),
            ".git/HEAD": "",
        }
    )
    request = vxconf.load(str(root)).task("p#build").request()
    assert {wall.path for wall in request.walls} == {
        str(root / path) for path in (".git", ".vx/cache", ".vx/tmp", ".tc", "p/sub/kit")
    }


def test_a_request_shows_the_links_grants_are_spelled_through(workspace_factory: Factory) -> None:
    text = '[tasks.build.exec]\ncommand = "make"\nsandbox.allow.read = ["alias/"]\n'
    root = workspace_factory({"p/vx.toml": text, "p/real/x": "", "p/alias": Link("real")})
    task = vxconf.load(str(root)).task("p#build")
    assert (str(root / "p" / "alias"), "real") in task.request().links
    assert task.request().config == task.resolve()


def test_every_reason_is_in_the_refusal(workspace_factory: Factory) -> None:
    text = '[tasks.t.exec]\ncommand = "x"\nsandbox.allow.write = ["a.txt/", "b.txt/"]\n'
    root = workspace_factory({"p/vx.toml": text, "p/a.txt": "", "p/b.txt": ""})
    with pytest.raises(vxconf.Refused) as caught:
        vxconf.load(str(root)).task("p#t").resolve()
    assert [d.path for d in caught.value.diagnostics] == [
        "tasks.t.exec.sandbox.allow.write[0]",
        "tasks.t.exec.sandbox.allow.write[1]",
    ]
    assert "p/vx.toml:3" in str(caught.value)


def test_a_look_is_one_look_and_the_next_one_sees_what_changed(workspace_factory: Factory) -> None:
    root = workspace_factory({"p/vx.toml": _TASK})
    first = vxconf.load(str(root))
    assert len(first.tasks) == 3
    make_tree(root, {"p/vx.toml": ""})
    assert len(first.tasks) == 3
    assert vxconf.load(str(root)).tasks == ()


def test_the_workspaces_of_a_nested_root_are_its_own(workspace_factory: Factory) -> None:
    root = workspace_factory({"p/vx.toml": _TASK, "inner/.vx/workspace.toml": "", "inner/q/vx.toml": _TASK})
    assert [task.id for task in vxconf.load(str(root / "inner" / "q")).tasks] == ["q#all", "q#build", "q#plain"]


@pytest.mark.parametrize("reference", ["p#build", "named#build"])
def test_a_task_of_a_file_that_cannot_be_read_is_refused_for_what_is_wrong_with_it(
    workspace_factory: Factory, reference: str
) -> None:
    root = workspace_factory({"p/vx.json": '{"tasks": {},}', "p/package.json": '{"name": "named"}'})
    with pytest.raises(vxconf.Refused) as caught:
        vxconf.load(str(root)).task(reference)
    assert [(one.code, one.file) for one in caught.value.diagnostics] == [("VX004", "p/vx.json")]


def test_a_reference_into_a_file_that_cannot_be_read_leads_to_a_refused_task(workspace_factory: Factory) -> None:
    root = workspace_factory(
        {
            "lib/vx.toml": "oops",
            "lib/package.json": '{"name": "lib"}',
            "app/package.json": '{"dependencies": {"lib": "*"}}',
            "app/vx.toml": '[tasks.build]\ndependsOn = ["^build", "lib#test", "perhaps-lib#x"]\nexec.command = "x"\n',
        }
    )
    workspace = vxconf.load(str(root))
    found = list(workspace.graph.references(workspace.task("app#build")))
    assert [task.id for task in found] == ["lib#build", "lib#test", "lib#x"]
    assert all([one.code for one in task.diagnostics()] == ["VX004"] for task in found)
    told = [(one.code, one.message) for one in workspace.project("app").workspace.diagnostics if one.code == "VX312"]
    assert ("VX312", "the file that would have this task is refused") in told
