"""Copies of the workspaces in `fixtures`, installed by real package managers, and `vxconf` run in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKSPACES = Path(__file__).resolve().parents[2] / "fixtures" / "workspaces"

PNPM = "pnpm@10.34.9"
UV = "uv==0.13.9"
PYTEST = "pytest==8.4.2"
# the last that runs on Debian 12's node 18
ESLINT = "eslint@9.39.1"
_ESLINT_NODE = (18, 18)

#: What running a workspace leaves in it, and no copy takes along.
_LEFT = shutil.ignore_patterns("node_modules", "__pycache__", ".venv")


@dataclass(frozen=True, slots=True)
class Installed:
    """A copy that a test may write in."""

    root: Path

    def vxconf(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One run of the command in the root."""
        return subprocess.run(
            [sys.executable, "-m", "vxconf", *arguments],
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            check=False,
            capture_output=True,
            text=True,
            timeout=100,
        )

    def run(self, task: str, *arguments: str) -> tuple[dict[str, Any], str]:
        """The JSON result of one task and what its command printed."""
        done = self.vxconf("run", task, "--format", "json", *arguments)
        try:
            result = json.loads(done.stdout)
        except ValueError:
            pytest.fail(f"vxconf run {task} exited {done.returncode}: {done.stdout}{done.stderr}")
        assert done.returncode == result["exitCode"], done.stderr
        return result, done.stderr

    def passes(self, task: str, *arguments: str) -> str:
        """Runs a task that has to pass, walled in and seen; what its command printed."""
        result, printed = self.run(task, *arguments)
        assert (result["exitCode"], result["violations"]) == (0, []), f"{printed}\n{result}"
        assert result["sandboxed"] is True
        assert result["trace"] == "complete", result["traceReason"]
        assert (result["fix"], result["hints"]) == (None, []), result
        return printed

    def edit(self, file: str, old: str, new: str) -> None:
        """Replaces text that is in a file exactly once."""
        path = self.root / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {file}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    @contextmanager
    def edited(self, file: str, old: str, new: str) -> Iterator[None]:
        """The same for as long as the context lasts."""
        path = self.root / file
        before = path.read_bytes()
        self.edit(file, old, new)
        try:
            yield
        finally:
            path.write_bytes(before)

    def listed(self) -> set[str]:
        """Every name below the root."""
        return {
            os.path.relpath(os.path.join(directory, name), self.root)
            for directory, directories, files in os.walk(self.root)
            for name in (*directories, *files)
        }


def paths(result: dict[str, Any], kind: str) -> set[str]:
    """The paths of a result's violations of one kind."""
    return {violation["path"] for violation in result["violations"] if violation["kind"] == kind}


def did(*command: str, cwd: Path, **variables: str) -> str:
    """Output of a program that has to succeed."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        check=False,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def fresh(name: str, target: Path) -> Installed:
    """A copy of a workspace, not yet installed, in a directory of its name below `target`."""
    shutil.copytree(WORKSPACES / name, target / name, symlinks=True, ignore=_LEFT)
    return Installed((target / name).resolve())


def npm_ci(target: Path) -> Installed:
    """The TypeScript workspace as `npm ci` makes it."""
    made = fresh("ts-monorepo", target)
    did("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=made.root)
    return made


def pnpm_install(target: Path) -> Installed:
    """The TypeScript workspace as pnpm makes it, its store and pnpm itself beside it."""
    made = fresh("ts-monorepo", target)
    tools = target / "pnpm"
    tools.mkdir()
    did("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(tools), PNPM, cwd=tools)
    program = str(tools / "node_modules" / "pnpm" / "bin" / "pnpm.cjs")
    options = ("--frozen-lockfile", "--ignore-scripts", "--store-dir", str(target / "store"))
    did("node", program, "install", *options, cwd=made.root, CI="1")
    return made


def eslint(target: Path) -> Path:
    """The `node_modules` that npm makes of eslint alone; skips where npm or node is missing or too old."""
    for program in ("npm", "node"):
        if shutil.which(program) is None:
            pytest.skip(f"not installed: {program}")
    (target / "package.json").write_text('{"name": "shop", "private": true}\n', encoding="utf-8")
    version = did("node", "--version", cwd=target).strip()
    if tuple(map(int, version.lstrip("v").split(".")[:2])) < _ESLINT_NODE:
        pytest.skip(f"{ESLINT} needs node {'.'.join(map(str, _ESLINT_NODE))}, this is {version}")
    did("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", ESLINT, cwd=target)
    return target / "node_modules"


def uv_sync(target: Path) -> Installed:
    """The Python workspace as uv makes it: its members installed to be edited, and pytest, in `.venv` at the root."""
    made = fresh("py-project", target)
    tools = target / "uv"
    did(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tools), UV, cwd=target)
    base = os.path.realpath(sys.executable)
    variables = {"UV_CACHE_DIR": str(target / "cache"), "UV_PYTHON_DOWNLOADS": "never", "UV_NO_CONFIG": "1"}
    program = str(tools / "bin" / "uv")
    did(program, "sync", "--locked", "--offline", "--python", base, cwd=made.root, **variables)
    did(program, "pip", "install", "--python", ".venv", PYTEST, cwd=made.root, **variables)
    return made


def linked_copy(installed: Path, target: Path) -> Installed:
    """A copy of an installed TypeScript workspace; its packages are the same files under another name."""
    name = installed.name
    shutil.copytree(installed / "node_modules", target / name / "node_modules", symlinks=True, copy_function=os.link)
    shutil.copytree(installed, target / name, symlinks=True, ignore=_LEFT, dirs_exist_ok=True)
    return Installed((target / name).resolve())
