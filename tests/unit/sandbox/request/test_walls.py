from __future__ import annotations

import pytest

from sandbox.request import walls
from tests.support.memory_files import MemoryFiles
from tests.support.plans import HOME, request

MAIN = ("/main/.git/HEAD", "/main/src/x", "/wt/p/x", f"{HOME}/x")
WORKTREE = {
    "/wt/.git": "gitdir: /main/.git/worktrees/wt\n",
    "/main/.git/worktrees/wt/commondir": "../..\n",
    "/main/.git/worktrees/wt/HEAD": "ref: refs/heads/side\n",
}


def test_a_repository_in_the_workspace_is_one_wall() -> None:
    files = MemoryFiles.of("/ws/.git/HEAD")
    assert walls.repository_data("/ws", files) == ("/ws/.git",)
    assert walls.around("/ws", HOME, files) == ()
    assert [wall.path for wall in walls.fixed("/ws", cache_dir=None, files=files)] == [
        "/ws/.git",
        "/ws/.vx/cache",
        "/ws/.vx/tmp",
    ]


def test_without_a_repository_there_is_none_to_wall_off() -> None:
    files = MemoryFiles.of("/ws/x", "/.git/", "/up/.git")
    assert walls.repository_data("/ws", files) == ()
    assert walls.around("/ws", HOME, files) == ()


def test_of_a_workspace_below_the_top_level_the_data_and_the_rest_are_walls() -> None:
    files = MemoryFiles.of("/repo/.git/HEAD", "/repo/other/x", "/repo/pkgs/p/x")
    made = request(files, workspace="/repo/pkgs", project="/repo/pkgs/p")
    assert "/repo/.git" in {wall.path for wall in made.walls}
    assert [wall.path for wall in made.around] == ["/repo"]


def test_of_a_worktree_the_shared_data_its_own_and_the_main_checkout_are_walls() -> None:
    files = MemoryFiles.of(*MAIN, texts=WORKTREE)
    assert walls.repository_data("/wt", files) == ("/main/.git",)
    assert [wall.path for wall in walls.around("/wt", HOME, files)] == ["/main"]


def test_of_a_submodule_the_data_of_the_whole_is_a_wall() -> None:
    files = MemoryFiles.of(
        "/super/.git/modules/sub/HEAD", "/super/x", texts={"/super/sub/.git": "gitdir: ../.git/modules/sub"}
    )
    assert walls.repository_data("/super/sub", files) == ("/super/.git",)
    assert [wall.path for wall in walls.around("/super/sub", HOME, files)] == ["/super"]


def test_a_repository_kept_elsewhere_under_another_name_is_a_wall() -> None:
    files = MemoryFiles.of("/data/ws.git/HEAD", texts={"/ws/.git": "gitdir: /data/ws.git"})
    assert walls.repository_data("/ws", files) == ("/data/ws.git",)
    assert walls.around("/ws", HOME, files) == ()
    files = MemoryFiles.of("/ws/.repo/HEAD", texts={"/ws/.git": "gitdir: .repo"})
    assert "/ws/.repo" in {wall.path for wall in walls.fixed("/ws", cache_dir=None, files=files)}


def test_a_repository_that_is_a_link_is_a_wall_where_it_leads() -> None:
    files = MemoryFiles.of("/data/git/HEAD", "/ws/p/", links={"/ws/.git": "/data/git"})
    assert walls.repository_data("/ws", files) == ("/data/git",)


def test_a_checkout_that_holds_home_is_left_open_and_its_data_is_not() -> None:
    root = f"{HOME}/code/ws"
    files = MemoryFiles.of(f"{HOME}/.git/HEAD", f"{root}/p/x")
    assert walls.around(root, HOME, files) == ()
    assert f"{HOME}/.git" in {wall.path for wall in walls.fixed(root, cache_dir=None, files=files)}


@pytest.mark.parametrize("text", ["", "gitdir:", "gitdir:   \n", "other: /main/.git", "\0", "gitdir: .", "gitdir: /"])
def test_a_file_that_points_to_no_repository_walls_nothing_else_off(text: str) -> None:
    files = MemoryFiles.of("/ws/p/x", texts={"/ws/.git": text})
    assert [wall.path for wall in walls.fixed("/ws", cache_dir=None, files=files)] == [
        "/ws/.git",
        "/ws/.vx/cache",
        "/ws/.vx/tmp",
    ]
    assert walls.around("/ws", HOME, files) == ()
