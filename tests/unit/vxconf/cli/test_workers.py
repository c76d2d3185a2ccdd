"""Jobs shared among processes, in a process of their own: one that runs tests in threads should not fork."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

_HEAD = """
import os, resource, signal, sys
from vxconf.cli import workers as sharing
from vxconf.cli.workers import shared
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
    program = f"print(shared(range({jobs}), lambda job: (job, str(job)), processes={processes}))"
    assert _run(program) == str([(job, str(job)) for job in range(jobs)])


def test_several_processes_do_take_part() -> None:
    assert _run("print(len(set(shared(range(9), lambda job: os.getpid(), processes=3))))") == "3"


def test_few_jobs_are_worth_no_process() -> None:
    assert _run("print(len(set(shared(range(sharing.EACH), lambda job: os.getpid()))))") == "1"


@pytest.mark.parametrize(
    "end",
    [
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os._exit(0)",
        "sys.exit(3)",
        "raise KeyboardInterrupt",
        "1 / 0",
        "return object()",  # cannot be sent
    ],
)
def test_what_a_fork_that_ends_does_not_send_is_done_here(end: str) -> None:
    program = (
        f"def work(job):\n    if not mine() and job == 5: {end}\n    return job\n"
        "found = shared(range(9), work, processes=3)\nprint(found)"
    )
    assert _run(program) == str(list(range(9)))


def test_what_fails_everywhere_fails() -> None:
    program = (
        "def work(job):\n    if job == 5: raise ValueError('five')\n    return job\n"
        "try:\n    shared(range(9), work, processes=3)\nexcept ValueError as fault:\n    print(fault)"
    )
    assert _run(program) == "five"


def test_nothing_is_left_running_when_this_process_stops() -> None:
    program = (
        "import time\n"
        "def work(job):\n"
        "    if mine() and job: raise KeyboardInterrupt\n"
        "    if not mine(): time.sleep(600)\n"
        "try:\n    shared(range(9), work, processes=3)\nexcept KeyboardInterrupt: pass\n"
        "try:\n    os.waitpid(-1, os.WNOHANG)\nexcept ChildProcessError:\n    print('alone')"
    )
    assert _run(program) == "alone"


def test_where_no_process_can_be_had_the_work_is_done_all_the_same() -> None:
    program = (
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))\nprint(shared(range(9), lambda job: job, processes=3))"
    )
    assert _run(program) == str(list(range(9)))


def test_one_whose_parent_waits_for_no_children_gets_everything() -> None:
    program = "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nprint(shared(range(9), lambda job: job, processes=3))"
    assert _run(program) == str(list(range(9)))


def test_more_than_a_pipe_holds_arrives() -> None:
    program = "print(sum(map(len, shared(range(9), lambda job: 'x' * 300_000, processes=4))))"
    assert _run(program) == str(9 * 300_000)


def test_no_descriptor_is_left_open() -> None:
    count = "len(os.listdir('/dev/fd'))"
    assert _run(f"before = {count}\nshared(range(9), lambda job: job, processes=4)\nprint({count} - before)") == "0"
