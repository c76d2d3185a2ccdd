"""What a task leaves for whoever comes after it: links, planted programs, hostile directories."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox.contract.errors import NotStarted
from sandbox.machine.required_programs import find_bwrap
from sandbox.planning.operations import Make, Origin
from sandbox.scratch import grant_directories, task_tmpdir
from tests.conftest import REPOSITORY, make_tree
from tests.redteam.conftest import PYTHON, Box, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Tree


def test_a_link_left_in_a_write_grants_place_is_never_followed(box: Box, base: Path) -> None:
    target = make_tree(base / "target", {"kept": "kept\n"})
    box.write = ("gen/out/",)
    assert box.run("echo x > gen/out/x").exit_code == 0
    # what a task with a grant above it would leave
    (box.project / "gen/out/x").unlink()
    (box.project / "gen/out").rmdir()
    (box.project / "gen/out").symlink_to(target)
    with pytest.raises(Exception, match="link"):
        box.request()
    (box.project / "gen/out").unlink()
    request = box.request()
    (box.project / "gen").rmdir()
    (box.project / "gen").symlink_to(target)
    result = box.session.run(request, command="echo x > gen/out/y")
    assert (result.exit_code, result.started) == (125, False), shown(result)
    assert sorted(os.listdir(target)) == ["kept"]


def test_making_and_taking_back_follow_no_link(base: Path) -> None:
    target = make_tree(base / "target", {"out": None})
    (base / "gen").symlink_to(target)
    with pytest.raises(NotStarted):
        grant_directories.make([Make(path=str(base / "gen/out/deep"), origin=Origin())])
    assert os.listdir(target / "out") == []
    made = grant_directories.make([Make(path=str(base / "new/out"), origin=Origin())])
    (base / "new").rename(base / "moved")
    (base / "new").symlink_to(target)
    grant_directories.take_back(made)
    assert os.path.isdir(target / "out")


def test_removal_follows_no_link_and_stops_at_nothing(box: Box, base: Path) -> None:
    target = make_tree(base / "target", {"kept": "kept\n", "deep/kept": "kept\n"})
    target.chmod(0o755)
    result = box.run(
        f"cd $TMPDIR && ln -s {target} link && ln -s {target}/kept file && mkdir -p a/b/c locked/in && echo x > a/b/c/f"
        f" && ln -s {target} a/b/link && echo x > locked/in/f && chmod 000 a/b/c locked/in locked && mkfifo pipe"
        " && mkdir -- '-rf' '*' && chmod 000 ."
    )
    assert result.exit_code == 0, shown(result)
    assert os.listdir(base / f"vx-{os.getuid()}") == []
    assert sorted(os.listdir(target)) == ["deep", "kept"]
    assert (target / "deep/kept").read_text(encoding="utf-8") == "kept\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o755


@pytest.mark.parametrize("entry", ['read = ["out/left"]', 'unixSockets = ["out/left"]'])
def test_a_link_left_where_another_task_is_granted_a_name_chooses_nothing_for_it(
    workspace_factory: Callable[[Tree], Path], home: Path, entry: str
) -> None:
    """The one task writes a directory; the other is granted a file in it, or a socket, and nothing of the host's."""
    make_tree(home, {".ssh/id": "the key\n"})
    with socket.socket(socket.AF_UNIX) as server:
        target = home / ".ssh" / "id"
        if "unixSockets" in entry:
            target = home / "s"
            server.bind(str(target))
            server.listen()
            server.setblocking(False)
        connect = "import socket; socket.socket(socket.AF_UNIX).connect('out/left')"
        root = workspace_factory(
            {
                "p/vx.toml": f"""
tasks.plant.exec.command = "ln -s {target} out/left"
tasks.plant.exec.sandbox.allow.write = ["out/"]
[tasks.use.exec]
command = "cat out/left; {PYTHON} -c \\"{connect}\\""
[tasks.use.exec.sandbox.allow]
{entry}
"""
            }
        )
        told = []
        for task in ("plant", "use"):
            command = [sys.executable, "-m", "vxconf", "run", task]
            env = {**os.environ, "PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}"}
            told.append(subprocess.run(command, cwd=root / "p", env=env, capture_output=True, check=False))
        assert [done.returncode for done in told] == [0, 125], told
        assert b"the key" not in told[1].stdout
        assert b"leads through a link" in told[1].stderr, told
        if "unixSockets" in entry:
            with pytest.raises(BlockingIOError):
                server.accept()


@pytest.mark.parametrize("hostile", ["link", "file", "open parent"])
def test_a_planted_temporary_root_is_refused(
    box: Box, base: Path, monkeypatch: pytest.MonkeyPatch, hostile: str
) -> None:
    place = base / "shared"
    place.mkdir()
    root = place / f"vx-{os.getuid()}"
    if hostile == "link":
        root.symlink_to(make_tree(base / "target", {"kept": "kept\n"}))
    elif hostile == "file":
        root.touch()
    else:
        place.chmod(0o777)
    monkeypatch.setenv("VX_TMPDIR", str(place))
    result = box.run("true")
    assert (result.exit_code, result.started) == (125, False), shown(result)
    assert "VX_TMPDIR" in result.refusals[0].hint
    assert hostile != "link" or os.listdir(base / "target") == ["kept"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a directory to somebody else")
def test_a_temporary_root_of_another_user_is_refused(base: Path) -> None:
    (base / "theirs").mkdir()
    os.chown(base / "theirs", 61234, 61234)
    with pytest.raises(NotStarted, match="not a directory of this user"):
        task_tmpdir.make(str(base / "theirs"))
    with pytest.raises(NotStarted, match="belongs to another user"):
        task_tmpdir.make(str(base / "theirs/below"))


def test_an_own_temporary_root_that_others_could_read_is_closed(base: Path) -> None:
    (base / "vx").mkdir(mode=0o755)
    task_tmpdir.make(str(base / "vx"))
    assert stat.S_IMODE((base / "vx").stat().st_mode) == 0o700


def test_a_planted_bubblewrap_and_environment_file_are_not_used(
    box: Box, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = base / "witness"
    for place in (box.root / "node_modules/.bin", box.project / "node_modules/.bin", box.project, base / "planted"):
        make_tree(place, {"bwrap": f"#!/bin/sh\necho ran > {witness}\n", "sh": f"#!/bin/sh\necho ran > {witness}\n"})
        (place / "bwrap").chmod(0o755)
    make_tree(box.root, {".env": f"VX_TMPDIR={base}/planted\nPATH={base}/planted\n"})
    make_tree(box.project, {".env": f"VX_TMPDIR={base}/planted\n"})
    monkeypatch.setenv("PATH", f"{box.project}/node_modules/.bin:.:{base}/planted:{os.environ['PATH']}")
    monkeypatch.chdir(box.project)
    result = box.run('echo "$TMPDIR"')
    assert result.exit_code == 0, shown(result)
    assert f"{base}/planted" not in result.stdout.decode()
    assert not witness.exists()
    assert Path(find_bwrap(os.environ["PATH"], str(box.root))).parent != base / "planted"
