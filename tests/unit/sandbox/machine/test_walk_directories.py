from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sandbox.machine import walk_directories
from tests.conftest import Link, make_tree

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox.base.host_facts import Listing


def everything(directory: Path) -> list[Listing]:
    return list(walk_directories.below(str(directory), lambda _path: True))


def test_it_finds_what_a_plain_walk_finds_however_deep(tmp_path: Path) -> None:
    """Below the levels whose descriptors are kept, each directory is found again on the way back."""
    here = tmp_path.resolve()
    for level in range(90):
        make_tree(here, {"a/x": "", "b/y/z": "", "file": "", "link": Link("..")})
        here /= "ab"[level % 2]
    found = {one.path: (sorted(one.names), sorted(one.directories)) for one in everything(tmp_path)}
    wanted = {
        path: (sorted(directories + files), sorted(name for name in directories if name != "link"))
        for path, directories, files in os.walk(tmp_path)
    }
    assert found == wanted
    assert len(found) > 200


def test_a_directory_is_entered_only_where_that_is_asked_for_and_never_by_a_link(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a/in/x": "", "b/x": "", "c": Link("a"), "d": None})
    found = walk_directories.below(str(tmp_path), lambda path: not path.endswith(("/in", "/d")))
    assert {os.path.relpath(one.path, tmp_path) for one in found} == {".", "a", "b"}
    assert list(walk_directories.below(str(tmp_path / "c"), lambda _path: True)) == []
    assert list(walk_directories.below(str(tmp_path / "c/in"), lambda _path: True)) == []
    assert list(walk_directories.below(str(tmp_path / "gone"), lambda _path: True)) == []


@pytest.mark.parametrize("depth", [3, 80])
def test_who_moves_directories_meanwhile_leads_it_nowhere_else(tmp_path: Path, depth: int) -> None:
    make_tree(tmp_path, {"elsewhere/secret/x": ""})
    top = make_tree(tmp_path / "top", {"/".join("n" * depth) + "/end/x": "", "n/beside/x": ""})
    swapped = False
    found = []
    for one in walk_directories.below(str(top), lambda _path: True):
        found.append(one)
        if one.path.endswith("/end"):
            os.rename(top / "n", tmp_path / "away")
            os.symlink(tmp_path / "elsewhere", top / "n")
            swapped = True
    assert swapped
    assert all("secret" not in one.names for one in found)


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_closed_directory_is_told_and_opened_where_that_is_asked_for(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a/in/deep/x": "", "b/x": ""})
    (tmp_path / "a/in").chmod(0)
    (tmp_path / "a").chmod(0o400)
    assert {os.path.relpath(one.path, tmp_path) for one in everything(tmp_path) if one.closed} == {"a/in"}
    found = list(walk_directories.below(str(tmp_path), lambda _path: True, opening=True))
    assert {os.path.relpath(one.path, tmp_path) for one in found} == {".", "a", "a/in", "a/in/deep", "b"}
    assert not any(one.closed for one in found)
