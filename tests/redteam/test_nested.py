"""Tasks that run with the /proc of a container around them, which shows them processes that are not theirs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import REPOSITORY, make_tree
from tests.redteam.conftest import INSIDE, PYTHON
from tests.support.nested import nested
from tests.support.observers import OBSERVERS

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.kernel

_MARK = "a-secret-of-another-process"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a project that holds a hidden file, and the hostile program."""
    made = make_tree(tmp_path / "ws", {"p/lib/given": "given\n", "p/hidden": "hidden\n", "note": "note\n"})
    shutil.copy(INSIDE / "proc.py", made / "p" / "lib")
    return made


@pytest.fixture
def outside() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A process of this user's with something to lose, and a socket in its directory."""
    with tempfile.TemporaryDirectory(prefix="vx-outside-") as made, socket.socket(socket.AF_UNIX) as listener:
        path = f"{made}/socket"
        listener.bind(path)
        listener.listen()
        program = (sys.executable, "-c", "print(flush=True); input()")
        streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(program, cwd=made, env={**os.environ, "TOKEN": _MARK}, **streams) as process:
            assert process.stdout is not None
            process.stdout.readline()
            yield process, path
            assert process.poll() is None, "somebody ended it"
            process.kill()


def _attack(root: Path, pid: int, sock: str = "/nonexistent", **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the hostile program told of a process outside, and the result."""
    server = more.pop("server", None)
    command = f"{PYTHON} lib/proc.py {REPOSITORY} {pid} {sock} {_MARK}"
    (result,) = nested(root, {"command": command, **more}, server=server)
    assert result["stdout"], result["stderr"]
    return json.loads(result["stdout"]), result


@pytest.mark.parametrize("observer", OBSERVERS)
def test_of_a_process_outside_nothing_is_had_but_what_everybody_is_told(
    root: Path, outside: tuple[subprocess.Popen[bytes], str], observer: str
) -> None:
    process, path = outside
    adjusted = Path(f"/proc/{process.pid}/oom_score_adj")
    before = adjusted.read_bytes()
    told, result = _attack(root, process.pid, path, observer=observer)
    assert result["protections"]["processes"] == "weaker"
    # the weakness that is told of: without it nothing below would mean anything
    assert "input()" in told.pop("their command line")
    assert told.pop("seen") > 3
    assert told.pop("read of") == []
    assert [label for label, became in told.items() if became == "done"] == []
    assert {told[f"read {name}"] for name in ("environ", "mem", "maps", "auxv")} == {"EACCES"}
    assert {told[f"follow {name}"] for name in ("cwd", "root", "exe", "fd/0", "ns/user")} == {"EACCES"}
    assert {told["signal them"], told["trace them"]} <= {"ESRCH", "EPERM"}
    assert {became for label, became in told.items() if label.startswith("write ")} <= {"EROFS", "EACCES"}
    assert {became for label, became in told.items() if label.startswith(("unshare ", "clone "))} == {"EPERM"}
    assert told["clone3"] == "ENOSYS"
    assert adjusted.read_bytes() == before
    process.send_signal(0)


def test_of_another_task_of_the_session_nothing_is_had_either(root: Path) -> None:
    server = {"command": "echo up $$; exec sleep 100", "ready": "up", "env": {"TOKEN": _MARK}}
    told, _ = _attack(root, os.getpid(), server=server)
    assert told["read of"] == []
    # it was there to be seen
    (result,) = nested(root, {"command": "cat /proc/[0-9]*/comm"}, server=server)
    assert "sleep" in result["stdout"].split()


@pytest.mark.parametrize("observer", OBSERVERS)
def test_everything_else_is_as_in_a_full_sandbox(root: Path, observer: str) -> None:
    python = f"{PYTHON} -c"
    dial = f"{python} 'import socket; socket.create_connection((\"192.0.2.1\", 80), 20)'"
    runs = {
        "granted": "cat lib/given; echo made > out/made; echo $$ >/dev/null; cat ../note 2>&1",
        "hidden": "cat hidden || true",
        "through": "cat /proc/self/cwd/hidden || true",
        "written": "echo x > lib/new || true",
        "outside": "echo x > /etc/new || echo x > /proc/sys/vm/new || true",
        "network": f"{dial} || true",
        "itself": "cat /proc/self/comm /proc/thread-self/comm; readlink /proc/self/cwd; echo seen >/proc/self/fd/1",
    }
    results = dict(zip(runs, nested(root, *({"command": c, "observer": observer} for c in runs.values())), strict=True))
    assert {result["observer"] for result in results.values()} == {observer}
    assert {result["trace"] for result in results.values()} == {"complete"}
    granted, itself = results["granted"], results["itself"]
    assert granted["stdout"].startswith("given\n"), granted
    assert "No such file" in granted["stdout"]
    assert (root / "p" / "out" / "made").read_text() == "made\n"
    assert (itself["exit_code"], itself["violations"]) == (0, []), itself
    assert itself["stdout"] == f"cat\ncat\n{root}/p\nseen\n"

    def violated(name: str) -> list[tuple[str, str]]:
        return [(one["kind"], one["target"]) for one in results[name]["violations"]]

    assert violated("hidden") == [("read", "hidden")]
    assert violated("through") == [("read", "/proc/self/cwd/hidden")]
    assert violated("written") == [("write", "lib/new")]
    assert violated("network") == [("network", "192.0.2.1:80")]
    assert {results[name]["exit_code"] for name in ("hidden", "through", "written", "network")} == {1}
    full = {"filesystem": "full", "network": "full", "sockets": "full"}
    for result in results.values():
        assert {key: result["protections"][key] for key in full} == full
        assert result["protections"]["processes"] == "weaker"
    assert not Path("/etc/new").exists()


def test_a_task_that_does_not_accept_it_is_refused_beside_those_that_do(root: Path) -> None:
    # often enough for sandboxes that are made ahead, of the one kind and of the other
    runs = [
        {"command": f"touch out/{number}", "fields": {"weaker_when_nested": number % 3 != 2}} for number in range(9)
    ]
    results = nested(root, *runs)
    assert [result["exit_code"] for result in results] == [0, 0, 125] * 3, results
    for number, result in enumerate(results):
        assert (root / "p" / "out" / str(number)).exists() is (number % 3 != 2)
        assert ("weakerWhenNested = true" in str(result["refusals"])) is (number % 3 == 2)


def test_what_a_block_may_ask_for_besides_works_there(root: Path) -> None:
    runs: dict[str, dict[str, Any]] = {
        "hermetic": {"command": "ls /proc/self/fd >/dev/null && ls -d /etc /root /var", "fields": {"hermetic": True}},
        "pty": {"command": "test -t 1 && tty", "fields": {"pty": True}},
        "names": {"command": "echo x > new.txt && mv new.txt out.txt && cat out.txt", "fields": {"allow_write": []}},
    }
    runs["names"]["fields"] = {"allow_write": [f"{root}/p/out.txt", f"{root}/p/new.txt"]}
    results = dict(zip(runs, nested(root, *runs.values()), strict=True))
    assert results["hermetic"]["stdout"] == "/etc\n", results["hermetic"]
    assert results["pty"]["stdout"].startswith("/dev/pts/"), results["pty"]
    assert (results["names"]["exit_code"], results["names"]["stdout"]) == (0, "x\n"), results["names"]


def test_a_task_that_is_killed_leaves_nothing_there(root: Path) -> None:
    (result,) = nested(root, {"command": "sleep 100 & kill -9 $$"})
    assert (result["exit_code"], result["signal"]) == (128 + signal.SIGKILL, "SIGKILL"), result
