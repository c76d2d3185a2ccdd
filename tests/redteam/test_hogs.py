"""A task that takes memory, processes, descriptors, room or patience without end: it fails, and nobody else does."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import Session
from sandbox.terminal.output_stream import CAPTURE_LIMIT
from tests.conftest import REPOSITORY
from tests.redteam.conftest import PYTHON, Box, processes, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox import RunResult

_MIB = 1 << 20
_SECONDS = 120

# its task, and then another one; it holds more than any one process of a task that is many
_EXECUTOR = """
import json, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from sandbox import Session
from sandbox.terminal.output_stream import CAPTURE_LIMIT
from tests.redteam.conftest import Box
root = Path(sys.argv[2])
held = b"x" * (int(sys.argv[3]) << 20)
with Session() as session:
    box = Box(session, root, root / "apps/shop", root)
    for command in sys.argv[4:]:
        r = box.run(command)
        hints = " ".join(hint.line for hint in r.hints)
        told = [r.exit_code, r.trace, list(map(str, r.refusals)), len(r.stdout), r.stdout[-200:].decode(), hints]
        print(json.dumps(told), flush=True)
# not `ru_maxrss`, which remembers whoever this process was forked from
(peak,) = (line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
print(json.dumps(int(peak) // 1024))
"""

_ONE = f"""{PYTHON} -c '
held = []
while True: held.append(b"x" * (1 << 20))'"""

_MANY = f"""{PYTHON} -c '
import os, signal
for _ in range(60):
    if os.fork() == 0:
        held = b"x" * (20 << 20)
        signal.pause()
_, status = os.wait()
raise SystemExit(os.waitstatus_to_exitcode(status) == -9 and 3)'"""


def executor(box: Box, *commands: str, held: int = 0, group: Path | None = None) -> list[Any]:
    """What became of each command, run by an executor of its own, and the most memory that had, in MiB."""
    words = (sys.executable, "-c", _EXECUTOR, str(REPOSITORY), str(box.root), str(held), *commands)
    if group is not None:
        words = ("/bin/sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", *words)
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=_SECONDS)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def _taken_away(group: Path) -> None:
    """The kernel keeps a group for as long as a killed process of it is being taken down."""
    end = time.monotonic() + _SECONDS
    while True:
        try:
            return group.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() >= end:
                raise
        time.sleep(0.02)


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group of 400 MiB, without swap."""
    name = f"vxconf-test-{uuid.uuid4().hex}"
    first = Path("/sys/fs/cgroup/memory")
    group = (first if first.is_dir() else Path("/sys/fs/cgroup")) / name
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error.strerror}")
    try:
        limit = next((place for n in ("memory.limit_in_bytes", "memory.max") if (place := group / n).exists()), None)
        if limit is None:
            pytest.skip("control groups limit no memory here")
        limit.write_text(str(400 * _MIB))
        for swap, value in (("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", 400 * _MIB)):
            with contextlib.suppress(OSError):  # there may be no swap to account for
                (group / swap).write_text(str(value))
        yield group
    finally:
        _taken_away(group)


@pytest.mark.parametrize("command", [_ONE, _MANY], ids=["one process", "many small ones"])
def test_when_memory_runs_out_the_task_goes_and_not_who_reports(box: Box, small_group: Path, command: str) -> None:
    hog, after, _ = executor(box, command, "echo well", held=120, group=small_group)
    assert hog[0] in (3, 125, 137), hog
    assert "ran out of memory meanwhile, and the kernel ended" in hog[5]
    assert after == [0, "complete", [], 5, "well\n", ""]


def test_a_task_goes_before_whoever_started_it(each_box: Box) -> None:
    mine = int(Path("/proc/self/oom_score_adj").read_text(encoding="ascii"))
    result = each_box.run("cat /proc/self/oom_score_adj /proc/1/oom_score_adj; sleep 1000 & cat /proc/$!/oom_score_adj")
    assert (result.exit_code, result.violations) == (0, ()), shown(result)
    assert [int(word) for word in result.stdout.split()] == [min(1000, mine + 500)] * 3


_TAKEN_BACK = "for n in self $$; do echo 0 >/proc/$n/oom_score_adj; echo -17 >/proc/$n/oom_adj; done 2>/dev/null; "


@pytest.mark.parametrize("by", ["", "exec 3<>/dev/null; echo 0 >/dev/fd/../oom_score_adj; ", "cd /proc/self; "])
def test_no_task_takes_its_place_back(each_box: Box, by: str) -> None:
    mine = int(Path("/proc/self/oom_score_adj").read_text(encoding="ascii"))
    result = each_box.run(f"{by}{_TAKEN_BACK}cat /proc/$$/oom_score_adj; grep -c ' /proc ro,' /proc/self/mountinfo")
    first, mounts = result.stdout.split()
    assert int(first) == min(1000, mine + 500), shown(result)
    assert int(mounts) > 0, shown(result)


def test_the_read_only_proc_is_what_keeps_it_there() -> None:
    program = "import sandbox.linux.inside.resource_limits as limits; limits.be_killed_first()"
    program += "; own = open('/proc/self/oom_score_adj', 'r+'); print(own.read()); own.seek(0); own.write('400')"
    program += "; own.flush(); own.seek(0); print(own.read())"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert [int(word) for word in done.stdout.split()][1] == 400


def threads_of(user: int) -> int:
    found = 0
    for place in Path("/proc").glob("[0-9]*/status"):
        try:
            text = place.read_text(encoding="utf-8")
        except OSError:
            continue
        if f"\nUid:\t{user}\t" in text:
            found += int(next(line.split()[1] for line in text.splitlines() if line.startswith("Threads:")))
    return found


@pytest.mark.skipif(os.getuid() == 0, reason="root has no limit of processes")
def test_a_bomb_of_processes_without_end_leaves_processes_to_others(box: Box) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    # half of it for the bomb; what is left has room for the tests beside this one
    most = 2 * threads_of(os.getuid()) + 1200
    if 0 <= hard < most:
        pytest.skip(f"this user may have {hard} processes, and the test takes {most}")
    resource.setrlimit(resource.RLIMIT_NPROC, (most, hard))
    try:
        with Session() as session:
            box.session = session
            full = threading.Event()
            results: list[RunResult] = []
            code = "import os, time\nwhile True:\n try: os.fork()\n except OSError: break\n"
            code += "os.write(1, b'full')\ntime.sleep(1000)"
            (box.project / "lib/bomb.py").write_text(code)
            bomb = threading.Thread(
                target=lambda: results.append(box.run(f"{PYTHON} lib/bomb.py", on_stdout=lambda _: full.set()))
            )
            bomb.start()
            assert full.wait(_SECONDS)
            other = box.run("echo $(echo well)")
            session.signal(signal.SIGKILL)
            bomb.join(_SECONDS)
            told = box.run("while :; do sleep 1000 & done")
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    assert (other.exit_code, other.stdout) == (0, b"well\n"), shown(other)
    assert (results[0].exit_code, results[0].trace) == (137, "complete"), shown(results[0])
    assert told.exit_code, shown(told)
    assert any(hint.line.startswith(f"one task gets {most // 2} processes") for hint in told.hints), told.hints
    assert processes([str(box.root)]) == []


def test_files_opened_without_end_are_the_tasks_own_trouble(each_box: Box) -> None:
    (each_box.project / "lib/opens.py").write_text(
        "held = []\ntry:\n    while True: held.append(open('lib/cart.py'))\n"
        "except OSError as error: print(error.errno, len(held) > 1900, flush=True)\n"
    )
    # three at once hold more than one of them may
    command = f"ulimit -n 2000; for n in 1 2 3; do {PYTHON} lib/opens.py & done; wait"
    result = each_box.run(command)
    assert (result.exit_code, result.trace, result.violations) == (0, "complete", ()), shown(result)
    assert result.stdout.split(b"\n") == [b"%d True" % errno.EMFILE] * 3 + [b""]
    assert each_box.run("cat lib/cart.py").stdout == b"cart\n"


def test_what_is_printed_without_end_is_kept_up_to_a_limit(box: Box) -> None:
    printed, most = executor(box, "yes | head -c 400000000")
    assert printed[:3] == [0, "complete", []]
    assert CAPTURE_LIMIT < printed[3] < CAPTURE_LIMIT + 1000
    assert "not kept" in printed[4]
    assert most < 200


@pytest.mark.skipif(os.getuid() != 0, reason="only root mounts a file system that is full")
def test_a_task_that_fills_the_temporary_directory_fails_and_leaves_room(
    base: Path, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = base / "small"
    small.mkdir()
    mounted = subprocess.run(
        ("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(small)), check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted: {mounted.stderr.decode().strip()}")
    try:
        monkeypatch.setenv("VX_TMPDIR", str(small))
        result = box.run('yes > "$TMPDIR/all"')
        assert (result.command_exit_code, result.trace, result.violations) == (1, "complete", ()), shown(result)
        assert b"No space left" in result.stderr
        free = os.statvfs(small)
        assert free.f_bavail > free.f_blocks // 2
        after = box.run('echo well > "$TMPDIR/some" && cat "$TMPDIR/some"')
        assert (after.exit_code, after.stdout) == (0, b"well\n"), shown(after)
    finally:
        subprocess.run(("umount", "-l", str(small)), check=True)


def test_a_new_session_without_descriptors_is_refused_with_the_remedy(box: Box) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    seen: list[RunResult] = []
    for room in range(40):
        with Session() as session:
            box.session = session
            taken = len(os.listdir("/proc/self/fd"))
            resource.setrlimit(resource.RLIMIT_NOFILE, (taken + room, hard))
            try:
                seen.append(box.run("true"))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            if seen[-1].exit_code == 0:
                break
            assert len(os.listdir("/proc/self/fd")) <= taken + 2  # the session's own, until it is left
    *refused, passed = seen
    assert refused
    assert passed.exit_code == 0, shown(passed)
    for result in refused:
        assert (result.exit_code, result.started) == (125, False), shown(result)
        assert "oo many open files" in result.refusals[0].message
        assert "raise the limit of open files (ulimit -n)" in result.refusals[0].hint, shown(result)


def test_a_supervisor_without_memory_is_a_reason_and_the_next_run_passes(box: Box) -> None:
    with Session() as session:
        box.session = session
        assert box.run("true").exit_code == 0
        assert session._supervisor is not None
        pid = session._supervisor.pid
        size = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        _, hard = resource.prlimit(pid, resource.RLIMIT_AS)
        seen = set()
        for room in range(-4, 12):
            resource.prlimit(pid, resource.RLIMIT_AS, (size + room * _MIB, hard))
            result = box.run("true")
            seen.add(result.exit_code)
            if not result.started:
                assert result.exit_code == 125, shown(result)
                assert result.refusals, shown(result)
        assert seen > {0}
        resource.prlimit(pid, resource.RLIMIT_AS, (hard, hard))
        assert box.run("true").exit_code == 0
        assert session._supervisor.pid == pid
