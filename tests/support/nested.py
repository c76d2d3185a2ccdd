"""A session in a container that hides parts of /proc; also the program that runs there: JSON in, JSON out."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.conftest import REPOSITORY
from tests.support.machines import MASKS, inside

if TYPE_CHECKING:
    from pathlib import Path

_SECONDS = 110


def nested(root: Path, *runs: dict[str, Any], server: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The results of runs one after the other in one session there.

    Args:
        root: the workspace, whose project `p` is; `p/lib/` may be read and `p/out/` written.
        runs: each a `command`, and the options of a run; `fields` are the config's, which accepts a weaker sandbox.
        server: one of another task's, which is up when the first begins and until the last has ended.
    """
    done = subprocess.run(
        (
            *inside(*MASKS),
            sys.executable,
            "-c",
            f"import sys; sys.path[:0] = {[str(REPOSITORY), *sys.path]!r}\n{_MAIN}",
        ),
        input=json.dumps([str(root), runs, server]),
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
        env={**os.environ, "VX_TMPDIR": str(root.parent)},
    )
    assert done.returncode == 0, done.stderr
    told: list[dict[str, Any]] = json.loads(done.stdout)
    return told


_MAIN = "from tests.support.nested import main; main()"


def main() -> None:
    """What runs in the container."""
    from sandbox import Ready, ResolvedSandboxConfig, Session

    root, runs, server = json.load(sys.stdin)
    project = f"{root}/p"
    told = []
    with Session() as session:

        def asked(run: dict[str, Any]) -> Any:
            fields: dict[str, Any] = {
                "weaker_when_nested": True,
                "allow_write": (f"{project}/out/",),
                **run.pop("fields", {}),
            }
            fields["allow_write"] = tuple(fields["allow_write"])
            config = ResolvedSandboxConfig(
                platform="linux", workspace=root, project=project, allow_read=(f"{project}/lib/",), **fields
            )
            return session.request(config, workspace_root=root)

        up = None
        if server is not None:
            request = asked(server)
            up = session.start(request, ready=Ready(output=server.pop("ready")), **server)
            up.wait_ready()
        for run in runs:
            request = asked(run)
            result = session.run(request, timeout=60, **run)
            told.append(
                dataclasses.asdict(result) | {"stdout": result.stdout.decode(), "stderr": result.stderr.decode()}
            )
        if up is not None:
            up.stop()
    json.dump(told, sys.stdout)
