"""Directories that may be written, and writes that are refused."""

from __future__ import annotations

import os
import shlex
import sys

import pytest

from sandbox import RequestRefused
from tests.conftest import make_tree
from tests.kernel.conftest import Link, Workspace, shown, violated


@pytest.mark.parametrize("grant", ["out/", "out/**", "out/**/*", "./out/."])
def test_a_directory_grant_is_made_and_kept(shop: Workspace, grant: str) -> None:
    shop.passes("mkdir out/deep && echo x > out/deep/f", write=[grant])
    assert shop.text("out/deep/f") == "x\n"


def test_a_directory_made_for_a_run_stays_when_the_run_leaves_it_empty(shop: Workspace) -> None:
    shop.passes("true", write=["out/"])
    assert (shop.project / "out").is_dir()


def test_a_tilde_or_an_absolute_grant_makes_nothing_in_the_project(shop: Workspace) -> None:
    (shop.home / "there").mkdir()
    shop.passes("echo x > lib/new && echo x > ~/there/new", write=["lib/**", "~/there", f"{shop.base}/made/"])
    assert not (shop.project / "~").exists()
    assert sorted(p.name for p in shop.project.iterdir()) == ["conf", "lib", "notes.md"]


@pytest.mark.parametrize("spelling", ["cold/cache/", "cold/**"])
def test_a_missing_directory_outside_the_workspace_is_made(shop: Workspace, spelling: str) -> None:
    shop.passes(
        f"mkdir -p {shop.base}/cold/cache && echo x > {shop.base}/cold/cache/f", write=[f"{shop.base}/{spelling}"]
    )
    assert (shop.base / "cold/cache/f").read_text() == "x\n"


def test_an_existing_file_outside_the_project_is_bound_by_itself(shop: Workspace) -> None:
    make_tree(shop.base, {"elsewhere/state": "old\n", "elsewhere/other": "other\n"})
    state = shop.base / "elsewhere" / "state"
    shop.passes(f"echo new > {state}", write=[str(state)])
    assert state.read_text() == "new\n"
    result = shop.run(f"rm {state}", write=[str(state)])
    assert result.exit_code == 1
    result = shop.run(f"echo new > {shop.base}/elsewhere/other", write=[str(state)])
    assert result.exit_code != 0
    assert (shop.base / "elsewhere" / "other").read_text() == "other\n"


@pytest.mark.parametrize("grant", ["notes.md/", "notes.md/x/"])
def test_a_file_where_a_directory_is_granted_refuses_the_task(quick_shop: Workspace, grant: str) -> None:
    with pytest.raises(RequestRefused, match=r"needs a directory where the file .*notes.md stands"):
        quick_shop.request(write=["ok/", grant])
    assert not (quick_shop.project / "ok").exists()


def test_a_loop_of_links_on_the_way_refuses_the_task(quick_shop: Workspace) -> None:
    make_tree(quick_shop.project, {"loop": Link("loop")})
    for grant in ("loop/", "loop/x/", "loop/x/y/"):
        with pytest.raises(RequestRefused, match="passes through a loop of links"):
            quick_shop.request(write=[grant])
    assert quick_shop.passes("cat lib/cart.py", read=["lib", "loop/x", "loop"]) == "cart\n"


@pytest.mark.parametrize(("grant", "said"), [("../../res.txt", "names nothing"), ("/nowhere/[ab]", "is a pattern")])
def test_a_missing_name_or_a_pattern_outside_is_refused(quick_shop: Workspace, grant: str, said: str) -> None:
    with pytest.raises(RequestRefused, match=f"outside the .* {said}|{said} outside"):
        quick_shop.request(write=[grant])


def test_a_write_grant_inside_a_read_grant_is_writable(shop: Workspace) -> None:
    shop.passes("mkdir -p out && cp lib/cart.py out/c.py", read=["."], write=["out/"])
    assert shop.text("out/c.py") == "cart\n"


def test_a_write_grant_can_be_read(shop: Workspace) -> None:
    make_tree(shop.project, {"out/old.txt": "old\n"})
    assert shop.passes("cat out/old.txt; touch out/m; ls out", write=["out/**"]) == "old\nm\nold.txt\n"


def test_a_write_grant_spelled_through_a_link_works_by_both_names(shop: Workspace) -> None:
    make_tree(shop.project, {"real_gen": None, "gen": Link("real_gen")})
    shop.passes("echo x > gen/x && echo y > real_gen/y", read=["."], write=["gen/"])
    assert (shop.text("real_gen/x"), shop.text("real_gen/y")) == ("x\n", "y\n")


@pytest.mark.parametrize("absolute", [True, False])
def test_a_sibling_spelled_on_purpose_can_be_granted(shop: Workspace, absolute: bool) -> None:
    grant = f"{shop.root}/libs/money/gen/" if absolute else "../../libs/money/gen/"
    shop.passes("echo x > ../../libs/money/gen/f", write=[grant])
    assert (shop.root / "libs/money/gen/f").read_text() == "x\n"
    assert shop.run("cat ../../libs/money/src/coin.py", write=[grant]).exit_code == 1


def test_a_granted_directory_is_emptied_but_not_removed(shop: Workspace) -> None:
    make_tree(shop.project, {"out/a": "a", "out/d/b": "b"})
    result = shop.run("rm -rf out && mkdir out", write=["out/"])
    assert result.exit_code != 0, shown(result)
    assert list((shop.project / "out").iterdir()) == []
    result = shop.run("mv out gone", write=["out/"])
    assert result.exit_code != 0
    assert (shop.project / "out").is_dir()


def test_everything_is_possible_inside_a_granted_directory(shop: Workspace) -> None:
    command = (
        "cd out && mkdir -p a/b && echo 1 > a/b/f && ln -s f a/b/l && ln a/b/f a/b/h && mv a/b c && chmod 600 c/f "
        "&& touch -d 2001-02-03 c/f && mkfifo c/p && truncate -s 9 c/h && rm c/p && cp -a c d && rm -rf c "
        "&& cat d/l | tr -d '\\0'"
    )
    assert shop.passes(command, write=["out/"]) == "1\n"


def test_temporary_and_granted_directories_are_writable_under_the_covers(shop: Workspace) -> None:
    assert shop.passes("echo x > out/f && echo y > $TMPDIR/g && cat out/f $TMPDIR/g", write=["out/"]) == "x\ny\n"


def test_a_refused_write_that_is_swallowed_fails_the_task(shop: Workspace) -> None:
    result = shop.run("echo x > lib/new.txt || true", read=["."], write=["out/"])
    assert (result.exit_code, result.command_exit_code) == (1, 0), shown(result)
    assert violated(result, shop.project) == [("write", "lib/new.txt")]
    assert result.violations[0].errno == "EROFS"
    shop.passes("echo x > lib/new.txt", read=["."], write=["out/", "lib/"])
    assert shop.text("lib/new.txt") == "x\n"


@pytest.mark.parametrize(
    "command",
    [
        "echo x > a.txt",
        "mkdir new",
        "rm notes.md",
        "mv notes.md moved.md",
        "ln notes.md hard",
        "ln -s notes.md soft",
        "chmod 600 notes.md",
        "truncate -s 0 notes.md",
        "mkfifo pipe",
        "echo more >> notes.md",
        "rm -r lib",
        "mv lib lib2",
    ],
)
def test_every_way_to_write_into_a_read_grant_is_refused_and_reported(shop: Workspace, command: str) -> None:
    before = sorted((str(p), p.lstat().st_mode, p.lstat().st_size) for p in shop.project.rglob("*"))
    result = shop.run(f"{command} || true", read=["."])
    assert sorted((str(p), p.lstat().st_mode, p.lstat().st_size) for p in shop.project.rglob("*")) == before
    assert result.exit_code == 1, shown(result)
    assert {v.kind for v in result.violations} == {"write"}


def test_in_a_project_that_is_the_root_a_refused_write_is_its_own(mono: Workspace) -> None:
    result = mono.run("echo x > a.txt || true")
    assert violated(result, mono.project) == [("write", "a.txt")]
    assert not (mono.root / "a.txt").exists()


def test_making_a_directory_that_is_there_is_no_violation(shop: Workspace) -> None:
    make_tree(shop.project, {"lib/sub": None})
    assert shop.passes("mkdir -p lib/sub && echo ok", read=["lib"]) == "ok\n"
    result = shop.run("mkdir -p gen || true", read=["lib"])
    assert violated(result, shop.project) == [("write", "gen")]


def test_a_refused_directory_is_reported_once_and_not_again_by_what_follows(shop: Workspace) -> None:
    result = shop.run("mkdir -p gen/deep; cd gen/deep; true", read=["lib"])
    assert violated(result, shop.project) == [("write", "gen")], shown(result)
    assert result.fix is not None
    assert (result.fix.allow.read, result.fix.allow.write) == ((), ("gen",))


def test_a_refused_write_outside_the_project_leaves_a_pass_green(shop: Workspace) -> None:
    result = shop.run("echo x > ../../libs/money/new || true; echo y > /etc/never || true", read=["."])
    assert (result.exit_code, result.violations, result.hints) == (0, (), ()), shown(result)


def test_times_of_a_readable_file_are_no_violation_and_of_a_hidden_one_are(shop: Workspace) -> None:
    def touch(name: str) -> str:
        program = f"import os, contextlib\nwith contextlib.suppress(OSError): os.utime('{name}')"
        return shlex.join((os.path.realpath(sys.executable), "-I", "-S", "-c", program))

    before = (shop.project / "notes.md").stat().st_mtime_ns
    shop.passes(touch("notes.md"), read=["."])
    assert (shop.project / "notes.md").stat().st_mtime_ns == before
    assert violated(shop.run(touch("notes.md"), read=["lib"]), shop.project)[0][1] == "notes.md"
