"""Runs a task on a machine that knows more names: its own /etc/hosts, in a mount namespace of the test's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_INSIDE = """
import json, subprocess, sys
given = json.loads(sys.stdin.read())
subprocess.run(["mount", "--bind", given["hosts"], "/etc/hosts"], check=True)
sys.path.insert(0, given["repository"])
from sandbox import ResolvedSandboxConfig, Session
fields = {name: tuple(value) if isinstance(value, list) else value for name, value in given["fields"].items()}
with Session() as session:
    config = ResolvedSandboxConfig(
        platform="linux", workspace=given["root"], project=given["project"], **fields
    )
    result = session.run(
        session.request(config, workspace_root=given["root"]), command=given["command"], timeout=90, env=given["env"]
    )
print(json.dumps({
    "exit_code": result.exit_code,
    "command_exit_code": result.command_exit_code,
    "targets": [v.target for v in result.violations],
    "lines": [v.line for v in result.violations],
    "hints": [hint.line for hint in result.hints],
    "stdout": result.stdout.decode(errors="replace"),
    "stderr": result.stderr.decode(errors="replace"),
    "trace": result.trace,
    "refusals": [str(r) for r in result.refusals],
}))
"""


@dataclass(frozen=True)
class Told:
    """What became of the task."""

    exit_code: int
    command_exit_code: int | None
    targets: list[str]
    lines: list[str]
    hints: list[str]
    stdout: str
    stderr: str
    trace: str
    refusals: list[str]


def run_knowing(
    hosts: Mapping[str, str],
    command: str,
    base: Path,
    *,
    env: Mapping[str, str] | None = None,
    **fields: Any,
) -> Told:
    """Run `command` in a new project below `base`, where each name of `hosts` has an address.

    Root enters a mount namespace alone; anybody else a user namespace as well, in which the sandbox is built then.
    """
    project = base / "ws" / "project"
    project.mkdir(parents=True, exist_ok=True)
    (base / "temp").mkdir(exist_ok=True)
    known = base / "hosts"
    known.write_text("127.0.0.1 localhost\n::1 localhost\n" + "".join(f"{a} {n}\n" for n, a in hosts.items()))
    given = {
        "hosts": str(known),
        "repository": str(REPOSITORY),
        "root": str(base / "ws"),
        "project": str(project),
        "command": command,
        "env": dict(env or {}),
        "fields": fields,
    }
    enter = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    done = subprocess.run(
        [*enter, sys.executable, "-c", _INSIDE],
        input=json.dumps(given).encode(),
        capture_output=True,
        check=False,
        env={**os.environ, "VX_TMPDIR": str(base / "temp")},
    )
    if done.stderr.startswith(b"unshare:"):
        pytest.skip(f"this machine gives its user no namespace of mounts: {done.stderr.decode(errors='replace')}")
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return Told(**json.loads(done.stdout))
