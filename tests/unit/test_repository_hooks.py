"""The hook others use, through the real pre-commit, in a real repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

REPOSITORY = Path(__file__).resolve().parents[2]

#: What a clone at a tag would hand to pre-commit; uncommitted changes are part of the test.
_OFFERED = (".pre-commit-hooks.yaml", "pyproject.toml", "README.md", "LICENSE", "vxconf", "sandbox", "schema")

_HEALTHY = '[tasks.build.exec]\ncommand = "true"\n\n[tasks.build.exec.sandbox.allow]\nread = ["src/"]\n'
_BROKEN = '[tasks.build.exec]\ncommand = "true"\n\n[tasks.build.exec.sandbox.allow]\nreads = ["src/"]\n'


def _git(directory: Path, *arguments: str, env: Mapping[str, str]) -> str:
    done = subprocess.run(["git", *arguments], cwd=directory, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON", "PRE_COMMIT"))}
    who = {f"GIT_{role}_{what}": "test@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {**kept, **who, "GIT_CONFIG_GLOBAL": os.devnull, "PRE_COMMIT_HOME": str(tmp_path / "pre-commit")}


@pytest.fixture
def offered(tmp_path: Path, environment: Mapping[str, str]) -> tuple[Path, str]:
    """A git repository of this project as it is now, and its commit."""
    target = tmp_path / "vxconf"
    target.mkdir()
    for name in _OFFERED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target / name)
    _git(target, "init", "--quiet", env=environment)
    _git(target, "add", "--all", env=environment)
    _git(target, "commit", "--quiet", "--message", "as it is", env=environment)
    return target, _git(target, "rev-parse", "HEAD", env=environment)


@pytest.mark.registry
@pytest.mark.timeout(300)
@pytest.mark.slow
def test_the_hook_passes_healthy_files_and_names_the_line_of_a_broken_one(
    tmp_path: Path, offered: tuple[Path, str], environment: Mapping[str, str]
) -> None:
    project, revision = offered
    theirs = tmp_path / "theirs"
    (theirs / "apps" / "shop" / "src").mkdir(parents=True)
    (theirs / "apps" / "shop" / "src" / "cart.py").touch()
    (theirs / "notes.toml").write_text("not = 'ours to judge'\n", encoding="utf-8")
    (theirs / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {project}\n    rev: {revision}\n    hooks:\n      - id: vxconf-check\n", encoding="utf-8"
    )
    config = theirs / "apps" / "shop" / "vx.toml"
    config.write_text(_HEALTHY, encoding="utf-8")
    _git(theirs, "init", "--quiet", env=environment)
    _git(theirs, "add", "--all", env=environment)

    def hook() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", "--all-files", "--verbose"],
            cwd=theirs,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
        )

    healthy = hook()
    assert healthy.returncode == 0, healthy.stdout + healthy.stderr
    assert "Passed" in healthy.stdout

    config.write_text(_BROKEN, encoding="utf-8")
    _git(theirs, "add", "--all", env=environment)
    broken = hook()
    assert broken.returncode == 1, broken.stdout + broken.stderr
    assert "apps/shop/vx.toml:5:1: error" in broken.stdout
    assert "reads" in broken.stdout
    assert "notes.toml" not in broken.stdout
