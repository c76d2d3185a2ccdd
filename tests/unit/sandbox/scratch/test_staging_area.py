from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sandbox.contract.errors import NotStarted
from sandbox.scratch import staging_area

if TYPE_CHECKING:
    from pathlib import Path


def test_an_area_ignores_itself_and_leaves_nothing(tmp_path: Path) -> None:
    area = staging_area.make(str(tmp_path))
    assert sorted(os.listdir(area.path)) == [".gitignore", "made"]
    os.mkdir(area.path + "/0")
    os.mkdir(area.path + "/0/locked", 0)
    area.remove()
    assert list(tmp_path.iterdir()) == []


def test_two_areas_live_side_by_side(tmp_path: Path) -> None:
    one, two = staging_area.make(str(tmp_path)), staging_area.make(str(tmp_path))
    assert one.path != two.path
    assert os.path.isdir(one.path)
    one.remove()
    assert os.path.isdir(two.path)
    two.remove()
    assert os.listdir(tmp_path / ".vx") == []


def test_what_a_killed_run_left_is_swept(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        staging_area.make(str(tmp_path))
        os._exit(0)
    os.waitpid(pid, 0)
    (left,) = (tmp_path / ".vx" / "tmp").iterdir()
    (tmp_path / ".vx" / "tmp" / "of-somebody-else").touch()
    area = staging_area.make(str(tmp_path))
    assert not left.exists()
    area.remove()
    assert os.listdir(tmp_path / ".vx" / "tmp") == ["of-somebody-else"]


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".vx").symlink_to("elsewhere")
    with pytest.raises(NotStarted, match="is no directory"):
        staging_area.make(str(tmp_path))
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_killed_runs_own_ways_go_with_the_next_ones_and_only_those(tmp_path: Path) -> None:
    killed = staging_area.make(str(tmp_path))
    os.close(killed.fd)
    staging_area.sweep(str(tmp_path))
    assert os.listdir(tmp_path) == []
    (tmp_path / ".vx").mkdir()
    killed = staging_area.make(str(tmp_path))
    os.close(killed.fd)
    staging_area.sweep(str(tmp_path))
    assert os.listdir(tmp_path) == [".vx"]
    assert os.listdir(tmp_path / ".vx") == []
