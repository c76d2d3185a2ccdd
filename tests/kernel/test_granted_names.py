"""Write grants by name and by pattern, as a file spells them: what a task makes of them, and what is left of a run.

Under `notify` the warden makes the names and mounts show them; a task sees no difference.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import RequestRefused, Session
from tests.conftest import REPOSITORY, make_tree
from tests.kernel.conftest import Link, Workspace, shown, violated
from tests.support.observers import ANSWERING, NEEDS_MASK

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox import RunResult


@pytest.fixture(params=ANSWERING)
def observer(request: pytest.FixtureRequest) -> str:
    """Those that can answer a call."""
    return str(request.param)


@pytest.fixture
def named(shop: Workspace) -> Workspace:
    return shop


def _tree(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


@pytest.mark.parametrize("grant", ["out.txt", "./out.txt", "lib/../out.txt"])
def test_a_name_is_written_and_nothing_is_there_before(named: Workspace, grant: str) -> None:
    assert named.passes("ls -a; echo x > out.txt; cat out.txt", write=[grant]) == ".\n..\nx\n"
    assert named.text("out.txt") == "x\n"


def test_a_name_declared_and_never_written_is_nothing(named: Workspace) -> None:
    before = _tree(named.root)
    named.passes("true", read=["."], write=["out.txt", "dist", "new/deep/out", "gen/*.py"])
    assert _tree(named.root) == before


@pytest.mark.parametrize("existing", [False, True])
def test_a_name_becomes_a_directory_is_removed_and_made_again(named: Workspace, existing: bool) -> None:
    if existing:
        make_tree(named.project, {"dist/old/a.js": "old\n"})
    named.passes(
        "rm -rf dist && mkdir dist && echo 1 > dist/a && mv dist gone 2>/dev/null; test ! -e gone || mv gone dist;"
        " rm -rf dist && mkdir -p dist/deep && echo 2 > dist/deep/b",
        read=["lib"],
        write=["dist"],
    )
    assert _tree(named.project / "dist") == ["deep", "deep/b"]
    assert named.text("dist/deep/b") == "2\n"


def test_what_stands_at_a_name_is_read_and_replaced(named: Workspace) -> None:
    make_tree(named.project, {"out.txt": "old\n"})
    assert named.passes("cat out.txt; echo new > .t && mv .t out.txt; cat out.txt", write=["out.txt"]) == "old\nnew\n"
    assert named.text("out.txt") == "new\n"


def test_siblings_of_a_name_do_not_exist_and_reading_one_counts(named: Workspace) -> None:
    result = named.run("cat lib/cart.py notes.md > res.txt", read=["lib/**"], write=["res.txt"])
    assert (result.exit_code, result.command_exit_code) == (1, 1), shown(result)
    assert violated(result, named.project) == [("read", "notes.md")]


def test_read_siblings_of_a_name_stay_readable_and_read_only(named: Workspace) -> None:
    make_tree(named.project, {"alias": Link("notes.md")})
    told = named.passes("ls; cat notes.md alias lib/cart.py > out.txt; readlink alias", read=["."], write=["out.txt"])
    assert told == "alias\nconf\nlib\nnotes.md\nnotes.md\n"
    assert named.text("out.txt") == "notes\nnotes\ncart\n"
    result = named.run("echo x > notes.md; rm -f lib/tax.py; mv conf c2; true", read=["."], write=["out.txt"])
    assert {path for _, path in violated(result, named.project)} == {"notes.md", "lib/tax.py", "conf"}, shown(result)
    assert named.text("notes.md") == "notes\n"


@pytest.mark.parametrize(
    ("read", "write"),
    [
        (["lib"], ["lib/cart.py"]),
        (["."], ["out.txt", "lib/*.tmp"]),
        (["lib", "conf"], ["lib/made/*.js"]),
    ],
)
def test_what_is_not_there_in_a_read_directory_may_be_looked_for_beside_a_name(
    named: Workspace, read: list[str], write: list[str]
) -> None:
    look = "for name in lib/none lib/no/ne ./lib/../lib/.none; do cat $name; test -e $name; done 2>/dev/null; true"
    named.passes(look, read=read, write=write)


def test_what_is_not_there_beside_a_name_counts_where_nothing_may_be_read(named: Workspace) -> None:
    result = named.run("cat none lib/none; true", read=["lib"], write=["out.txt", "lib/out.txt"])
    assert violated(result, named.project) == [("read", "none")], shown(result)


def test_a_wall_that_is_not_there_yet_stays_closed_beside_a_name(quick_mono: Workspace) -> None:
    (quick_mono.root / ".vx/cache/entry").unlink()
    (quick_mono.root / ".vx/cache").rmdir()
    result = quick_mono.run("cat none .vx/cache/x; true", read=["."], write=["out.txt"])
    assert violated(result, quick_mono.root) == [("read", ".vx/cache/x")], shown(result)


def test_a_pattern_covers_what_is_there_and_what_is_made_during_the_run(named: Workspace) -> None:
    make_tree(named.project, {"gen/old.py": "old\n", "gen/keep.txt": "kept\n"})
    told = named.passes(
        "mkdir -p gen/x/y && echo 1 > gen/x/y/a.py && rm gen/old.py && echo 2 > gen/b.py && find gen | sort",
        write=["gen/**/*.py"],
    )
    assert told == "gen\ngen/b.py\ngen/x\ngen/x/y\ngen/x/y/a.py\n"
    assert _tree(named.project / "gen") == ["b.py", "keep.txt", "x", "x/y", "x/y/a.py"]


def test_a_pattern_reaches_into_what_is_read(named: Workspace) -> None:
    make_tree(named.project, {"node_modules/dep/index.js": "dep\n", "lib/x.tsbuildinfo": "old\n"})
    named.passes(
        "cat lib/cart.py node_modules/dep/index.js && echo 1 > a.tsbuildinfo && echo 2 > lib/x.tsbuildinfo",
        read=["."],
        write=["**/*.tsbuildinfo"],
    )
    assert (named.text("a.tsbuildinfo"), named.text("lib/x.tsbuildinfo")) == ("1\n", "2\n")
    result = named.run("echo x > lib/cart.py; echo y > node_modules/a.tsbuildinfo", ["."], ["**/*.tsbuildinfo"])
    paths = [path for _, path in violated(result, named.project)]
    assert paths == ["lib/cart.py", "node_modules/a.tsbuildinfo"], shown(result)


def test_a_pattern_into_too_many_readable_entries_is_refused_with_the_directory(named: Workspace) -> None:
    make_tree(named.project, {f"lib/{n}": "" for n in range(2_001)})
    result = named.run("true", read=["."], write=["lib/**/*.log"])
    assert (result.exit_code, result.started) == (125, False)
    assert f'grant the directory "{named.project}/lib/"' in result.refusals[0].hint


def test_scratch_beside_a_pattern_is_made_moved_and_removed(named: Workspace) -> None:
    command = "mkdir .a.tmp && cp lib/cart.py .a.tmp/f && mv .a.tmp/f out/f && rmdir .a.tmp"
    named.passes(command, read=["lib/"], write=["out/", ".*.tmp/**"])
    assert sorted(os.listdir(named.project)) == ["conf", "lib", "notes.md", "out"]


@pytest.mark.parametrize(
    "command",
    [
        "echo x > .stage && mv .stage out.txt",
        "mkdir .d && echo x > .d/f && mv .d/f out.txt && rm -r .d",
        "echo x > a && ln a out.txt && rm a",
        "ln -s out.txt l && rm l && echo x > out.txt",
        "mv out.txt out.bak 2>/dev/null; echo x > out.txt; rm -f out.bak",
    ],
)
def test_what_is_made_beside_a_name_and_taken_away_again_is_no_violation(named: Workspace, command: str) -> None:
    before = _tree(named.root)
    named.passes(command, read=["."], write=["out.txt"])
    assert _tree(named.root) == sorted([*before, "apps/shop/out.txt"])


@NEEDS_MASK
def test_what_the_host_has_of_the_name_of_a_tasks_own_is_not_in_its_way(quick_shop: Workspace) -> None:
    make_tree(quick_shop.project, {".stage": "stale\n", ".d/f": "stale\n"})
    command = "echo x > .stage && mv .stage out.txt; mkdir -p .d && echo y > .d/f && cat .d/f && rm -r .d"
    assert quick_shop.passes(command, read=["lib"], write=["out.txt"]) == "y\n"
    assert (quick_shop.text(".stage"), quick_shop.text(".d/f"), quick_shop.text("out.txt")) == (
        "stale\n",
        "stale\n",
        "x\n",
    )
    result = quick_shop.run("truncate -c -s 0 .stage; test ! -e .stage", read=["lib"], write=["out.txt"])
    assert ("write", ".stage") in violated(result, quick_shop.project), shown(result)
    assert quick_shop.text(".stage") == "stale\n"


def test_what_is_left_beside_a_name_is_a_violation_and_goes_with_the_run(named: Workspace) -> None:
    heard: list[str] = []
    before = _tree(named.root)
    command = "echo x > junk; mkdir -p d/e; echo y > d/e/f; echo z > out.txt"
    result = named.run(command, read=["."], write=["out.txt"], on_violation=lambda v: heard.append(v.line))
    assert (result.exit_code, result.command_exit_code) == (1, 0), shown(result)
    assert violated(result, named.project) == [("write", "d"), ("write", "junk")]
    assert heard == [violation.line for violation in result.violations]
    assert f"{named.project}/junk was made beside a granted name" in heard[1]
    assert "$TMPDIR" in heard[1]
    assert result.fix is not None
    assert result.fix.allow.write == ("d", "junk")
    assert _tree(named.root) == sorted([*before, "apps/shop/out.txt"])
    named.passes(command, read=["."], write=["out.txt", "d", "junk"])


def test_what_is_left_beside_a_name_can_be_ignored(named: Workspace) -> None:
    from sandbox import Ignore

    fields = {"ignore": Ignore(write=("*.part",))}
    named.passes("echo x > a.part; echo y > out.txt", write=["out.txt"], fields=fields)
    assert not (named.project / "a.part").exists()


def test_a_file_without_a_name_is_linked_into_place(named: Workspace) -> None:
    program = (
        "import os; fd = os.open('.', os.O_TMPFILE | os.O_RDWR); os.write(fd, b'x\\n');"
        " os.link(f'/proc/self/fd/{fd}', 'out.txt', src_dir_fd=fd, follow_symlinks=True)"
    )
    named.passes(f'{os.path.realpath(sys.executable)} -I -S -c "{program}"', write=["out.txt"])
    assert named.text("out.txt") == "x\n"


@pytest.mark.parametrize("command", ["rm notes.md", "chmod 600 notes.md", "truncate -c -s 0 notes.md", "mv notes.md x"])
def test_changing_a_hidden_sibling_of_a_name_counts(named: Workspace, command: str) -> None:
    result = named.run(f"{command} 2>/dev/null; true", write=["out.txt"])
    assert result.exit_code == 1, shown(result)
    assert {path for _, path in violated(result, named.project)} == {"notes.md"}
    assert named.text("notes.md") == "notes\n"


@pytest.mark.parametrize("grant", [".git", ".vx", "sub"])
def test_a_name_that_is_or_holds_a_wall_is_refused(quick_mono: Workspace, grant: str) -> None:
    with pytest.raises(RequestRefused, match=r"(is|holds) the (repository's data|cache|nested project)"):
        quick_mono.request(write=[grant])


def test_patterns_around_walls_leave_them_closed(quick_mono: Workspace) -> None:
    command = "echo 1 > new; mkdir made; echo 2 > made/f; cat sub/kit/x"
    result = quick_mono.run(command, write=["*"])
    assert violated(result, quick_mono.project) == [("read", "sub/kit/x")], shown(result)
    assert (quick_mono.root / "made/f").read_text() == "2\n"
    result = quick_mono.run("rm -rf .git .vx; true", write=[".*"])
    assert (quick_mono.root / ".git/HEAD").exists()
    assert (quick_mono.root / ".vx/cache/entry").exists()


def test_a_listing_shows_what_a_pattern_grants_and_no_wall(quick_mono: Workspace) -> None:
    assert set(quick_mono.passes("touch new; ls -a", write=["*"]).split()) == {".", "..", "src", "new"}


@pytest.mark.parametrize("grants", [[".*"], ["d"], ["d*"]])
def test_names_other_programs_execute_are_in_no_grant_of_names(named: Workspace, grants: list[str]) -> None:
    make_tree(named.project, {".bashrc": "mine\n"})
    result = named.run("echo x > .bashrc; echo x > .zshrc; mkdir -p d && echo x > d/.bashrc; true", write=grants)
    assert result.exit_code == 1, shown(result)
    assert named.text(".bashrc") == "mine\n"
    assert not (named.project / ".zshrc").exists()
    assert not (named.project / "d/.bashrc").exists()


@pytest.mark.parametrize("grant", ["notes.md/x", "notes.md/*.py", "notes.md/a/b"])
def test_a_file_where_a_name_needs_a_directory_is_refused_and_nothing_is_made(named: Workspace, grant: str) -> None:
    before = _tree(named.root)
    with pytest.raises(RequestRefused, match=r"needs a directory where the file .*notes.md stands"):
        named.request(write=["new/ok", grant])
    assert _tree(named.root) == before


def test_a_name_spelled_through_a_link_works_by_both_names(named: Workspace) -> None:
    make_tree(named.project, {"real/x": "x\n", "alias": Link("real")})
    named.passes("echo 1 > alias/out && echo 2 >> real/out && cat alias/out", write=["alias/out"])
    assert named.text("real/out") == "1\n2\n"


def test_a_name_in_a_directory_grant_is_covered_by_it(named: Workspace) -> None:
    named.passes("echo 1 > out/a && echo 2 > out/b && mv out/b out/c", write=["out/", "out/a", "out/*.x"])
    assert _tree(named.project / "out") == ["a", "c"]


def test_a_directory_grant_inside_a_name_is_part_of_it(named: Workspace) -> None:
    named.passes("rm -rf dist && mkdir dist && echo 1 > dist/a", write=["dist", "dist/sub/"])
    assert _tree(named.project / "dist") == ["a"]


@pytest.mark.parametrize("existing", [False, True])
def test_missing_parents_of_a_name_are_made_and_go_if_nothing_is_in_them(named: Workspace, existing: bool) -> None:
    if existing:
        make_tree(named.project, {"new": None})
    named.passes("test -d new/deep", write=["new/deep/out"])
    assert (named.project / "new").exists() is existing
    named.passes("echo x > new/deep/out", write=["new/deep/out"])
    assert named.text("new/deep/out") == "x\n"


def test_runs_beside_each_other_keep_the_parents_the_other_needs(named: Workspace) -> None:
    results: list[RunResult] = []

    def run(command: str, name: str) -> None:
        results.append(named.run(command, write=[f"new/{name}"]))

    slow = threading.Thread(target=run, args=("sleep 1; echo x > new/slow", "slow"))
    slow.start()
    time.sleep(0.3)
    run("true", "quick")
    slow.join()
    assert [result.exit_code for result in results] == [0, 0], [shown(result) for result in results]
    assert _tree(named.project / "new") == ["slow"]


@pytest.mark.parametrize("how", ["passes", "fails", "refused", "violates", "cancelled", "times out"])
def test_no_run_leaves_anything_in_the_workspace(named: Workspace, how: str) -> None:
    before = _tree(named.root)
    grants = ["new/deep/out", "out.txt", "gen/**/*.py"]
    command = {"fails": "false", "violates": "echo x > junk", "cancelled": "kill -9 0", "times out": "sleep 60"}
    options: dict[str, Any] = {"timeout": 0.2} if how == "times out" else {}
    if how == "refused":
        result = named.run("true", write=grants, observer="none")
        assert result.exit_code == 125
    else:
        result = named.run(f"echo x > .stage; {command.get(how, 'rm .stage')}", write=grants, **options)
        assert (result.exit_code == 0) is (how == "passes"), shown(result)
    assert _tree(named.root) == before


def test_a_killed_executor_leaves_nothing_once_another_run_was_made(named: Workspace) -> None:
    make_tree(named.root, {".vx/workspace.toml": ""})
    allow = 'write = ["new/deep/out", "out.txt"]'
    make_tree(
        named.project,
        {"vx.toml": f"[tasks.t.exec]\ncommand = 'echo x > .stage; sleep 60'\n[tasks.t.exec.sandbox.allow]\n{allow}\n"},
    )
    before = _tree(named.root)
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}"}
    running = subprocess.Popen(
        (sys.executable, "-m", "vxconf", "run", "t", "--observer", named.observer), cwd=named.project, env=environment
    )
    try:
        end = time.monotonic() + 20
        while not list(named.root.glob(".vx/tmp/run-*/0/.stage")):
            assert time.monotonic() < end
            time.sleep(0.02)
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert (named.project / "new/deep").is_dir()
    time.sleep(0.5)  # the task ends with it, a moment later
    with Session() as session:
        named.session = session
        named.passes("true", read=["lib"])
    assert _tree(named.root) == before


def test_the_repository_is_clean_while_a_task_runs(named: Workspace) -> None:
    shutil.rmtree(named.root / ".git")
    make_tree(named.root, {".gitignore": "/.vx/cache\n"})
    git = ("git", "-C", str(named.root), "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "all")):
        subprocess.run((*git, *words), check=True)
    seen: list[str] = []

    def look(_: bytes) -> None:
        done = subprocess.run((*git, "status", "--porcelain"), capture_output=True, text=True, check=True)
        seen.append(done.stdout)

    named.passes(
        "echo x > .stage; echo staged; sleep 0.5; rm .stage", ["."], ["new/deep/out", "out.txt"], on_stdout=look
    )
    assert seen == [""]


def test_a_granted_name_moved_to_where_nothing_may_be_made_is_refused_and_told(named: Workspace) -> None:
    for way in ("mv", "ln"):
        result = named.run(f"echo x > res.txt; {way} res.txt conf/new; true", ["conf/real.json"], ["res.txt"])
        assert violated(result, named.project) == [("write", "conf/new")], shown(result)
        assert (result.trace, named.text("res.txt")) == ("complete", "x\n"), shown(result)


def test_a_search_for_files_and_a_link_beside_a_name(named: Workspace) -> None:
    make_tree(named.project, {"cfg": Link("conf/real.json")})
    result = named.run("readlink cfg > res.txt", write=["res.txt"])
    assert violated(result, named.project) == [("read", "cfg")], shown(result)
    result = named.run("stat -c %s notes.md > res.txt", write=["res.txt"])
    assert violated(result, named.project) == [("read", "notes.md")], shown(result)


def test_without_dev_fuse_names_are_made_by_the_warden_and_nothing_is_weaker(
    quick_shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refusing(path: str, flags: int, *rest: int, **more: int) -> int:
        if path == "/dev/fuse":
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", refusing)
    before = _tree(quick_shop.root)
    result = quick_shop.run("echo x > new/out.txt", write=["new/out.txt"])
    assert (result.exit_code, result.observer, result.protections.filesystem) == (0, "notify", "full"), shown(result)
    assert _tree(quick_shop.root) == sorted([*before, "apps/shop/new", "apps/shop/new/out.txt"])
    assert quick_shop.run("true", write=["out/"]).protections.filesystem == "full"


@pytest.mark.parametrize("watching", ["none", "strace"])
def test_who_answers_no_call_is_given_only_directories_that_hold_nothing_else(
    quick_shop: Workspace, watching: str
) -> None:
    if watching == "strace" and shutil.which("strace") is None:
        pytest.skip("strace is not installed here")
    result = quick_shop.run("true", write=["out.txt"], observer=watching)
    assert (result.exit_code, result.started) == (125, False)
    assert f"the observer {watching} keeps no task from {quick_shop.project}/conf" in result.refusals[0].message
    assert "trailing slash" in result.refusals[0].hint
    result = quick_shop.run("echo x > new/out.txt", write=["new/out.txt"], observer=watching)
    assert (result.exit_code, result.protections.filesystem) == (0, "weaker"), shown(result)
    assert quick_shop.text("new/out.txt") == "x\n"


def test_what_nobody_saw_being_made_beside_a_name_is_told_and_stays(quick_shop: Workspace) -> None:
    result = quick_shop.run("echo x > new/junk", write=["new/out.txt"], observer="none")
    assert (result.exit_code, violated(result, quick_shop.project)) == (1, [("write", "new/junk")]), shown(result)
    assert "stays, for nobody saw who made it" in result.violations[0].line
    assert quick_shop.text("new/junk") == "x\n"
