"""The import contracts of pyproject.toml hold, and each one breaks when a violation is planted."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
    "contracts"
]

#: contract id -> (file, line to add) pairs, each of which has to break it alone
PLANTED = {
    "packages": [("sandbox/paths.py", "import vxconf")],
    "engine-rooms": [
        ("sandbox/paths.py", "import sandbox.request.build"),
        ("sandbox/contract.py", "import sandbox.contract.errors"),
        ("sandbox/nowhere.py", ""),
    ],
    "engine-pure": [
        ("sandbox/globs.py", "import os"),
        ("sandbox/planning/tree.py", "import subprocess"),
        ("sandbox/contract.py", "import socket"),
    ],
    "engine-codecs": [
        ("sandbox/linux/fuse.py", "import socket"),
        ("sandbox/linux/bpf.py", "import sandbox.linux.kernel.kernel_calls"),
    ],
    "engine-light": [("sandbox/linux/warden.py", "import asyncio"), ("sandbox/planning/ops.py", "import tempfile")],
    "engine-alone": [("sandbox/session.py", "import typer"), ("sandbox/host.py", "import platformdirs")],
    "service-rooms": [("vxconf/model.py", "import vxconf.resolve.normalize"), ("vxconf/nowhere.py", "")],
    "service-pure": [("vxconf/document.py", "import os"), ("vxconf/normalize.py", "import subprocess")],
    "service-contract": [("vxconf/normalize.py", "import sandbox.session.session")],
    "service-typer": [("vxconf/report.py", "import typer")],
}


def _lint(directory: Path, contract: str) -> subprocess.CompletedProcess[str]:
    command = "from importlinter.cli import lint_imports_command as lint; lint()"
    return subprocess.run(
        [sys.executable, "-c", command, "--no-cache", "--contract", contract],
        cwd=directory,
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in ("vxconf", "sandbox"):
        shutil.copytree(REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_contract_has_something_that_breaks_it() -> None:
    assert [contract["id"] for contract in CONTRACTS] == list(PLANTED)


@pytest.mark.parametrize("contract", PLANTED)
def test_the_contract_holds_and_breaks_when_a_violation_is_planted(contract: str, copy: Path) -> None:
    clean = _lint(copy, contract)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    for name, line in PLANTED[contract]:
        file = copy / name
        before = file.read_text(encoding="utf-8") if file.exists() else None
        file.write_text(f"{before or ''}\n{line}\n", encoding="utf-8")
        planted = _lint(copy, contract)
        assert planted.returncode == 1, f"{line!r} in {name} passed"
        assert "BROKEN" in planted.stdout
        if before is None:
            file.unlink()
        else:
            file.write_text(before, encoding="utf-8")
