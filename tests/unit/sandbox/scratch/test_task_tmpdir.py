"""The temporary directories of tasks whose executor was killed go with the next session, and no others."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from sandbox.contract.errors import NotStarted
from sandbox.scratch import task_tmpdir
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

_DIES = """
import os, sys
sys.path.insert(0, sys.argv[1])
from sandbox.scratch import task_tmpdir
made = task_tmpdir.make(sys.argv[2])
open(made.path + "/file", "w").close()
if sys.argv[3] == "locked up":
    os.mkdir(made.path + "/inner")
    os.chmod(made.path + "/inner", 0)
    os.chmod(made.path, 0)
print(made.path, flush=True)
os.kill(os.getpid(), 9)
"""


def left_by_a_dead_one(root: Path, how: str = "") -> str:
    done = subprocess.run(
        (sys.executable, "-c", _DIES, str(REPOSITORY), str(root), how), capture_output=True, text=True, check=False
    )
    assert done.returncode == -9, done.stderr
    assert os.path.isdir(done.stdout.strip())
    return done.stdout.strip()


def test_what_a_killed_executor_left_goes_and_what_lives_stays(tmp_path: Path) -> None:
    root = tmp_path / "vx"
    mine = task_tmpdir.make(str(root))
    stale = left_by_a_dead_one(root)
    locked = left_by_a_dead_one(root, "locked up")
    (root / "set-aside").mkdir()
    task_tmpdir.sweep(str(root))
    assert not os.path.lexists(stale)
    assert not os.path.lexists(locked)
    assert sorted(os.listdir(root)) == sorted([os.path.basename(mine.path), "set-aside"])
    mine.remove()
    assert os.listdir(root) == ["set-aside"]


def test_another_programs_live_directory_stays_and_keeps_the_rights_it_has(tmp_path: Path) -> None:
    root = tmp_path / "vx"
    live = subprocess.Popen(
        (sys.executable, "-c", _DIES.replace("os.kill(os.getpid(), 9)", "input()"), str(REPOSITORY), str(root), ""),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert live.stdout is not None
    path = live.stdout.readline().strip()
    os.chmod(path, 0o500)
    task_tmpdir.sweep(str(root))
    assert os.listdir(path) == ["file"]
    assert os.stat(path).st_mode & 0o777 == 0o500
    live.communicate("\n", timeout=60)
    task_tmpdir.sweep(str(root))
    assert os.listdir(root) == []


def test_a_directory_that_cannot_be_locked_is_a_reason_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int, how: int) -> None:
        if how == fcntl.LOCK_EX:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(NotStarted, match="No locks available"):
        task_tmpdir.make(str(tmp_path / "vx"))
    assert os.listdir(tmp_path / "vx") == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_root_that_is_a_link_or_missing_is_not_swept(tmp_path: Path) -> None:
    stale = left_by_a_dead_one(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    task_tmpdir.sweep(str(tmp_path / "link"))
    task_tmpdir.sweep(str(tmp_path / "missing"))
    assert os.path.isdir(stale)
