"""Granted names against a task that knows how they are served, and a host that changes under them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from sandbox import Session
from tests.conftest import REPOSITORY, make_tree
from tests.redteam.conftest import Box, shown, violated
from tests.support.observers import ANSWERING, NEEDS_MASK

if TYPE_CHECKING:
    from pathlib import Path

_CLOSED = ("ENOENT", "EPERM", "EACCES", "ENXIO", "ECONNREFUSED")


def state(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every entry's inode, mode and content."""
    found = {}
    for here, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = os.path.join(here, name)
            status = os.lstat(path)
            content = b""
            if name in files and os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    content = file.read(100)
            found[os.path.relpath(path, directory)] = (status.st_ino, status.st_mode, content)
    return found


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
def test_what_is_hidden_beside_names_is_neither_learned_nor_changed(each_box: Box) -> None:
    box = each_box
    box.write = ("dist", "f", "pipe", "device", "socket", "out2", "gen/**/*.py")
    here = box.project
    make_tree(here, {"dist/old": "old\n", "f": "granted\n", "gen/file": "hidden\n", "gen/dark": None})
    make_tree(box.home, {".ssh/id": "key\n"})
    os.mkfifo(here / "pipe")
    if os.getuid() == 0:
        os.mknod(here / "device", 0o020666, os.makedev(1, 5))
    before = state(here)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(here / "socket"))
        listener.listen()
        listener.setblocking(False)
        told, result = box.attack("reaching", box.home)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert result.command_exit_code == 0, shown(result)
    assert told.pop("size of what is made over hidden") == 0
    assert told.pop("read of what is made over hidden") == ""
    assert told.pop("no replacing what is made over hidden") == "EEXIST"
    for label in ("linked to staging", "linked back", "removed again", "directory made over a hidden file"):
        assert told.pop(label) is None, label
    assert told.pop("directory made over a hidden one") is None
    assert told.pop("what is in it") == []
    beside = told.pop("beside")
    assert "conf" not in beside
    assert "out" not in beside
    assert told.pop("link up") == ["apps"]
    assert told.pop("handle") == -1
    told.pop("wall by a pattern")
    told.pop("in a wall by a pattern")
    assert {key: value for key, value in told.items() if value not in _CLOSED} == {}
    after = state(here)
    assert {path: after.get(path) for path in before if path != "out2"} == before
    left = {os.path.relpath(v.path, here) for v in result.violations}
    assert {"secret.txt", ".more", "gen/file"} <= left, shown(result)
    assert not (box.root / ".vx").exists()


def test_a_pattern_opens_no_wall_and_no_other_runs_staging(box: Box) -> None:
    make_tree(
        box.root, {".vx/cache/x.py": "cached\n", ".vx/tmp/keep/x.py": "other\n", "apps/shop/nested/x.py": "nested\n"}
    )
    box.write = ("../../**/*.py", "new.txt")
    before = state(box.root / ".vx"), state(box.root / ".git")
    with contextlib.suppress(Exception):
        # a pattern that climbs out of the project may be refused whole
        box.request()
        result = box.run(
            "for d in ../../.vx ../../.vx/cache ../../.vx/tmp ../../.vx/tmp/keep ../../.git ../../.git/hooks; do"
            " cat $d/x.py; mkdir -p $d; echo evil > $d/x.py; echo evil > $d/y.py; mv $d/x.py $d/z.py; done; true"
        )
        assert result.exit_code == 1, shown(result)
    assert (state(box.root / ".vx"), state(box.root / ".git")) == before


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
def test_a_storm_of_renames_beside_a_host_that_replaces_names(each_box: Box, base: Path) -> None:
    box = each_box
    box.write = ("dist", "f")
    target = make_tree(base / "target", {"kept": "kept\n"})
    here = box.project
    (here / "f").write_text("granted\n")
    program = box.program("storm", 3)
    granted = ("dist", "f")

    def others() -> dict[str, tuple[int, int, bytes]]:
        return {path: told for path, told in state(here).items() if path.split("/")[0] not in (*granted, "was")}

    before, over = others(), threading.Event()

    def replace() -> None:
        turn = 0
        while not over.is_set():
            path = here / granted[turn % 2]
            with contextlib.suppress(OSError):
                match turn // 2 % 4:
                    case 0:
                        os.rename(path, here / "was")
                    case 1:
                        os.symlink(target / "kept", path)
                    case 2:
                        os.symlink("secret.txt", path)
                    case _:
                        os.symlink(target, path)
            with contextlib.suppress(OSError):
                os.unlink(here / "was")
            shutil.rmtree(here / "was", ignore_errors=True)
            turn += 1
            time.sleep(0.002)

    host = threading.Thread(target=replace)

    def begin(_: bytes) -> None:
        if not host.ident:
            host.start()

    try:
        result = box.run(program, on_stdout=begin)
    finally:
        over.set()
        host.join()
    assert result.command_exit_code == 0, shown(result)
    assert int(result.stdout.split()[-1]) > 300
    assert result.trace == "complete", shown(result)
    assert others() == before
    assert (target / "kept").read_text() == "kept\n"
    assert os.listdir(target) == ["kept"]
    assert not (box.root / ".vx").exists()
    assert {kind for kind, _ in violated(result, here)} <= {"read", "write"}


_EXECUTOR = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from sandbox import Session
from tests.redteam.conftest import Box
root = Path(sys.argv[2])
with Session() as session:
    box = Box(session, root, root / "apps/shop", root, write=("dist", "deep/er/out.txt"))
    box.run("mkdir .staged; echo x > .staged/x; echo x > dist; while :; do echo x >> .staged/x; echo x >> dist; done")
"""


@NEEDS_MASK
@pytest.mark.parametrize("who", ["executor", "supervisor", "warden"])
def test_whoever_is_killed_while_names_are_served_the_next_session_cleans_up(box: Box, who: str) -> None:
    before = state(box.root)
    executor = subprocess.Popen((sys.executable, "-c", _EXECUTOR, str(REPOSITORY), str(box.root)), cwd=REPOSITORY)
    deadline = time.monotonic() + 20
    while not (box.project / "dist").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    victim = executor.pid
    for _ in range(("executor", "supervisor", "warden").index(who)):
        with open(f"/proc/{victim}/task/{victim}/children", encoding="ascii") as children:
            victim = int(children.read().split()[0])
    os.kill(victim, signal.SIGKILL)
    executor.wait(20)
    with Session() as session:
        box.session = session
        result = box.run("true")
        assert result.exit_code == 0, shown(result)
    after = state(box.root)
    assert after.pop("apps/shop/dist")
    # made for the run; what is left of it after a kill is taken back
    assert set(after) == set(before)


_FULL = """
import os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from sandbox import Session
from tests.conftest import make_tree
from tests.redteam.conftest import Box, TREE, shown
root = make_tree(Path(sys.argv[2]) / "ws", TREE)
with Session() as session:
    box = Box(session, root, root / "apps/shop", root, write=("dist", "out/"))
    told = box.run("head -c 20M /dev/zero > dist; head -c 20M /dev/zero > .staged; echo more > .other; mv .staged dist;"
        " rm -f .other; ls -s dist; rm dist; echo fits > dist; cat dist")
    assert told.stdout.endswith(b"fits\\n") and told.exit_code == 0, shown(told)
    assert b"No space left" in told.stderr, shown(told)
    (root / "filler").write_bytes(b"")
    with open(root / "filler", "ab", 0) as filler:
        try:
            while True: filler.write(b"x" * 4096)
        except OSError: pass
    refused = box.run("echo x > dist; mkdir .d; true")
    assert refused.exit_code in (0, 125) and (refused.exit_code == 0 or refused.refusals), shown(refused)
    (root / "filler").unlink()
    assert box.run("true").exit_code == 0
    assert not (root / ".vx").exists()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root mounts a file system that is full")
def test_a_full_disk_is_told_to_the_task_and_nothing_is_left(base: Path) -> None:
    small = base / "small"
    small.mkdir()
    command = f'mount -t tmpfs -o size=8m tmpfs {small} && exec "$@"'
    done = subprocess.run(
        ("unshare", "-m", "sh", "-c", command, "sh", sys.executable, "-c", _FULL, str(REPOSITORY), str(small)),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
