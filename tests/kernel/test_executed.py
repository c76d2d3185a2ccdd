"""Names that other programs execute: no task makes or changes one, whatever it may write."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Link, make_tree
from tests.kernel.conftest import Workspace, shown, violated
from tests.kernel.test_git import IDENTITY
from tests.support.observers import ANSWERING, NEEDS_MASK


def kept(shop: Workspace, tree: dict[str, str | Link | None]) -> dict[str, str | Link | None]:
    make_tree(shop.project, tree)
    return tree


@pytest.mark.parametrize("observer", ANSWERING, indirect=True)
@pytest.mark.parametrize(
    "name",
    [
        ".bashrc",
        ".MCP.json",
        "sub/.gitconfig",
        ".vscode/settings.json",
        ".claude/commands/x.md",
        ".git/hooks/pre-commit",
    ],
)
def test_an_existing_one_is_read_only_and_stays_where_it_is(shop: Workspace, name: str) -> None:
    kept(shop, {name: "mine\n", "sub/other": "x\n"})
    command = f"cat {name}; echo evil > {name}; rm -rf {name}; mv {name} gone; echo ok > sub/new"
    result = shop.run(command, read=["."], write=["./"])
    assert result.stdout == b"mine\n", shown(result)
    assert shop.text(name) == "mine\n"
    assert ("write", name) in violated(result, shop.project), shown(result)
    assert result.exit_code == 1
    assert "is a name other programs execute" in result.violations[0].line
    assert shop.text("sub/new") == "ok\n"


def test_its_directory_cannot_be_renamed_away(shop: Workspace) -> None:
    kept(shop, {".git/hooks/pre-commit": "mine\n", ".git/HEAD": "x\n", ".claude/agents/a.md": "mine\n"})
    command = (
        "mv .git g2 && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit;"
        "mv .claude c2 && mkdir -p .claude/agents && echo evil > .claude/agents/a.md"
    )
    result = shop.run(command, write=["./"])
    assert result.command_exit_code != 0, shown(result)
    assert shop.text(".git/hooks/pre-commit") == "mine\n"
    assert shop.text(".claude/agents/a.md") == "mine\n"
    assert not (shop.project / "g2").exists()


@pytest.mark.parametrize("observer", ANSWERING, indirect=True)
@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("echo evil > .bashrc", ".bashrc"),
        ("mkdir -p a/b/c/d/e && echo evil > a/b/c/d/e/.Zshrc", "a/b/c/d/e/.Zshrc"),
        ("mkdir .vscode", ".vscode"),
        ("mkdir -p .git/hooks", ".git/hooks"),
        ("mkdir .git && echo evil > .git/config", ".git/config"),
        ("echo 'gitdir: elsewhere' > .git", ".git"),
        ("ln -s lib .idea", ".idea"),
        ("ln lib/cart.py .profile", ".profile"),
        ("mkdir x && mv x .idea", ".idea"),
        ("mkdir -p x/hooks && mv x .git", ".git"),
        ("mkdir -p x/commands && mv x .claude", ".claude"),
        ("cp lib/cart.py .mcp.json", ".mcp.json"),
    ],
)
def test_making_one_at_any_depth_is_refused_at_the_call(shop: Workspace, command: str, path: str) -> None:
    result = shop.run(f"{command} || true", read=["."], write=["./"])
    assert result.command_exit_code == 0, shown(result)
    assert result.exit_code == 1
    assert ("write", path) in violated(result, shop.project), shown(result)
    assert not os.path.lexists(shop.project / path)
    assert result.fix is None or not result.fix.allow.write


@pytest.mark.parametrize("observer", ANSWERING, indirect=True)
def test_a_second_name_of_one_deep_down_is_refused(shop: Workspace) -> None:
    kept(shop, {"a/b/c/d/.bashrc": "mine\n"})
    result = shop.run("ln a/b/c/d/.bashrc x && echo evil > x", write=["./"])
    assert shop.text("a/b/c/d/.bashrc") == "mine\n"
    assert ("write", "a/b/c/d/.bashrc") in violated(result, shop.project), shown(result)


@pytest.mark.parametrize("observer", ANSWERING, indirect=True)
def test_one_deep_down_is_not_written_either(shop: Workspace) -> None:
    kept(shop, {"a/b/c/d/.git/hooks/post-checkout": "mine\n"})
    result = shop.run("echo evil > a/b/c/d/.git/hooks/post-checkout || true", write=["./"])
    assert shop.text("a/b/c/d/.git/hooks/post-checkout") == "mine\n"
    assert result.exit_code == 1


@pytest.mark.parametrize("observer", ANSWERING, indirect=True)
def test_a_link_of_such_a_name_counts_and_what_it_leads_to_stays(shop: Workspace) -> None:
    kept(shop, {".zshrc": Link("conf/rc"), "conf/rc": "mine\n"})
    result = shop.run("echo evil > .zshrc; echo evil > conf/rc; rm .zshrc; true", write=["./"])
    assert shop.text("conf/rc") == "mine\n"
    assert (shop.project / ".zshrc").is_symlink()
    assert result.exit_code == 1


def test_the_tasks_own_temporary_directory_holds_what_it_likes(shop: Workspace) -> None:
    command = 'cd "$TMPDIR" && git init -q . && git config user.name x && mkdir .vscode && echo x > .bashrc && echo ok'
    assert shop.passes(command, env=IDENTITY) == "ok\n"


def test_other_names_are_nobodys_business(shop: Workspace) -> None:
    command = "cd out && mkdir .github x.git .claude && touch .gitignore bashrc .bashrc.bak .claude/notes && mkdir .git"
    shop.passes(command, write=["out/"])


@pytest.mark.parametrize("deep", ["", "a/b/c/d/e/"])
def test_one_made_under_a_tracer_fails_the_task_and_is_set_aside(quick_shop: Workspace, deep: str) -> None:
    quick_shop.observer = "strace"
    result = quick_shop.run(f"mkdir -p ./{deep}.vscode && echo evil > ./{deep}.bashrc", write=["./"])
    assert (result.exit_code, result.command_exit_code) == (1, 0), shown(result)
    assert {("write", f"{deep}.bashrc"), ("write", f"{deep}.vscode")} <= set(violated(result, quick_shop.project))
    assert not os.path.lexists(quick_shop.project / f"{deep}.bashrc")
    assert not os.path.lexists(quick_shop.project / f"{deep}.vscode")


@pytest.mark.parametrize(
    ("command", "path"),
    [
        # nothing can be laid over a link
        ("rm .zshrc", ".zshrc"),
        ("mv .Vscode gone", ".Vscode"),
        ("rm a/b/c/d/e/.bashrc || true", "a/b/c/d/e/.bashrc"),
        ("mv a/b/c a/x || mv a/b/c/d/e a/b/c/x || echo evil > a/b/c/d/e/.bashrc || true", "a/b/c/d/e/.bashrc"),
        # whatever it leads to, it said where a repository is
        ("mv a/.git gone", "a/.git"),
        ("mv .claude gone || true", ".claude"),
        ("mkdir -p x/hooks .git/modules && mv x .git/modules/y", ".git/modules/y"),
    ],
)
def test_one_taken_away_or_brought_along_under_a_tracer_fails_the_task(
    quick_shop: Workspace, command: str, path: str
) -> None:
    tree: dict[str, str | Link | None] = {
        ".zshrc": Link("conf/rc"),
        ".Vscode": Link("conf"),
        "a/.git": Link("../x"),
        "a/b/c/d/e/.bashrc": "mine\n",
    }
    kept(quick_shop, {**tree, "conf/rc": "x\n", ".claude/commands/c.md": "mine\n"})
    quick_shop.observer = "strace"
    result = quick_shop.run(command, write=["./"])
    assert (result.exit_code, result.command_exit_code, result.trace) == (1, 0, "complete"), shown(result)
    assert ("write", path) in violated(result, quick_shop.project), shown(result)


def test_one_made_without_anybody_watching_is_set_aside(quick_shop: Workspace) -> None:
    quick_shop.observer = "none"
    result = quick_shop.run("mkdir -p .vscode && echo evil > .vscode/tasks.json && ln -s x .bashrc", write=["./"])
    assert result.exit_code == 1, shown(result)
    assert violated(result, quick_shop.project) == [("write", ".bashrc"), ("write", ".vscode")]
    assert not os.path.lexists(quick_shop.project / ".vscode")
    assert not os.path.lexists(quick_shop.project / ".bashrc")
    moved = result.violations[1].line.partition(" was moved to ")[2]
    assert moved.startswith(str(quick_shop.base / "temp"))
    assert (Path(moved) / "tasks.json").read_text(encoding="utf-8") == "evil\n"


# git


@pytest.fixture
def repository(shop: Workspace) -> Workspace:
    (shop.root / ".git" / "HEAD").unlink()
    for command in (["init", "-q", "-b", "main"], ["add", "apps", "libs"], ["commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=shop.root, check=True, env={**os.environ, **IDENTITY})
    hook = shop.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho hooked\n", encoding="utf-8")
    hook.chmod(0o755)
    return shop


def _log(root: Path) -> str:
    return subprocess.run(["git", "log", "--format=%s"], cwd=root, check=True, capture_output=True, text=True).stdout


def test_a_commit_works_where_the_repository_is_granted_and_its_hooks_and_settings_stay(repository: Workspace) -> None:
    (repository.project / "notes.md").write_text("changed\n", encoding="utf-8")
    grants = {"read": [".", "../../"], "write": ["../../.git/"]}
    command = "git commit -qam second && git branch other && git tag v1 && git log --format=%s"
    assert repository.passes(command, env=IDENTITY, **grants).endswith("second\nfirst\n")
    assert _log(repository.root) == "second\nfirst\n"
    before = (repository.root / ".git/config").read_text(encoding="utf-8")
    result = repository.run(
        "git config user.name evil; echo evil >> ../../.git/hooks/pre-commit", env=IDENTITY, **grants
    )
    assert (repository.root / ".git/config").read_text(encoding="utf-8") == before
    assert "evil" not in (repository.root / ".git/hooks/pre-commit").read_text(encoding="utf-8")
    assert result.exit_code != 0, shown(result)
    assert {v.kind for v in result.violations} == {"write"}, shown(result)


def test_settings_of_the_repository_may_be_changed_with_git_config(repository: Workspace) -> None:
    grants = {"read": [".", "../../"], "write": ["../../.git/"]}
    repository.passes("git config user.name mel && git config user.name", fields={"git_config": True}, **grants)
    result = repository.run("echo x > ../../.git/hooks/x", fields={"git_config": True}, **grants)
    assert {v.kind for v in result.violations} == {"write"}, shown(result)
    assert not (repository.root / ".git/hooks/x").exists()


_REPOSITORIES = (
    "mkdir -p made && cd made && git init -q one && cd one && git config user.name mel"
    " && git commit -qm x --allow-empty && cd .. && git clone -q one two && git clone -q --bare one three"
    " && git init -q --bare four && git -C three log --format=%s && git -C two log --format=%s"
)


def _made(shop: Workspace, write: str) -> None:
    assert shop.passes(_REPOSITORIES, write=[write], env=IDENTITY, fields={"git_config": True}) == "x\nx\n"
    left = {path.name for path in (shop.project / "made").rglob("*")}
    assert "hooks" not in left
    assert {"config", "HEAD", "three", "four"} <= left


def test_repositories_are_made_in_a_write_grant_with_git_config_and_get_no_hooks(shop: Workspace) -> None:
    _made(shop, "./")


@NEEDS_MASK
def test_repositories_are_made_below_a_granted_name_as_well(quick_shop: Workspace) -> None:
    _made(quick_shop, "made")


@pytest.mark.parametrize("command", ["git init -q new", "git clone -q . new", "git init -q --bare new"])
def test_without_it_the_refusal_says_so_and_nothing_of_it_is_obeyed(shop: Workspace, command: str) -> None:
    subprocess.run(["git", "init", "-q"], cwd=shop.project, check=True, env={**os.environ, **IDENTITY})
    result = shop.run(
        f"cd out; {command.replace('. new', '.. new')}; true",
        read=["."],
        write=["out/"],
    )
    assert result.exit_code == 1, shown(result)
    assert any("set gitConfig = true where the task makes repositories" in v.line for v in result.violations), shown(
        result
    )
    found = subprocess.run(
        ["git", "rev-parse", "--absolute-git-dir"], cwd=shop.project / "out", capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == str(shop.project / ".git")
    left = {path.name for path in (shop.project / "out").rglob("*")}
    assert not left & {"hooks", "config"} or "HEAD" not in left
