"""A search finds the projects of a workspace, and only those."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Link, Tree, make_tree
from vxconf.workspace.find_projects import ProjectFinder, TooManyDirectories
from vxconf.workspace.members import member_globs
from vxconf.workspace.root import RootFinder

if TYPE_CHECKING:
    from collections.abc import Callable


def _projects(root: Path, *, bound: int = 1000) -> ProjectFinder:
    return ProjectFinder(RootFinder("/nowhere").find(str(root)), bound=bound)


def _relative(root: Path, found: tuple[str, ...]) -> list[str]:
    return [str(Path(path).relative_to(root)) for path in found]


def test_a_directory_with_a_task_file_is_a_project_and_the_root_can_be_one(
    workspace_factory: Callable[[Tree], Path],
) -> None:
    root = workspace_factory({"vx.toml": "", "apps/shop/vx.toml": "", "libs/money/vx.json": "{}", "libs/bare/x": ""})
    assert _relative(root, _projects(root).all()) == [".", "apps/shop", "libs/money"]


def test_hidden_dependency_and_virtual_environment_directories_and_links_are_not_searched(
    workspace_factory: Callable[[Tree], Path],
) -> None:
    root = workspace_factory(
        {
            "a/vx.toml": "",
            ".hidden/vx.toml": "",
            "node_modules/b/vx.toml": "",
            "a/node_modules/b/vx.toml": "",
            "env/pyvenv.cfg": "",
            "env/vx.toml": "",
            "env/lib/vx.toml": "",
            "__pycache__/vx.toml": "",
            "linked": Link("a"),
            "loop": Link("."),
        }
    )
    assert _relative(root, _projects(root).all()) == ["a"]


def test_nested_projects_are_those_strictly_inside_whether_or_not_the_whole_was_searched(
    workspace_factory: Callable[[Tree], Path],
) -> None:
    root = workspace_factory(
        {"a/vx.toml": "", "a/b/vx.toml": "", "a/b/c/vx.toml": "", "a0/vx.toml": "", "a-/vx.toml": ""}
    )
    alone = _projects(root)
    assert _relative(root, alone.below(str(root / "a"))) == ["a/b", "a/b/c"]
    whole = _projects(root)
    whole.all()
    assert whole.below(str(root / "a")) == alone.below(str(root / "a"))
    assert whole.below(str(root / "a0")) == ()


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({".vx/workspace.toml": 'projects = ["apps/*", "!apps/old"]\n'}, ["apps/bare", "apps/py", "apps/shop"]),
        ({"pnpm-workspace.yaml": "packages:\n  - 'apps/*'\n  - '!apps/old'\n"}, ["apps/shop"]),
        ({"pnpm-workspace.yaml": "packages: ['**']\n"}, ["apps/old", "apps/shop"]),
        ({"package.json": '{"workspaces": ["./apps/shop/"]}'}, ["apps/shop"]),
        ({"package.json": '{"workspaces": {"packages": ["apps/{shop,old}"]}}'}, ["apps/old", "apps/shop"]),
        ({"pyproject.toml": '[tool.uv.workspace]\nmembers = ["apps/*"]\nexclude = ["apps/shop"]\n'}, ["apps/py"]),
    ],
)
def test_a_workspace_names_projects_by_globs_a_tools_members_where_its_manifest_is(
    tmp_path: Path, tree: Tree, expected: list[str]
) -> None:
    root = make_tree(
        tmp_path.resolve() / "ws",
        {
            **tree,
            "apps/shop/package.json": "{}",
            "apps/old/package.json": "{}",
            "apps/py/pyproject.toml": "",
            "apps/bare/x": "",
        },
    )
    assert _relative(root, _projects(root).all()) == expected


def test_a_workspace_directory_with_wildcards_in_its_name_is_taken_literally(tmp_path: Path) -> None:
    root = make_tree(tmp_path.resolve() / "w[1]*", {".vx/workspace.toml": 'projects = ["apps/*"]', "apps/a/x": ""})
    assert _relative(root, _projects(root).all()) == ["apps/a"]


def test_a_workspace_larger_than_the_bound_is_refused_and_not_half_searched(
    workspace_factory: Callable[[Tree], Path],
) -> None:
    root = workspace_factory({f"d{index}/x": "" for index in range(12)})
    assert _projects(root, bound=13).all() == ()
    with pytest.raises(TooManyDirectories):
        _projects(root, bound=12).all()


def test_the_enclosing_project_is_the_nearest_within_the_workspace(workspace_factory: Callable[[Tree], Path]) -> None:
    root = workspace_factory({"a/vx.toml": "", "a/b/vx.toml": "", "a/b/src/x": "", "c/x": ""})
    projects = _projects(root)
    assert projects.enclosing(str(root / "a" / "b" / "src")) == str(root / "a" / "b")
    assert projects.enclosing(str(root / "a" / "gone" / "deep")) == str(root / "a")
    assert projects.enclosing(str(root / "c")) is None
    assert projects.enclosing("/etc") is None


@pytest.mark.parametrize(
    ("tree", "code"),
    [
        ({".vx/workspace.toml": 'projects = ["../other"]\n'}, "VX308"),
        ({".vx/workspace.toml": 'projects = ["/etc"]\n'}, "VX308"),
        ({"pnpm-workspace.yaml": "packages: &x [a]\n"}, "VX102"),
        ({"pnpm-workspace.yaml": b"packages: [\xff]\n"}, "VX003"),
        ({"package.json": '{"workspaces": [1]}'}, "VX102"),
        ({"pyproject.toml": "[tool.uv.workspace]\nmembers = [1]\n"}, "VX102"),
        ({".vx/workspace.toml": None}, "VX001"),
    ],
)
def test_a_workspace_file_that_cannot_be_used_says_why(tmp_path: Path, tree: Tree, code: str) -> None:
    root = make_tree(tmp_path.resolve() / "ws", tree)
    found = member_globs(RootFinder("/nowhere").find(str(root)))
    assert (found.code, bool(found.problem), bool(found.help)) == (code, True, True)


def test_globs_of_other_tools_that_leave_the_root_are_left_out(tmp_path: Path) -> None:
    root = make_tree(tmp_path.resolve() / "ws", {"package.json": '{"workspaces": ["../x", "a/../../b", "c"]}'})
    assert member_globs(RootFinder("/nowhere").find(str(root))).include == ("c",)
