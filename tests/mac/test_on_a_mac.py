"""What only a Mac can tell: the compiler takes the profiles, the kernel keeps to them, the log tells of denials.

Nobody has run this yet. `SANDBOX_MUST_WORK=1` turns a skip on a Mac into a failure.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

import sandbox
import vxconf
from tests.conftest import REPOSITORY
from tests.support.served_proxy import Server, page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sandbox.contract.results import RunResult
    from tests.conftest import Tree

    Factory = Callable[[Tree], Path]

pytestmark = pytest.mark.mac

_FIXTURES = REPOSITORY / "fixtures"
_START = (_FIXTURES / "profiles" / "start.sb").read_text(encoding="utf-8")
_RECORDED = sorted((_FIXTURES / "plans").glob("*.profile.sb"))


def _run(workspace_factory: Factory, command: str, block: dict[str, object]) -> RunResult:
    root = workspace_factory(
        {
            "p/src/a.txt": "a\n",
            "p/notes.md": "n\n",
            "p/.git/hooks/x": "",
            "p/vx.json": json.dumps({"tasks": {"t": {"exec": {"command": command, "sandbox": block}}}}),
        }
    )
    task = vxconf.load(str(root)).task("p#t")
    with sandbox.Session() as session:
        return session.run(task.request(), command=command, timeout=60)


@pytest.mark.parametrize("path", _RECORDED, ids=lambda path: path.name)
def test_the_systems_compiler_takes_every_recorded_profile(path: Path) -> None:
    text = path.read_text(encoding="utf-8", errors="replace")
    if text.startswith("refused"):
        pytest.skip("there is no profile")
    done = subprocess.run(
        ("/usr/bin/sandbox-exec", "-p", _START + text, "/usr/bin/true"), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_granted_is_read_and_written_and_nothing_is_reported(workspace_factory: Factory) -> None:
    result = _run(
        workspace_factory,
        "cat src/a.txt && mkdir -p dist && cat src/a.txt > dist/b && test -s dist/b",
        {"allow": {"read": ["src/"], "write": ["dist/"]}},
    )
    assert (result.exit_code, result.trace, result.violations) == (0, "complete", ())


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("cat notes.md || true", "notes.md"),
        ("cat NOTES.MD || true", "notes.md"),
        ("echo x > new.txt || true", "new.txt"),
        ("ln src/a.txt dist/a || true", "src/a.txt"),
    ],
)
def test_what_is_not_granted_is_refused_and_reported(workspace_factory: Factory, command: str, path: str) -> None:
    result = _run(workspace_factory, command, {"allow": {"read": ["src/"], "write": ["dist/"]}})
    assert result.exit_code == 1
    assert [violation.path.rpartition("/p/")[2] for violation in result.violations] == [path]


def test_a_listed_host_is_reached_through_the_tasks_own_front_and_another_is_refused_by_name(
    workspace_factory: Factory,
) -> None:
    with Server(page) as server:
        here = f"127.0.0.1:{server.port}"
        # the profile lets loopback be dialled past the proxy as well
        command = f"curl -sS --noproxy '' http://{here}/ && curl -sS --noproxy '' http://example.org/"
        result = _run(workspace_factory, command, {"allow": {"network": [here]}})
    assert result.stdout.startswith(b"GET / HTTP/1.1")
    assert [violation.target for violation in result.violations] == ["example.org:80"]


def test_no_host_is_reached_past_the_front(workspace_factory: Factory) -> None:
    command = "curl -sS --noproxy '*' --max-time 20 http://1.1.1.1/"
    result = _run(workspace_factory, command, {"allow": {"network": ["1.1.1.1"]}})
    assert result.command_exit_code != 0


def test_a_program_started_by_launch_services_would_be_outside_and_is_not_started(workspace_factory: Factory) -> None:
    result = _run(workspace_factory, "open -a TextEdit", {})
    assert result.exit_code != 0


def test_the_machine_says_that_a_sandbox_runs_here() -> None:
    report = sandbox.probe()
    assert (report.available, report.observer) == (True, "log")
