"""File systems the host has mounted below what is granted, or beside it, before the run and during it."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conftest import make_tree
from tests.redteam.conftest import Box, shown, violated
from tests.support.observers import ANSWERING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root mounts on the host")


@pytest.fixture
def mounted(base: Path) -> Iterator[list[Path]]:
    """Places something is mounted on; unmounted at the end."""
    places: list[Path] = []
    yield places
    for place in reversed(places):
        subprocess.run(("umount", "-l", place), check=True)
    assert base.is_dir()


def mount(places: list[Path], place: Path, text: str) -> None:
    place.mkdir(exist_ok=True)
    done = subprocess.run(("mount", "-t", "tmpfs", "tmpfs", place), check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no tmpfs can be mounted: {done.stderr.strip()}")
    places.append(place)
    make_tree(place, {"f": text})


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
def test_what_is_mounted_below_grants_is_as_open_as_they_are(each_box: Box, mounted: list[Path]) -> None:
    project = each_box.project
    make_tree(project, {"dist/old": "old\n"})
    each_box.write = ("out/", "dist")
    mount(mounted, project / "lib/mnt", "in lib\n")
    mount(mounted, project / "out/mnt", "in out\n")
    mount(mounted, project / "dist/mnt", "in dist\n")
    mount(mounted, project / "conf", "the mounted\n")
    result = each_box.run(
        "cat lib/mnt/f out/mnt/f dist/mnt/f; echo x > out/mnt/new; echo x > dist/mnt/new; cat conf/f;"
        " echo x > lib/mnt/f; rm lib/mnt/f; echo x > conf/new; mv dist/mnt dist/moved; rmdir out/mnt; mv conf out/c;"
        " rm -rf dist/mnt; true"
    )
    assert b"the " not in result.stdout, shown(result)
    assert result.stdout.startswith(b"in lib\nin out\n"), shown(result)
    assert {("read", "conf/f"), ("write", "lib/mnt/f")} <= violated(result, project), shown(result)
    assert (project / "lib/mnt/f").read_text() == "in lib\n"
    assert (project / "out/mnt/new").read_text() == "x\n"
    assert os.listdir(project / "conf") == ["f"]
    # a mount point of the host's is neither moved nor removed
    assert os.path.ismount(project / "dist/mnt")
    assert os.path.ismount(project / "out/mnt")


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
def test_what_is_mounted_during_the_run_does_not_arrive(each_box: Box, mounted: list[Path]) -> None:
    project = each_box.project
    make_tree(project, {"lib/later/own": "own\n", "conf/later/own": "the own\n"})
    each_box.write = ("out/", "name")

    def ready(chunk: bytes) -> None:
        if b"ready" in chunk:
            mount(mounted, project / "lib/later", "the later\n")
            mount(mounted, project / "conf/later", "the later\n")
            mount(mounted, project / "secret", "the later\n")
            (project / "out/go").touch()

    result = each_box.run(
        "echo ready; until [ -e out/go ]; do sleep 0.02; done;"
        " cat lib/later/own; cat lib/later/f conf/later/f secret/f; echo x > lib/later/f; echo x > secret/new; true",
        on_stdout=ready,
    )
    assert result.stdout == b"ready\nown\n", shown(result)
    assert os.listdir(project / "lib/later") == os.listdir(project / "secret") == ["f"]
    assert ("write", "lib/later/f") in violated(result, project), shown(result)
