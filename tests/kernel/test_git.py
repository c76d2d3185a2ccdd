"""Git, as it finds or does not find the repository through the walls."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.kernel.conftest import Workspace, shown

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


def test_a_new_repository_in_a_granted_directory_works(shop: Workspace) -> None:
    command = "cd out && git init -q -b main && echo x > f && git add f && git commit -qm new && git log --format=%s"
    assert shop.passes(command, read=["."], write=["out/"], env=IDENTITY) == "new\n"
