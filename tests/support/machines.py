"""What the engine says and does on a machine that lacks something, brought about for real around a process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

IS_ROOT = os.geteuid() == 0
_SECONDS = 110

# first what a run comes to, then what the machine is said to be
_TELL = """
import dataclasses, json, os, sys
sys.path[:0] = json.loads(sys.argv[1])
exec(sys.argv[2])
import sandbox
root, options, fields = sys.argv[3], json.loads(sys.argv[4]), json.loads(sys.argv[5])
config = sandbox.ResolvedSandboxConfig(
    platform="linux", workspace=root, project=root, allow_write=(root + "/out/",), **fields
)
with sandbox.Session() as session:
    request = session.request(config, workspace_root=root)
    run = session.run(request, command="touch out/ran; echo ran", **options)
told = {"run": dataclasses.asdict(run) | {"stdout": run.stdout.decode(), "stderr": run.stderr.decode()}}
told["run"]["files"] = os.listdir(root + "/out") if os.path.isdir(root + "/out") else []
with sandbox.Session() as session:
    told["report"] = dataclasses.asdict(session.probe())
    told["weaker"] = dataclasses.asdict(session.probe(weaker=True))
print(json.dumps(told))
"""


@dataclass(frozen=True)
class Told:
    """The result of one run, and what was said of the machine to tasks that want a full sandbox and to others."""

    run: dict[str, Any]
    report: dict[str, Any]
    weaker: dict[str, Any]

    def probe(self, name: str) -> dict[str, Any]:
        """One thing that was asked of the machine."""
        found: dict[str, Any] = next(probe for probe in self.report["probes"] if probe["name"] == name)
        return found

    @property
    def refused(self) -> str:
        """Why nothing was run; it is checked that nothing was."""
        run = self.run
        assert (run["exit_code"], run["started"], run["sandboxed"]) == (125, False, True), run
        assert (run["stdout"], run["files"], run["command_exit_code"]) == ("", [], None), run
        (refusal,) = run["refusals"]
        assert "Traceback" not in refusal["message"]
        return f"{refusal['message']}\nhint: {refusal['hint']}" if refusal["hint"] else str(refusal["message"])

    @property
    def passed(self) -> str:
        """The observer of a run that passed behind walls."""
        run = self.run
        assert (run["exit_code"], run["files"], run["refusals"]) == (0, ["ran"], []), run
        assert run["protections"]["filesystem"] == "full"
        return str(run["observer"])


def inside(*binds: str) -> tuple[str, ...]:
    """The command line of a container whose mounts are this machine's but for some; the user keeps its number."""
    # root's is as a container's: no user namespace of its own, and every capability
    who = ("--cap-add", "ALL") if IS_ROOT else ("--unshare-user",)
    return ("bwrap", *who, "--dev-bind", "/", "/", *binds, "--")


def shell(prepare: str, *kinds: str) -> tuple[str, ...]:
    """The command line of new namespaces in which a shell has prepared something, and becomes what follows."""
    return ("unshare", *kinds, "/bin/sh", "-ec", f'{prepare}\nexec "$@"', "sh")


def tell(
    place: Path,
    *prefix: str,
    prelude: str = "",
    options: dict[str, Any] | None = None,
    fields: dict[str, Any] | None = None,
    **environment: str,
) -> Told:
    """What a process tells that a command line of another program leads to.

    Args:
        place: an existing directory the process may write in.
        prefix: the other program and its arguments.
        prelude: what the process does before it loads the engine, in Python.
        options: of the run.
        fields: of its config.
        environment: beside what is inherited.
    """
    root = place / "ws"
    root.mkdir()
    words = (json.dumps([str(REPOSITORY), *sys.path]), prelude, str(root), json.dumps(options or {}))
    done = subprocess.run(
        (*prefix, sys.executable, "-c", _TELL, *words, json.dumps(fields or {})),
        capture_output=True,
        check=False,
        timeout=_SECONDS,
        env={**os.environ, "VX_TMPDIR": str(place), **environment},
    )
    assert done.returncode == 0, done.stderr.decode()
    return Told(**json.loads(done.stdout))


def bwrap() -> str:
    """Where bubblewrap is."""
    found = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")
    assert found is not None
    return os.path.realpath(found)


#: As a container hides parts of /proc: some read-only, some empty, some another file.
MASKS = (
    *("--ro-bind", "/proc/sys", "/proc/sys"),
    *("--ro-bind", "/dev/null", "/proc/keys"),
    *("--tmpfs", "/proc/irq"),
)


def program(path: Path, lines: Iterable[str]) -> Path:
    """A shell script that may be executed."""
    path.write_text("\n".join(("#!/bin/sh", *lines, "")), encoding="utf-8")
    path.chmod(0o755)
    return path
