"""The rules choose the workspace root in their order."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Tree, make_tree
from vxconf.workspace.root import RootFinder

if TYPE_CHECKING:
    from pathlib import Path

_MARKS: dict[str, Tree] = {
    "workspace.toml": {".vx/workspace.toml": ""},
    "pnpm": {"pnpm-workspace.yaml": "packages: []\n"},
    "package.json": {"package.json": '{"workspaces": ["apps/*"]}'},
    "uv": {"pyproject.toml": "[tool.uv.workspace]\nmembers = []\n"},
    "git": {".git/HEAD": ""},
}
_RULES = list(_MARKS)


def _found(start: Path, home: str = "/nowhere") -> tuple[str, str]:
    root = RootFinder(home).find(str(start))
    return root.path, root.rule


@pytest.mark.parametrize("rule", _RULES)
def test_each_mark_makes_a_workspace_of_what_is_below_it(tmp_path: Path, rule: str) -> None:
    root = make_tree(tmp_path.resolve() / "ws", _MARKS[rule])
    (root / "apps" / "shop").mkdir(parents=True)
    assert _found(root / "apps" / "shop") == (str(root), rule)
    assert _found(root) == (str(root), rule)


@pytest.mark.parametrize(("higher", "lower"), list(itertools.pairwise(_RULES)))
def test_a_higher_rule_wins_over_a_nearer_mark(tmp_path: Path, higher: str, lower: str) -> None:
    root = make_tree(tmp_path.resolve() / "ws", _MARKS[higher])
    make_tree(root / "inner", _MARKS[lower])
    assert _found(root / "inner") == (str(root), higher)


def test_of_two_marks_of_one_rule_the_nearest_wins(tmp_path: Path) -> None:
    root = make_tree(tmp_path.resolve() / "ws", _MARKS["git"])
    make_tree(root / "inner", _MARKS["git"])
    assert _found(root / "inner") == (str(root / "inner"), "git")


def test_a_worktree_has_a_file_for_a_mark(tmp_path: Path) -> None:
    root = make_tree(tmp_path.resolve() / "ws", {".git": "gitdir: elsewhere\n"})
    assert _found(root) == (str(root), "git")


@pytest.mark.parametrize(
    "tree",
    [
        {"package.json": '{"name": "workspaces"}'},
        {"package.json": '{"workspaces": 1}'},
        {"package.json": '{"workspaces": ['},
        {"package.json": None},
        {"pyproject.toml": '[project]\nname = "workspace"\n'},
        {"pyproject.toml": "[tool.uv.workspace\n"},
        {"pyproject.toml": 'tool = "uv.workspace"\n'},
    ],
)
def test_a_manifest_that_declares_no_workspace_is_no_mark(tmp_path: Path, tree: Tree) -> None:
    root = make_tree(tmp_path.resolve() / "ws", tree)
    project = make_tree(root / "p", {"vx.toml": ""})
    (project / "deep").mkdir()
    assert _found(project / "deep") == (str(project), "project")


def test_without_any_mark_the_nearest_project_is_the_workspace_else_the_directory_itself(tmp_path: Path) -> None:
    base = tmp_path.resolve()
    project = make_tree(base / "p", {"vx.json": "{}", "src/x": ""})
    assert _found(project / "src") == (str(project), "project")
    (base / "bare").mkdir()
    assert _found(base / "bare") == (str(base / "bare"), "project")


@pytest.mark.parametrize("rule", _RULES[1:])
@pytest.mark.parametrize("depth", [0, 1])
def test_a_mark_of_another_tool_at_home_or_above_it_is_passed_over(tmp_path: Path, rule: str, depth: int) -> None:
    home = tmp_path.resolve() / "users" / "mel"
    make_tree((home, home.parent)[depth], _MARKS[rule])
    project = make_tree(home / "code" / "p", {"vx.toml": ""})
    assert _found(project, str(home)) == (str(project), "project")


def test_a_workspace_file_at_home_is_refused_and_not_passed_over(tmp_path: Path) -> None:
    home = make_tree(tmp_path.resolve() / "mel", {".vx/workspace.toml": "", "code/vx.toml": ""})
    root = RootFinder(str(home)).find(str(home / "code"))
    assert root.rule == "workspace.toml"
    assert str(home) in root.problem


@pytest.mark.parametrize("inside", [".", ".."])
def test_a_project_in_home_itself_or_above_it_is_refused(tmp_path: Path, inside: str) -> None:
    home = tmp_path.resolve() / "users" / "mel"
    home.mkdir(parents=True)
    project = (home / inside).resolve()
    (project / "vx.toml").write_text("")
    root = RootFinder(str(home)).find(str(project))
    assert root.path == str(project)
    assert root.problem


def test_the_whole_file_system_is_never_a_workspace() -> None:
    root = RootFinder("/home/mel").find("/")
    assert root.path == "/"
    assert "whole file system" in root.problem


def test_an_ordinary_workspace_below_home_has_no_problem(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    root = make_tree(home / "ws", _MARKS["git"])
    assert RootFinder(str(home)).find(str(root)).problem == ""
