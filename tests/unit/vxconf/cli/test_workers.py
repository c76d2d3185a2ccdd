"""Jobs are shared among processes; each test forks in a process of its own, since pytest's has threads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

_HEAD = """
import os, resource, signal, sys
from vxconf.cli import workers
from vxconf.cli.workers import map_in_processes
first = os.getpid()
def mine(): return os.getpid() == first
"""


def _run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _HEAD + program],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout.strip()


@pytest.mark.parametrize("processes", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("jobs", [0, 1, 2, 3, 50])
def test_the_results_come_in_the_order_of_the_jobs(processes: int, jobs: int) -> None:
    program = f"print(map_in_processes(range({jobs}), lambda job: (job, str(job)), processes={processes}))"
    assert _run(program) == str([(job, str(job)) for job in range(jobs)])


def test_several_processes_do_take_part() -> None:
    assert _run("print(len(set(map_in_processes(range(9), lambda job: os.getpid(), processes=3))))") == "3"


@pytest.mark.parametrize("processes", [1, 2])
def test_no_garbage_is_looked_for_until_the_jobs_are_done(processes: int) -> None:
    program = f"import gc; print(map_in_processes(range(4), lambda job: gc.isenabled(), processes={processes}))"
    assert _run(program + "\nprint(gc.isenabled(), gc.get_freeze_count())") == "[True, False, False, False]\nTrue 0"


def test_few_jobs_are_worth_no_process() -> None:
    assert _run("print(len(set(map_in_processes(range(workers.EACH), lambda job: os.getpid()))))") == "1"


@pytest.mark.parametrize(
    "end",
    [
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os._exit(0)",
        "sys.exit(3)",
        "raise KeyboardInterrupt",
        "1 / 0",
        "return object()",  # marshal takes no object
    ],
)
def test_the_jobs_of_a_fork_that_ends_early_are_done_by_this_process(end: str) -> None:
    program = (
        f"def work(job):\n    if not mine() and job == 5: {end}\n    return job\n"
        "found = map_in_processes(range(9), work, processes=3)\nprint(found)"
    )
    assert _run(program) == str(list(range(9)))


def test_a_job_that_fails_in_every_process_fails() -> None:
    program = (
        "def work(job):\n    if job == 5: raise ValueError('five')\n    return job\n"
        "try:\n    map_in_processes(range(9), work, processes=3)\nexcept ValueError as fault:\n    print(fault)"
    )
    assert _run(program) == "five"


def test_no_fork_is_left_when_this_process_stops() -> None:
    program = (
        "import time\n"
        "def work(job):\n"
        "    if mine() and job: raise KeyboardInterrupt\n"
        "    if not mine(): time.sleep(600)\n"
        "try:\n    map_in_processes(range(9), work, processes=3)\nexcept KeyboardInterrupt: pass\n"
        "try:\n    os.waitpid(-1, os.WNOHANG)\nexcept ChildProcessError:\n    print('alone')"
    )
    assert _run(program) == "alone"


def test_the_jobs_are_done_where_no_further_process_can_be_started() -> None:
    limit = "resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))"
    program = f"{limit}\nprint(map_in_processes(range(9), lambda job: job, processes=3))"
    assert _run(program) == str(list(range(9)))


def test_a_process_that_ignores_its_children_gets_every_result() -> None:
    program = (
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nprint(map_in_processes(range(9), lambda job: job, processes=3))"
    )
    assert _run(program) == str(list(range(9)))


def test_more_than_a_pipe_holds_arrives() -> None:
    program = "print(sum(map(len, map_in_processes(range(9), lambda job: 'x' * 300_000, processes=4))))"
    assert _run(program) == str(9 * 300_000)


def test_no_descriptor_is_left_open() -> None:
    count = "len(os.listdir('/dev/fd'))"
    assert (
        _run(f"before = {count}\nmap_in_processes(range(9), lambda job: job, processes=4)\nprint({count} - before)")
        == "0"
    )
