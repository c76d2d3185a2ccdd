"""Git, as it finds or does not find the repository through the walls."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.kernel.conftest import Workspace, shown

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "Mel",
    "GIT_AUTHOR_EMAIL": "mel@acme.test",
    "GIT_COMMITTER_NAME": "Mel",
    "GIT_COMMITTER_EMAIL": "mel@acme.test",
    "GIT_CONFIG_NOSYSTEM": "1",
}


@pytest.fixture
def repository(shop: Workspace) -> Workspace:
    """The workspace with one commit of everything."""
    (shop.root / ".git" / "HEAD").unlink()
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=shop.root, check=True, env={**os.environ, **IDENTITY})
    return shop


def _head(repository: Workspace) -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository.root, check=True, capture_output=True, text=True)
    return done.stdout


def test_a_grant_of_the_repository_makes_git_find_it(repository: Workspace) -> None:
    assert repository.passes("git rev-parse HEAD", read=[".", "../../.git"]) == _head(repository)
    assert repository.passes("git log --format=%s", read=[".", "../../.git"]) == "first\n"


def test_the_tasks_own_word_on_discovery_wins(repository: Workspace) -> None:
    for value in ("0", "false"):
        result = repository.run(
            "git rev-parse HEAD", read=[".", "../../.git"], env={"GIT_DISCOVERY_ACROSS_FILESYSTEM": value}
        )
        assert result.exit_code != 0, shown(result)
        assert b"not a git repository" in result.stderr


def test_without_a_grant_there_is_no_repository_and_no_variable(repository: Workspace) -> None:
    assert repository.passes('echo "${GIT_DISCOVERY_ACROSS_FILESYSTEM-unset}"', read=["."]) == "unset\n"
    result = repository.run("git rev-parse HEAD", read=["."])
    assert (result.exit_code, result.violations) == (128, ()), shown(result)
    assert b"not a git repository" in result.stderr
    assert b"dubious" not in result.stderr


def test_git_reads_a_repository_it_may_not_write(repository: Workspace) -> None:
    (repository.project / "notes.md").write_text("changed\n", encoding="utf-8")
    read = ["../../", "../../.git"]
    # a refresh of the index is an optional write, and git is told so
    command = "git status --short && git diff --name-only && git ls-files | wc -l && git show --stat --format=%s HEAD"
    printed = repository.passes(command, read=read, env={"GIT_OPTIONAL_LOCKS": "0"}).splitlines()
    # the cache is a wall, so what is committed of it is missing
    assert " M notes.md" in printed
    assert "first" in printed
    result = repository.run("git commit -qam second", read=read, env=IDENTITY)
    assert result.exit_code != 0
    assert _head(repository) == repository.passes("git rev-parse HEAD", read=read)


def test_a_new_repository_in_a_granted_directory_needs_its_settings_granted_and_has_no_hooks(shop: Workspace) -> None:
    commit = "echo x > f && git add f && git commit -qm new && git log --format=%s"
    command = f"cd out && git init -q -b main --template= && {commit}"
    granted = {"git_config": True}
    assert shop.passes(command, read=["."], write=["out/"], env=IDENTITY, fields=granted) == "new\n"
    result = shop.run("cd out && git init -q --template= again", write=["out/"], env=IDENTITY)
    assert result.exit_code != 0
    places = {os.path.relpath(v.path, shop.project / "out/again/.git") for v in result.violations}
    assert places <= {"config", "config.lock"}, shown(result)
    assert "config" in places, shown(result)


def outside(shop: Workspace, git: str) -> None:
    """Nothing of the repository is there, whichever way a task asks."""
    for command in ("git rev-parse HEAD", "git status", f"git --git-dir={git} log", f"cat {git}/HEAD"):
        result = shop.run(command, read=["../../", "."])
        assert result.command_exit_code != 0, shown(result)
        assert result.stdout == b"", shown(result)
    result = shop.run("git rev-parse HEAD", read=["../../"])
    assert (result.exit_code, result.violations) == (128, ()), shown(result)
    assert b"not a git repository" in result.stderr


def _git(*words: str, cwd: Path) -> None:
    environ = {**os.environ, **IDENTITY, "GIT_ALLOW_PROTOCOL": "file"}
    subprocess.run(["git", *words], cwd=cwd, check=True, env=environ, capture_output=True)


def _main(shop: Workspace) -> Path:
    """A repository beside the workspace, with one commit."""
    main = shop.base / "main"
    (main / "src").mkdir(parents=True)
    (main / "src/x").write_text("committed\n", encoding="utf-8")
    _git("init", "-q", "-b", "main", cwd=main)
    _git("add", ".", cwd=main)
    _git("commit", "-qm", "first", cwd=main)
    return main


def _moved(shop: Workspace, root: Path) -> Workspace:
    (root / "apps/shop").mkdir(parents=True)
    shop.root, shop.project = root, root / "apps/shop"
    return shop


def test_of_a_worktree_neither_the_shared_repository_nor_the_main_checkout_is_there(shop: Workspace) -> None:
    main = _main(shop)
    _git("worktree", "add", "-q", "../side", cwd=main)
    moved = _moved(shop, shop.base / "side")
    outside(moved, str(main / ".git"))
    result = moved.run(f"ls -A {main}; cat {main}/src/x")
    assert (result.stdout, result.violations) == (b"", ()), shown(result)
    grants = {"read": ["../../", "../../.git", f"{main}/.git"]}
    assert moved.passes("git log --format=%s", **grants) == "first\n"
    assert moved.passes(f"cat {main}/src/x", read=[f"{main}/src/"]) == "committed\n"


def test_of_a_submodule_the_repository_of_the_whole_is_not_there(shop: Workspace) -> None:
    main = _main(shop)
    whole = shop.base / "whole"
    whole.mkdir()
    _git("init", "-q", "-b", "main", cwd=whole)
    _git("submodule", "--quiet", "add", str(main), "sub", cwd=whole)
    _git("commit", "-qm", "sub", cwd=whole)
    moved = _moved(shop, whole / "sub")
    outside(moved, str(whole / ".git/modules/sub"))
    outside(moved, str(whole / ".git"))
    result = moved.run(f"cat {whole}/.gitmodules")
    assert result.stdout == b"", shown(result)


def test_of_a_workspace_below_the_top_level_the_rest_is_not_there(shop: Workspace) -> None:
    main = _main(shop)
    moved = _moved(shop, main / "pkgs")
    outside(moved, str(main / ".git"))
    assert moved.run(f"cat {main}/src/x").stdout == b""
    # what is granted of the rest is there, and the repository still is not
    assert moved.passes("cat ../../../src/x; ls -A ../../../", read=["../../../src"]) == "committed\npkgs\nsrc\n"
    assert moved.passes("git log --format=%s", read=["../../../.git", "../../"]) == "first\n"
    moved.passes("echo x > ../../../src/y && cat ../../../src/x", write=["../../../src/"])
    assert (main / "src/y").read_text(encoding="utf-8") == "x\n"


def test_a_repository_kept_apart_from_its_checkout_is_not_there(shop: Workspace) -> None:
    root = shop.base / "apart"
    moved = _moved(shop, root)
    data = shop.base / "data"
    data.mkdir()
    _git("init", "-q", f"--separate-git-dir={data}/ws.git", cwd=root)
    (data / "other").write_text("other\n", encoding="utf-8")
    outside(moved, str(data / "ws.git"))
    assert moved.passes(f"cat {data}/other; ls {data}") == "other\nother\n"


def test_a_checkout_that_holds_home_stays_open_but_for_its_repository(shop: Workspace) -> None:
    _git("init", "-q", cwd=shop.home)
    (shop.home / "dotfile").write_text("dot\n", encoding="utf-8")
    moved = _moved(shop, shop.home / "code/ws")
    outside(moved, str(shop.home / ".git"))
    assert moved.passes(f"cat {shop.home}/dotfile") == "dot\n"
