"""Many runs, cancelled runs, ended sessions: each run keeps its own verdict and nothing is left."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from sandbox import Session
from tests.conftest import make_tree
from tests.kernel.conftest import SHOP, Workspace, shown
from tests.support.mixed import mixed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sandbox import RunResult
    from tests.support.mixed import Mixed


@pytest.fixture
def own(places: Path) -> Iterator[Workspace]:
    """`SHOP` with a session that a test may end."""
    root = make_tree(places / "ws", SHOP)
    with Session() as session:
        yield Workspace(session, places, root, root / "apps" / "shop", places / "home")


def _wait(until: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def test_what_kept_a_sandbox_from_being_made_ahead_is_not_the_next_tasks_failure(
    own: Workspace, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the task before it holds every process this user may have."""
    fails = places / "fails"
    bwrap = places / "bwrap"
    # the second start from when there is such a file comes to nothing
    bwrap.write_text(
        f"#!/bin/sh\nif [ -e {fails}.1 ]; then rm {fails}.1; exit 1; fi\n"
        f'if [ -e {fails} ]; then mv {fails} {fails}.1; fi\nexec {shutil.which("bwrap")} "$@"\n'
    )
    bwrap.chmod(0o755)
    monkeypatch.setattr("sandbox.linux.run.prepare.find_bwrap", lambda *_: str(bwrap))
    assert own.run("echo one").stdout == b"one\n"
    fails.touch()
    assert own.run("echo two").stdout == b"two\n"
    _wait(lambda: not fails.exists() and not fails.with_name("fails.1").exists())
    result = own.run("echo three")
    assert (result.exit_code, result.stdout) == (0, b"three\n"), shown(result)


def _alive(marker: str) -> list[int]:
    """Processes of the host whose command line or environment's working place names the marker."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and int(entry) != os.getpid():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    if marker.encode() in file.read():
                        found.append(int(entry))
            except OSError:
                continue
    return found


def _children(session: Session) -> list[int]:
    """The session's wardens that still live."""
    supervisor = session._supervisor
    if supervisor is None:
        return []
    try:
        with open(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def _left(own: Workspace) -> list[str]:
    return [name for users in os.listdir(own.base / "temp") for name in os.listdir(own.base / "temp" / users)]


class _Started:
    """Hears a command's first output."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def hear(self, _: bytes) -> None:
        self._event.set()

    def wait(self) -> None:
        assert self._event.wait(60), "the command did not start"


def _facts(result: RunResult) -> tuple[object, ...]:
    violations = sorted((v.kind, v.path) for v in result.violations)
    return result.exit_code, result.command_exit_code, result.stdout, violations, result.fix, result.hints


def test_many_runs_at_once_have_the_verdicts_they_have_alone(own: Workspace) -> None:
    make_tree(own.project, {f"in/{i}": f"{i}\n" for i in range(20)})
    command = "cat in/*; for i in $(seq 0 19); do cat in/$i >/dev/null; done; echo x > out{n}/f; cat out{n}/f; exit {n}"

    def run(number: int) -> tuple[object, ...]:
        read = [f"in/{i}" for i in range(number)]
        # every other one lacks the grant it writes under
        write = [f"out{number}/"] if number % 2 else []
        return _facts(own.run(command.format(n=number), read, write))

    alone = [run(number) for number in range(20)]
    with ThreadPoolExecutor(20) as pool:
        together = list(pool.map(run, range(20)))
    assert together == alone
    assert {facts[0] for facts in alone} == set(range(1, 20)) | {1}
    assert _left(own) == []


@pytest.mark.slow
def test_fifty_tasks_of_many_kinds_at_once_have_the_verdicts_they_have_alone(own: Workspace) -> None:
    make_tree(own.project, {"out/here": "", "hits/here": ""})

    def run(task: Mixed) -> tuple[object, ...]:
        result = own.run(task.command, task.read, task.write)
        return *_facts(result), result.stderr, result.trace, result.refusals

    tasks = mixed(50)
    for task in tasks:
        run(task)  # what a task finds of its own making is the same from now on
    alone = [run(task) for task in tasks]
    with ThreadPoolExecutor(len(tasks)) as pool:
        together = list(pool.map(run, tasks))
    for task, one, other in zip(tasks, alone, together, strict=True):
        assert other == one, task.command
    assert {facts[-2:] for facts in alone} == {("complete", ())}
    assert sum(bool(facts[3]) for facts in alone) == 25
    assert _left(own) == []


def test_a_session_starts_nothing_before_its_first_run(own: Workspace) -> None:
    own.request(read=["lib"])
    assert own.session._supervisor is None


def test_a_closed_session_runs_nothing(own: Workspace) -> None:
    request = own.request()
    own.session.close()
    result = own.session.run(request, command="true")
    assert (result.exit_code, result.started) == (125, False)
    assert any("closed" in refusal.message for refusal in result.refusals)
    own.session.close()  # a second time is no error


def test_closing_a_session_ends_what_runs(own: Workspace) -> None:
    started, results = _Started(), []
    marker = "31.4159265"
    running = threading.Thread(
        target=lambda: results.append(own.run(f"echo up; sleep {marker} & sleep {marker}", on_stdout=started.hear))
    )
    running.start()
    started.wait()
    assert _alive(marker)
    supervisor = own.session._supervisor
    assert supervisor is not None
    own.session.close()
    running.join(30)
    assert not running.is_alive()
    assert results[0].exit_code not in {0, None}, shown(results[0])
    assert supervisor.poll() is not None
    _wait(lambda: not _alive(marker))
    assert _left(own) == []


def test_cancelling_ends_the_whole_tree(own: Workspace) -> None:
    marker = "27.1828182"

    async def cancelled() -> None:
        loop = asyncio.get_running_loop()
        up = asyncio.Event()
        task = asyncio.ensure_future(
            own.session.arun(
                own.request(),
                command=f"trap '' TERM INT HUP; echo up; sleep {marker} & sleep {marker}",
                on_stdout=lambda _: loop.call_soon_threadsafe(up.set),
            )
        )
        await asyncio.wait_for(up.wait(), 60)
        assert _alive(marker)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    _wait(lambda: not _alive(marker))
    assert _left(own) == []
    assert own.passes("echo next") == "next\n"


def test_what_a_command_leaves_running_ends_with_it(own: Workspace) -> None:
    marker = "31.4159265"
    command = f"sleep {marker} & (setsid sleep {marker} &); trap '' HUP TERM; nohup sleep {marker} >out/log 2>&1 &"
    assert own.passes(f"{command} echo left", write=["out/"]) == "left\n"
    assert not _alive(marker)
    assert _left(own) == []


def test_cancelling_before_the_start_starts_nothing(own: Workspace) -> None:
    async def cancelled() -> None:
        task = asyncio.ensure_future(own.session.arun(own.request(write=["out/"]), command="echo x > out/ran"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for _ in range(5):
        asyncio.run(cancelled())
    assert _left(own) == []
    assert own.passes("echo next") == "next\n"


def test_runs_of_one_event_loop_go_side_by_side(own: Workspace) -> None:
    async def both() -> list[RunResult]:
        # each waits for what the other wrote: one after the other would hang
        first = "echo 1 > out/a; while [ ! -e out/b ]; do sleep 0.01; done"
        second = "echo 2 > out/b; while [ ! -e out/a ]; do sleep 0.01; done"
        request = own.request(write=["out/"])
        return list(
            await asyncio.gather(
                own.session.arun(request, command=first, timeout=60),
                own.session.arun(request, command=second, timeout=60),
            )
        )

    assert [result.exit_code for result in asyncio.run(both())] == [0, 0]


def test_a_signal_reaches_the_whole_group_of_every_run(own: Workspace) -> None:
    started, results = _Started(), []
    child = "(trap 'echo child; exit' HUP; echo up; while :; do sleep 0.05; done)"
    command = f"trap 'echo parent; wait; exit 7' HUP; {child} & wait"
    running = threading.Thread(target=lambda: results.append(own.run(command, on_stdout=started.hear)))
    running.start()
    started.wait()
    own.session.signal(signal.SIGHUP)
    running.join(30)
    (result,) = results
    assert (result.exit_code, sorted(result.stdout.split())) == (7, [b"child", b"parent", b"up"]), shown(result)


def test_a_kill_signal_ends_whole_sandboxes(own: Workspace) -> None:
    started, results = _Started(), []
    running = threading.Thread(target=lambda: results.append(own.run("echo up; sleep 60", on_stdout=started.hear)))
    running.start()
    started.wait()
    own.session.signal(signal.SIGKILL)
    running.join(30)
    (result,) = results
    assert (result.exit_code, result.command_exit_code, result.signal) == (137, 137, "SIGKILL"), shown(result)
    assert own.passes("echo next") == "next\n"


def test_a_killed_supervisor_ends_its_runs_and_the_next_run_has_a_new_one(own: Workspace) -> None:
    marker = "16.1803398"
    started, results = _Started(), []
    running = threading.Thread(
        target=lambda: results.append(own.run(f"echo up; sleep {marker}", on_stdout=started.hear))
    )
    running.start()
    started.wait()
    supervisor = own.session._supervisor
    assert supervisor is not None
    supervisor.kill()
    running.join(30)
    assert not running.is_alive()
    assert results[0].exit_code != 0, shown(results[0])
    _wait(lambda: not _alive(marker))
    assert own.passes("echo next") == "next\n"
    assert own.session._supervisor is not supervisor
    assert _left(own) == []


def test_a_killed_warden_is_a_failure_with_a_reason(own: Workspace) -> None:
    marker = "14.1421356"
    started, results = _Started(), []
    running = threading.Thread(
        target=lambda: results.append(own.run(f"echo up; sleep {marker}", on_stdout=started.hear))
    )
    running.start()
    started.wait()
    (warden,) = _children(own.session)
    os.kill(warden, signal.SIGKILL)
    running.join(30)
    (result,) = results
    assert (result.exit_code, result.command_exit_code, result.trace) == (125, None, "partial"), shown(result)
    assert result.refusals
    _wait(lambda: not _alive(marker))
    assert own.passes("echo next") == "next\n"


def test_no_descriptor_and_no_process_is_left_by_many_runs(own: Workspace) -> None:
    own.passes("true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        own.passes("cat; echo x", stdin=b"x")
        own.run("exit 3")
        own.run("true", cwd=f"{own.project}/conf")
    assert len(os.listdir("/proc/self/fd")) == before
    _wait(lambda: _children(own.session) == [])
    supervisor = own.session._supervisor
    assert supervisor is not None
    if os.access(f"/proc/{supervisor.pid}/fd", os.R_OK):
        # its three standard streams and the socket it is asked on
        assert len(os.listdir(f"/proc/{supervisor.pid}/fd")) == 4


def test_two_sessions_do_not_meet(own: Workspace) -> None:
    with Session() as other:
        request = own.request(read=["lib"])
        assert other.run(request, command="cat lib/cart.py").stdout == b"cart\n"
        own.session.close()
        assert other.run(request, command="cat lib/cart.py").stdout == b"cart\n"


def test_a_session_is_an_asynchronous_context_too(own: Workspace) -> None:
    async def once() -> RunResult:
        async with Session() as session:
            return await session.arun(own.request(read=["lib"]), command="cat lib/cart.py")

    assert asyncio.run(once()).stdout == b"cart\n"
