"""What other programs execute, planted under granted names and directories by a task that knows the rules."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from sandbox.machine.ask_facts import HostFiles
from sandbox.planning.operations import Origin, ReadOnlyRoot
from sandbox.planning.path_reach import Plan
from sandbox.request import find_protected_names
from sandbox.request.find_protected_names import FoundNames, existing
from sandbox.request.protected_names import ProtectedNames
from sandbox.scratch import names_left_behind, quarantine
from tests.conftest import make_tree
from tests.redteam.conftest import Box, shown, violated
from tests.support.observers import ANSWERING, NEEDS_MASK

if TYPE_CHECKING:
    from pathlib import Path

_REFUSED = {"EROFS", "ENOENT", "ENOTEMPTY", "EEXIST", "EXDEV", "EPERM"}
#: Below a directory that may be written, in a repository that lies deeper than what is looked through at the end.
_PLANTED = {"hooks", "config", "config.worktree", "commondir", ".vscode", "commands", ".profile", ".mcp.json"}


def planted(directory: Path) -> list[str]:
    """Every path of the host's that would be obeyed."""
    found = []
    for here, directories, files in os.walk(directory):
        obeyed = os.path.basename(here).lower() in (".git", ".claude") or "/.git/" in here.lower()
        for name in (*directories, *files):
            if (obeyed and name.lower() in _PLANTED) or "rc" in name.lower()[1:] or name.lower() == ".vscode":
                found.append(os.path.join(here, name))
            if name == ".git" and not os.path.isdir(os.path.join(here, name)):
                found.append(os.path.join(here, name))
    return found


def hold(told: dict[str, str]) -> None:
    assert len(told) > 25
    assert told.pop("moved into place", "done") in ("done", "ENOENT")
    assert {label: answer for label, answer in told.items() if answer not in _REFUSED} == {}


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
def test_nothing_is_planted_in_a_directory_grant(each_box: Box) -> None:
    told, result = each_box.attack("planting", "out", "-", 0)
    hold(told)
    assert planted(each_box.project / "out") == []
    assert (result.command_exit_code, result.exit_code) == (0, 1), shown(result)


@NEEDS_MASK
def test_nothing_is_planted_under_a_name_not_even_by_a_race(box: Box) -> None:
    box.write = ("dist", "stage.ok")
    (box.project / "dist").mkdir()
    told, result = box.attack("planting", "dist", "stage", 1.5)
    hold(told)
    assert planted(box.project) == []
    assert (result.command_exit_code, result.exit_code) == (0, 1), shown(result)


@NEEDS_MASK
def test_a_link_made_beside_a_name_hides_nothing(box: Box) -> None:
    """The host never has such a link: the mask keeps it apart."""
    box.write = ("out/", "stage.ok")
    (box.project / "out/a").mkdir()
    result = box.run(
        "ln -s out/a/.bashrc here; echo evil > here; mkdir made; ln -s $PWD/out/a made/there; mkdir made/there/.vscode;"
        " rm -r here made; true"
    )
    assert violated(result, box.project) == {("write", "out/a/.bashrc"), ("write", "out/a/.vscode")}, shown(result)
    assert os.listdir(box.project / "out/a") == []
    assert {violation.errno for violation in result.violations} == {"EROFS"}, shown(result)


def test_what_is_there_under_a_name_stays(box: Box) -> None:
    hook = box.project / "dist/a/b/.git/hooks/pre-commit"
    hook.parent.mkdir(parents=True)
    hook.write_text("mine\n")
    box.write = ("dist",)
    result = box.run(
        "cd dist/a/b; mv .git g2; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit;"
        "echo evil > g2/hooks/pre-commit; chmod +x .git/hooks/pre-commit; ln .git/hooks/pre-commit x && echo evil > x;"
        "rm -rf .git; true"
    )
    assert result.exit_code == 1, shown(result)
    assert hook.read_text() == "mine\n"
    assert os.listdir(box.project / "dist/a/b") == [".git"]


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
def test_a_directory_too_deep_to_be_named_hides_nothing(each_box: Box) -> None:
    told, result = each_box.attack("deep")
    assert told == {"mkdir": errno.EACCES}, shown(result)
    assert (result.exit_code, result.trace) == (1, "partial"), shown(result)


def test_what_is_set_aside_is_never_reached_through_a_link(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another task that may write there swaps a directory for a link once what it holds was found."""
    root = make_tree(base / "ws", {"out/a/.bashrc": "planted\n", "out/b/.vscode/x": "planted\n"})
    mine = make_tree(base / "mine", {".bashrc": "mine\n", ".vscode/x": "mine\n"})
    look = existing

    def swapped(*arguments: Any, **options: Any) -> FoundNames:
        found = look(*arguments, **options)
        for name in "ab":
            os.rename(root / "out" / name, root / "out" / f"{name}-away")
            os.symlink(mine, root / "out" / name)
        return found

    plan = Plan(
        operations=(ReadOnlyRoot(path="/", origin=Origin(reason="a test")),),
        workspace=str(root),
        project=str(root),
        executed=ProtectedNames(roots=(str(root / "out"),)),
    )
    shelf = quarantine.Quarantine(str(base / "temp"))
    was = names_left_behind.before(plan, HostFiles())._replace(names={}, bare={})
    monkeypatch.setattr(names_left_behind, "existing", swapped)
    told = names_left_behind.set_aside(plan, was, shelf=shelf)
    assert [violation.path for violation in told] == [str(root / "out/a/.bashrc"), str(root / "out/b/.vscode")]
    assert all("could not be moved away" in violation.line for violation in told)
    assert (root / "out/a-away/.bashrc").read_text() == (root / "out/b-away/.vscode/x").read_text() == "planted\n"
    assert (mine / ".bashrc").read_text() == (mine / ".vscode/x").read_text() == "mine\n"


_LINKED = {".git/worktrees/x/HEAD": "ref: refs/heads/x\n", ".git/worktrees/x/commondir": "../..\n", ".git/config": "\n"}
#: Each has git take the settings and the hooks of the linked checkout `x` or `y` from elsewhere.
_POINTED = {
    "written": "echo ../../evil > .git/worktrees/x/commondir",
    "replaced": "cd .git/worktrees/x; echo ../../evil > c; mv c commondir",
    "taken away first": "cd .git/worktrees/x; rm commondir; ln -s ../../evil/c commondir",
    "another directory": "cd .git/worktrees; mv x z; cp -r z x; echo ../../evil > x/commondir",
    "all of them": "cd .git; mv worktrees w; cp -r w worktrees; echo ../../evil > worktrees/x/commondir",
    "a new one": "cd .git/worktrees; mkdir y; echo x > y/HEAD; echo ../../evil > y/commondir",
    "a new one in capitals": "cd .git/worktrees; mkdir -p ../WorkTrees/y; echo x > ../WorkTrees/y/CommonDir",
}


@pytest.mark.parametrize("attack", _POINTED.values(), ids=_POINTED)
@pytest.mark.parametrize("protected", [True, False])
def test_no_linked_checkout_is_pointed_at_other_settings(
    box: Box, attack: str, monkeypatch: pytest.MonkeyPatch, *, protected: bool
) -> None:
    """Nobody watches here; where settings may be written, as this may then as well, the same attack succeeds."""
    make_tree(box.project, dict(_LINKED))
    box.write, box.observer = (".git/",), "none"
    if not protected:
        monkeypatch.setattr(find_protected_names, "ELSEWHERE", "")
        monkeypatch.setattr(find_protected_names, "_LAST", find_protected_names._LAST - {"commondir"})
    result = box.run(attack)
    monkeypatch.undo()
    found = {
        str(path.relative_to(box.project)): path.read_text()
        for path in (box.project / ".git").rglob("*")
        if path.name.lower() == "commondir" and path.is_file()
    }
    assert (found == {".git/worktrees/x/commondir": "../..\n"}) is protected, shown(result)


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
def test_a_task_that_points_a_linked_checkout_elsewhere_is_refused(each_box: Box) -> None:
    make_tree(each_box.project, dict(_LINKED))
    each_box.write = (".git/",)
    result = each_box.run("; ".join(f"({attack})" for attack in (_POINTED["written"], _POINTED["a new one"], "true")))
    assert violated(result, each_box.project) >= {
        ("write", ".git/worktrees/x/commondir"),
        ("write", ".git/worktrees/y/commondir"),
    }, shown(result)
    assert (result.command_exit_code, result.exit_code) == (0, 1), shown(result)
