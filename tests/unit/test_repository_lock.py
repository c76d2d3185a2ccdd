"""The locks in requirements/ hold what `pyproject.toml` asks for, and `scripts/lock` notices when they do not."""

from __future__ import annotations

import copy
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "scripts" / "lock"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
_LOCK = runpy.run_path(str(SCRIPT))
LOCKS = sorted(_LOCK["LOCKS"])

_PIN = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>\S+)(?: ; [^\\]+)? \\\n(?P<hashes>(?: {4}--hash=.*\n)+)", re.MULTILINE
)
_HASH = re.compile(r" {4}--hash=sha256:[0-9a-f]{64}(?: \\)?")


def _pins(name: str) -> dict[str, str]:
    """Package -> version."""
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    return {canonicalize_name(pin["name"]): pin["version"] for pin in _PIN.finditer(text)}


def _group(name: str) -> list[str]:
    asked: list[str] = []
    for one in PROJECT["dependency-groups"][name]:
        asked += _group(one["include-group"]) if isinstance(one, dict) else [one]
    return asked


def _asked(group: str) -> list[Requirement]:
    own = [] if group == "lock" else PROJECT["project"]["dependencies"]
    return [Requirement(one) for one in (*own, *_group(group))]


def test_the_locks_are_in_step_with_the_project() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def _with_another_dependency(project: dict[str, Any]) -> None:
    project["project"]["dependencies"].append("example")


def _with_another_bound(project: dict[str, Any]) -> None:
    project["project"]["dependencies"][0] += ",!=99"


def _with_another_tool(project: dict[str, Any]) -> None:
    project["dependency-groups"]["lint"].append("example")


def _with_another_python(project: dict[str, Any]) -> None:
    project["project"]["requires-python"] = ">=3.10"


@pytest.mark.parametrize(
    "changed", [_with_another_dependency, _with_another_bound, _with_another_tool, _with_another_python]
)
def test_what_the_project_asks_for_besides_leaves_every_lock_behind(changed: Any) -> None:
    project = copy.deepcopy(PROJECT)
    assert _LOCK["stale"](project, REPOSITORY) == []
    changed(project)
    assert sorted(_LOCK["stale"](project, REPOSITORY)) == LOCKS


def test_a_lock_that_is_missing_or_was_made_with_other_options_is_named(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "requirements", tmp_path / "requirements")
    (tmp_path / "requirements" / "dev.txt").unlink()
    shutil.copy(tmp_path / "requirements" / "uv.txt", tmp_path / "requirements" / "lowest.txt")
    assert sorted(_LOCK["stale"](PROJECT, tmp_path)) == ["requirements/dev.txt", "requirements/lowest.txt"]


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_is_locked_by_version_and_hash_and_by_no_address(name: str) -> None:
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("-") and not _HASH.fullmatch(line)]
    left = _PIN.sub("", text)
    assert not [line for line in left.splitlines() if not line.lstrip().startswith("#")]
    assert _pins(name)


@pytest.mark.parametrize(("name", "group"), [("dev", "dev"), ("lowest", "test"), ("uv", "lock")])
def test_whatever_the_project_asks_for_is_locked_within_its_range(name: str, group: str) -> None:
    pins = _pins(f"requirements/{name}.txt")
    asked = _asked(group)
    assert asked
    assert not [
        str(one)
        for one in asked
        if (version := pins.get(canonicalize_name(one.name))) is None or not one.specifier.contains(version)
    ]


def test_the_lowest_versions_are_those_that_are_allowed_and_no_higher() -> None:
    pins = _pins("requirements/lowest.txt")
    for one in _asked("test"):
        (bound,) = (clause for clause in one.specifier if clause.operator == ">=")
        allowed, locked = Version(bound.version), Version(pins[canonicalize_name(one.name)])
        # 2.5 allows 2.5.0, and 2.5.1 where there was no 2.5.0
        assert locked.release[: len(allowed.release)] == allowed.release, str(one)
