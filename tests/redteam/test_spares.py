"""A sandbox prepared ahead of its task: it is what a fresh one is, whatever happened to the host or to it meanwhile."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox import Session
from tests.conftest import REPOSITORY
from tests.redteam.conftest import Box, shown

if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK = (
    "env | sort; pwd; umask; ulimit -aS; ulimit -aH; cat /proc/self/cgroup; ls -l /proc/self/fd | wc -l; hostname;"
    "grep -E 'Sig|Cap|Seccomp|NoNew|Groups|Uid|Umask|Cpus' /proc/self/status; cat /proc/self/oom_score_adj;"
    "cut -d' ' -f5- /proc/self/mountinfo; cat /proc/self/uid_map; set -- /proc/[0-9]*; echo $#; nice"
)


def below(pid: int) -> list[int]:
    """A process's children, and theirs, parents first."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            found = [int(child) for child in children.read().split()]
    except OSError:
        return []
    return [each for child in found for each in (child, *below(child))]


def first(pid: int) -> bool:
    """Whether it is the process 1 of a namespace of its own."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
            if line.startswith("NSpid:"):
                return line.split()[2:] == ["1"]
    return False


def spare_of(session: Session, box: Box) -> list[int]:
    """The processes of a spare that waits: its warden, bubblewrap and what that runs, and process 1."""
    assert session._supervisor is not None or box.run("true").exit_code == 0
    assert session._supervisor is not None
    for _ in range(2):
        assert box.run("true").exit_code == 0
    deadline = time.monotonic() + 30
    # the last thing made of it is process 1, and the joiner is gone then
    while len(found := below(session._supervisor.pid)) != 4 or not any(map(first, found)):
        assert time.monotonic() < deadline, "no spare was made"
        time.sleep(0.01)
    return found


def test_a_spare_is_what_a_fresh_one_is(box: Box) -> None:
    def told(result_of: Callable[[], bytes]) -> str:
        text = re.sub(r"vx-\d+/[^/\s]+", "vx/TMP", result_of().decode())
        return re.sub(r"overlay|user_id=\d+|fd=\d+", "", text)

    def look() -> bytes:
        result = box.run(_LOOK)
        assert result.exit_code == 0, shown(result)
        return result.stdout

    with Session() as session:
        box.session = session
        fresh = told(look)
        spare_of(session, box)
        old_umask, old_cwd = os.umask(0o077), os.getcwd()
        os.environ["REDTEAM_LEFT"] = "left"
        try:
            os.chdir("/")
            spared = told(look)
        finally:
            os.chdir(old_cwd)
            os.umask(old_umask)
            del os.environ["REDTEAM_LEFT"]
    assert len(fresh.splitlines()) > 60
    assert spared == fresh


@pytest.mark.parametrize("which", range(4), ids=["warden", "bubblewrap", "gate", "process 1"])
def test_a_spare_that_dies_as_it_is_handed_over_costs_a_reason_at_most(box: Box, which: int) -> None:
    with Session() as session:
        box.session = session
        for stop in (False, True):
            victim = spare_of(session, box)[which]
            # by descriptor: its number may be another's by then
            try:
                process = os.pidfd_open(victim)
            except ProcessLookupError:
                continue  # the spare's two seconds were over
            kill = threading.Timer(0.2 if stop else 0, end, (process,))
            if stop:
                # it can hear nothing, and dies with the task in its hands
                end(process, signal.SIGSTOP)
            kill.start()
            result = box.run("echo ran; exit 3")
            kill.join()
            os.close(process)
            ran = (result.exit_code, result.started, result.stdout) == (3, True, b"ran\n")
            refused = (result.exit_code, result.started, result.stdout) == (125, False, b"") and bool(result.refusals)
            assert ran or refused, shown(result)
            after = box.run("echo after")
            assert (after.exit_code, after.stdout) == (0, b"after\n"), shown(after)


@pytest.mark.parametrize("how", ["close", "kill", "supervisor"])
def test_no_spare_is_left_behind(box: Box, how: str) -> None:
    session = Session()
    box.session = session
    with session:
        processes = spare_of(session, box)
        assert session._supervisor is not None
        if how == "kill":
            with contextlib.suppress(ProcessLookupError):
                os.kill(processes[0], signal.SIGKILL)
        if how == "supervisor":
            session._supervisor.kill()
    deadline = time.monotonic() + 30
    while left := [pid for pid in processes if os.path.exists(f"/proc/{pid}/ns/mnt")]:
        assert time.monotonic() < deadline, left
        time.sleep(0.01)


def end(process: int, number: int = signal.SIGKILL) -> None:
    # a spare that nobody took for two seconds ends by itself
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(process, number)


_MOUNTS = """
import subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from sandbox import Session
from tests.redteam.conftest import Box
root = Path(sys.argv[2])
lib = root / "apps/shop/lib"
with Session() as session:
    box = Box(session, root, root / "apps/shop", root)
    def told(command="cat lib/deep/*; ls conf 2>&1 | grep -c real"):
        result = box.run(command)
        return result.stdout.decode().split("\\n")[0]
    for _ in range(3):
        assert told() == "tax", told()
    time.sleep(0.3)
    subprocess.run(("mount", "-t", "tmpfs", "tmpfs", lib / "deep"), check=True)
    (lib / "deep/new").write_text("mounted\\n")
    assert told() == "mounted", told()
    time.sleep(0.3)
    subprocess.run(("umount", lib / "deep"), check=True)
    assert told() == "tax", told()
    time.sleep(0.3)
    # over the whole workspace: what was hidden is elsewhere now
    subprocess.run(("mount", "--bind", root / "apps/shop/conf", lib / "deep"), check=True)
    assert told() == "the conf", told()
    time.sleep(0.3)
    subprocess.run(("mount", "-o", "remount,ro,bind", lib / "deep"), check=True)
    subprocess.run(("umount", lib / "deep"), check=True)
    assert told() == "tax", told()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root mounts")
def test_what_the_host_mounts_meanwhile_is_what_the_task_finds(box: Box) -> None:
    done = subprocess.run(
        ("unshare", "-m", sys.executable, "-c", _MOUNTS, str(REPOSITORY), str(box.root)),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
