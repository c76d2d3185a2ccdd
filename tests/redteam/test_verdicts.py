"""What a hostile command can make of its own verdict: nothing better than it is."""

from __future__ import annotations

import os
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from sandbox.linux.run import run
from tests.redteam.conftest import PYTHON, Box, processes, shown, violated

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "GRACE", 0.3)


def test_a_swallowed_denial_is_no_pass_whoever_meets_it(each_box: Box) -> None:
    for command in (
        "cat secret.txt 2>/dev/null; exit 0",
        (
            "(setsid sh -c '(cat secret.txt; echo met > out/met) &' &) 2>/dev/null;"
            " until [ -e out/met ]; do sleep 0.02; done; rm out/met"
        ),
        "trap '' TERM HUP INT; cat secret.txt 2>/dev/null; kill -9 -1 2>/dev/null; exit 0",
        "cat secret.txt >/dev/null 2>&1 & wait; exec 0<&- 1>&- 2>&-; exit 0",
        "kill -STOP 1; kill -KILL 1; kill -RTMIN 1; cat secret.txt; exit 0",
    ):
        result = each_box.run(command)
        assert (result.exit_code, result.command_exit_code, result.trace) == (1, 0, "complete"), (
            command,
            shown(result),
        )
        assert ("read", "secret.txt") in violated(result, each_box.project), (command, shown(result))


def test_a_flood_of_other_calls_hides_nothing(each_box: Box) -> None:
    flood = "while :; do : > out/x$$; mkdir out/d$$; rmdir out/d$$; done"
    result = each_box.run(f"({flood}) & ({flood}) & cat secret.txt; mkdir lib/new; exit 0")
    assert (result.exit_code, result.command_exit_code) == (1, 0), shown(result)
    assert {("read", "secret.txt"), ("write", "lib/new")} <= violated(result, each_box.project)


@pytest.mark.parametrize(
    "command",
    [
        "kill -STOP $$",
        "(kill -STOP $BASHPID 2>/dev/null || kill -STOP $$) & sleep 1000",
        "trap '' TERM; while :; do sleep 1; done",
        "while :; do echo yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes; done",
        "exec >&- 2>&-; sleep 1000",
        "setsid sh -c 'trap \"\" TERM; sleep 1000' & sleep 1000",
    ],
    ids=["stopped", "stopped child", "deaf", "talking", "silent", "left its session"],
)
def test_a_timeout_ends_whatever_it_meets(box: Box, command: str) -> None:
    result = box.run(command, timeout=0.5)
    assert (result.exit_code, result.timed_out) == (124, True), shown(result)
    assert result.command_exit_code in (137, 143)
    assert len(result.stdout) <= 17 << 20


def test_a_bomb_of_processes_ends_with_its_time(each_box: Box) -> None:
    # bounded, since a machine of its own is not at hand: 2**9 processes, none of which ends by itself
    code = "import os,time\\nfor n in range(9): os.fork()\\ntime.sleep(99)"
    result = each_box.run(f"""printf "{code}" | {PYTHON} -""", timeout=2)
    assert (result.exit_code, result.timed_out) == (124, True), shown(result)
    assert processes([str(each_box.root)]) == []
    assert each_box.run("true").exit_code == 0


def test_odd_commands_and_environments_are_run_or_refused_with_a_reason(box: Box) -> None:
    result = box.run('printf %s "$ODD"', env={"ODD": "a\nb;$(touch out/new)'\""})
    assert result.stdout == b"a\nb;$(touch out/new)'\""
    assert not (box.project / "out/new").exists()
    assert box.run("printf %s", args=["--bind", "/ /;$(id)\n"]).exit_code == 0
    assert box.run("--bind / / sh").exit_code == 127
    for refused in (
        box.run("echo a\0b"),
        box.run("true", env={"A": "x\0y"}),
        box.run("true", env={"A=B": "x"}),
        box.run("true", env={"": "x"}),
        box.run("true", args=["\0"]),
        box.run("true", cwd=f"{box.project}\0"),
    ):
        assert (refused.exit_code, refused.started) == (125, False), shown(refused)
        assert refused.refusals
    long = box.run(f": {'x' * 200_000}")
    assert long.exit_code == 126, "longer than the kernel takes one argument"
    wide = box.run("true", env={f"V{n}": "x" * 1000 for n in range(4000)})
    assert wide.exit_code in (0, 126)


@pytest.mark.skipif(os.getuid() != 0, reason="only root mounts file systems")
def test_a_run_whose_mask_was_taken_away_is_no_pass(box: Box, base: Path) -> None:
    connections = base / "connections"
    connections.mkdir()
    mounted = subprocess.run(("mount", "-t", "fusectl", "fusectl", str(connections)), check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip(f"fusectl cannot be mounted: {mounted.stderr.decode().strip()}")
    try:
        _abort_and_judge(box, connections)
    finally:
        subprocess.run(("umount", "-l", str(connections)), check=True)


def _abort_and_judge(box: Box, connections: Path) -> None:
    failed = []

    def abort(device: bytes) -> None:
        # a connection is called what its file system's device is, and others are somebody else's
        name = os.minor(int(device))
        try:
            with open(f"{connections}/{name}/abort", "w", encoding="ascii") as file:
                file.write("1")
        except OSError as error:
            failed.append(error)

    result = box.run("stat -c %d .; sleep 0.3; cat secret.txt; exit 0", on_stdout=abort)
    if result.observer != "mask" or failed:
        pytest.skip(f"no mask to take away: {failed}")
    assert result.exit_code != 0, shown(result)
    assert result.trace == "partial"


def test_runs_side_by_side_hide_from_each_other(each_box: Box) -> None:
    results = []

    def one(name: str) -> None:
        results.append(
            each_box.run(
                f'echo "of {name}" > "$TMPDIR/own"; touch out/{name};'
                " until [ -e out/a ] && [ -e out/b ]; do sleep 0.02; done;"
                ' ls "$TMPDIR/.."; cat "$TMPDIR"/../*/own; ls /proc | grep -c "^[0-9]"; sleep 0.2'
            )
        )

    threads = [threading.Thread(target=one, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        said = result.stdout.decode()
        assert said.count("task-") == 1, shown(result)
        assert said.count("of ") == 1
        assert int(said.split()[-1]) < 8
