"""One run from outside: its exit code, its streams, its limits, and what is left of it."""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from sandbox.linux.run import run
from sandbox.terminal.output_stream import CAPTURE_LIMIT
from tests.conftest import make_tree
from tests.kernel.conftest import Workspace, shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Leaves a process behind that has worked for 400 ms and holds 100 MiB.
_LEAVES_ONE = """
import os, sys, time
reading, writing = os.pipe()
if os.fork() == 0:
    if sys.argv[1] == "1":
        os.setsid()
        if os.fork():
            os._exit(0)
    held = b"x" * (100 << 20)
    while time.process_time() < 0.4:
        pass
    os.write(writing, b"x")
    time.sleep(1000)
os.read(reading, 1)
"""


def _python(program: str) -> str:
    return shlex.join((os.path.realpath(sys.executable), "-I", "-S", "-c", program))


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("false", 1), ("exit 3", 3), ("exit 255", 255)])
def test_the_exit_code_is_the_commands(shop: Workspace, command: str, code: int) -> None:
    result = shop.run(command)
    assert (result.exit_code, result.command_exit_code, result.signal, result.started) == (code, code, None, True)
    assert (result.sandboxed, result.trace, result.observer) == (True, "complete", shop.observer)


@pytest.mark.parametrize(
    ("name", "number"), [("TERM", 15), ("KILL", 9), ("INT", 2), ("HUP", 1), ("SEGV", 11), ("PIPE", 13), ("XFSZ", 25)]
)
def test_a_death_by_signal_is_the_commands_own(quick_shop: Workspace, name: str, number: int) -> None:
    result = quick_shop.run(f"kill -{name} $$")
    assert (result.exit_code, result.command_exit_code, result.signal) == (128 + number, 128 + number, f"SIG{name}")


def test_signals_are_at_their_defaults(quick_shop: Workspace) -> None:
    # bit n-1 of the mask is signal n; nothing is ignored and nothing blocked, but for the two below the first real-time
    # signal that are the C library's own: its posix_spawn leaves them ignored in whatever started us
    printed = quick_shop.passes("grep -E '^Sig(Ign|Blk)' /proc/self/status | cut -f2")
    assert {int(mask, 16) & ~(0b11 << 31) for mask in printed.split()} == {0}


def test_a_command_that_is_not_found_or_not_executable_is_answered_as_by_a_shell(shop: Workspace) -> None:
    make_tree(shop.project, {"lib/tool": "text\n"})
    assert shop.run("lib/nowhere", read=["lib"]).exit_code == 127
    result = shop.run("lib/tool", read=["lib"])
    assert (result.exit_code, result.violations) == (126, ()), shown(result)


def test_a_timeout_ends_the_command_with_a_term(shop: Workspace) -> None:
    result = shop.run("sleep 1000", timeout=0.3)
    assert (result.exit_code, result.command_exit_code, result.timed_out) == (124, 143, True), shown(result)
    assert result.signal == "SIGTERM"


def test_a_command_that_ignores_the_term_is_killed_after_the_grace(
    shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "GRACE", 0.3)
    result = shop.run("trap '' TERM; echo deaf; while :; do sleep 60; done", timeout=0.5)
    assert (result.exit_code, result.timed_out, result.stdout) == (124, True, b"deaf\n"), shown(result)
    assert (result.command_exit_code, result.signal) == (137, "SIGKILL")


def test_a_command_that_ends_well_on_its_term_has_failed_all_the_same(shop: Workspace) -> None:
    result = shop.run("trap 'echo bye; exit 0' TERM; sleep 60 & wait", timeout=0.5)
    assert (result.exit_code, result.command_exit_code, result.timed_out) == (124, 0, True), shown(result)
    assert result.stdout == b"bye\n"


def test_children_hear_the_term_of_a_timeout(shop: Workspace) -> None:
    command = "trap 'wait; exit 9' TERM; (trap 'echo child; exit' TERM; while :; do sleep 0.05; done) & wait"
    result = shop.run(command, timeout=0.5)
    assert (result.exit_code, result.command_exit_code, result.stdout) == (124, 9, b"child\n"), shown(result)


def test_time_the_sandbox_takes_to_build_is_not_the_commands(quick_shop: Workspace) -> None:
    make_tree(quick_shop.project, {f"many/{i}": "" for i in range(400)})
    result = quick_shop.run("sleep 0.05", read=[f"many/{i}" for i in range(400)], timeout=20)
    assert result.exit_code == 0
    assert 50 <= result.duration_ms < 20_000


def test_there_is_an_empty_input_unless_one_is_given(quick_shop: Workspace) -> None:
    assert quick_shop.passes("cat; echo end") == "end\n"
    assert quick_shop.passes("cat", stdin=b"") == ""
    assert quick_shop.passes("cat", stdin=b"bytes\0\n") == "bytes\0\n"


def test_a_large_input_arrives_whole(quick_shop: Workspace) -> None:
    data = os.urandom(1 << 20) * 9
    printed = quick_shop.passes("sha256sum; wc -c < $FILE", stdin=data, env={"FILE": "/dev/null"})
    assert printed.split()[0] == hashlib.sha256(data).hexdigest()


def test_a_descriptor_can_be_the_input_and_stays_the_callers(quick_shop: Workspace) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as pipe:

        def feed() -> None:
            pipe.write(b"x" * 300_000)
            pipe.close()

        feeding = threading.Thread(target=feed)
        feeding.start()
        assert quick_shop.passes("wc -c", stdin=reading) == "300000\n"
        feeding.join()
    os.close(reading)  # fails if the run closed it


def test_both_streams_arrive_whole_apart_and_in_order(shop: Workspace) -> None:
    chunks: dict[str, list[bytes]] = {"out": [], "err": []}
    result = shop.run(
        "for i in $(seq 2000); do echo out $i; echo err $i >&2; done",
        on_stdout=chunks["out"].append,
        on_stderr=chunks["err"].append,
    )
    for name, kept in (("out", result.stdout), ("err", result.stderr)):
        assert kept == b"".join(chunks[name]) == b"".join(b"%s %d\n" % (name.encode(), i) for i in range(1, 2001))


def test_fifty_megabytes_are_heard_without_a_loss_and_kept_up_to_the_cap(quick_shop: Workspace) -> None:
    heard, count = hashlib.sha256(), 0

    def hear(chunk: bytes) -> None:
        nonlocal count
        count += len(chunk)
        heard.update(chunk)

    size = 50 << 20
    result = quick_shop.run(f"head -c {size} /dev/zero | tr '\\0' 'a'", on_stdout=hear)
    assert (result.exit_code, count) == (0, size)
    assert heard.hexdigest() == hashlib.sha256(b"a" * size).hexdigest()
    dropped = size - CAPTURE_LIMIT
    assert result.stdout[:CAPTURE_LIMIT].count(b"a") == CAPTURE_LIMIT
    assert str(dropped).encode() in result.stdout[CAPTURE_LIMIT:]


def test_output_is_kept_only_where_it_is_wanted(quick_shop: Workspace) -> None:
    chunks: list[bytes] = []
    result = quick_shop.run("echo out; echo err >&2", capture=False, on_stdout=chunks.append, on_stderr=chunks.append)
    assert sorted(chunks) == [b"err\n", b"out\n"]
    assert (result.stdout, result.stderr) == (b"", b"")


def test_output_is_heard_as_it_comes(quick_shop: Workspace) -> None:
    reading, writing = os.pipe()
    try:
        # the command ends only because its first line was heard
        result = quick_shop.run(
            "echo first; read word; echo $word",
            stdin=reading,
            on_stdout=lambda _: os.write(writing, b"go\n"),
            timeout=60,
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert (result.exit_code, result.stdout) == (0, b"first\ngo\n")


def test_a_callback_that_fails_ends_the_run_and_its_error_is_the_callers(quick_shop: Workspace) -> None:
    def fail(_: bytes) -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        quick_shop.run("echo x; sleep 1000", on_stdout=fail)
    assert _left(quick_shop) == []


def _left(shop: Workspace) -> list[str]:
    """What is still in the tasks' temporary directories."""
    return [name for users in os.listdir(shop.base / "temp") for name in os.listdir(shop.base / "temp" / users)]


def test_the_working_directory_is_the_one_asked_for(shop: Workspace) -> None:
    make_tree(shop.project, {"lib/deep/x": "x\n"})
    assert shop.passes("pwd; cat x", read=["lib"], cwd=f"{shop.project}/lib/deep") == f"{shop.project}/lib/deep\nx\n"


def test_a_working_directory_that_is_hidden_is_said_and_nothing_runs(shop: Workspace) -> None:
    result = shop.run("echo ran; pwd", cwd=f"{shop.project}/conf", read=["lib"])
    assert (result.exit_code, result.started, result.stdout) == (125, False, b"")
    assert any("conf" in refusal.message for refusal in result.refusals), result.refusals
    assert _left(shop) == []


def test_limits_are_the_executors_own(quick_shop: Workspace) -> None:
    command = "ulimit -n; ulimit -Hn; umask"
    outside = subprocess.run(["/bin/sh", "-c", command], check=True, capture_output=True, text=True)
    assert quick_shop.passes(command) == outside.stdout


def test_use_of_the_machine_is_measured(quick_shop: Workspace) -> None:
    program = "x = bytearray(60 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nfor i in range(10**6): pass"
    result = quick_shop.run(_python(program))
    assert result.cpu_ms is not None
    assert result.cpu_ms > 10
    assert result.peak_rss_bytes is not None
    assert result.peak_rss_bytes > 60 << 20


@pytest.mark.parametrize("detached", [False, True], ids=["child", "orphan in a session of its own"])
def test_processes_nobody_waited_for_count_for_cpu_and_memory(shop: Workspace, *, detached: bool) -> None:
    (shop.project / "lib" / "leave.py").write_text(_LEAVES_ONE, encoding="utf-8")
    result = shop.run(f"python3 lib/leave.py {int(detached)}", ["lib/"])
    assert result.exit_code == 0, shown(result)
    assert result.cpu_ms is not None
    assert result.cpu_ms >= 400
    assert result.peak_rss_bytes is not None
    assert result.peak_rss_bytes > 90 << 20
    assert result.duration_ms > 10


@pytest.mark.parametrize("detached", [False, True], ids=["child", "orphan in a session of its own"])
def test_a_run_that_is_killed_whole_tells_what_all_of_it_took(shop: Workspace, *, detached: bool) -> None:
    (shop.project / "lib" / "leave.py").write_text(f"{_LEAVES_ONE}print('burnt', flush=True)\ntime.sleep(1000)\n")
    killed = threading.Event()

    def kill(_: bytes) -> None:
        shop.session.signal(signal.SIGKILL)
        killed.set()

    result = shop.run(f"python3 lib/leave.py {int(detached)} & wait", ["lib/"], on_stdout=kill)
    assert killed.is_set(), shown(result)
    assert (result.exit_code, result.signal, result.trace) == (137, "SIGKILL", "complete"), shown(result)
    assert result.cpu_ms is not None
    assert 400 <= result.cpu_ms < 60_000
    assert result.peak_rss_bytes is not None
    assert result.peak_rss_bytes > 90 << 20


@pytest.mark.parametrize("option", [{"observer": "none"}])
def test_without_an_observer_walls_stand_and_the_result_says_so(quick_shop: Workspace, option: dict[str, str]) -> None:
    result = quick_shop.run("cat lib/cart.py; cat notes.md || true", read=["lib"], **option)
    assert (result.exit_code, result.stdout, result.violations) == (0, b"cart\n", ()), shown(result)
    assert (result.observer, result.trace, result.protections.observer) == ("none", "none", "off")
    assert result.trace_reason


def test_an_observer_that_is_not_known_is_refused_by_name(quick_shop: Workspace) -> None:
    result = quick_shop.run("true", observer="dtrace")
    assert (result.exit_code, result.started) == (125, False)
    assert any("dtrace" in refusal.message for refusal in result.refusals)


def _spoil_the_start(monkeypatch: pytest.MonkeyPatch, spoil: Callable[[], None]) -> None:
    """Has something happen on the host after planning, before the sandbox is built."""
    attempts = run.LinuxRun._attempts

    def spoiled(*arguments: object) -> object:
        spoil()
        return attempts(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(run.LinuxRun, "_attempts", spoiled)


def test_directories_made_for_a_run_that_never_began_are_taken_back(
    shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    _spoil_the_start(monkeypatch, lambda: os.rename(shop.project / "lib", shop.project / "gone"))
    result = shop.run("echo ran", read=["lib/cart.py"], write=["new/deep/er/"])
    assert (result.exit_code, result.started, result.stdout) == (125, False, b""), shown(result)
    assert not (shop.project / "new").exists()
    assert _left(shop) == []


@pytest.mark.parametrize("becomes", ["nothing", "a directory"])
def test_what_nobody_named_may_vanish_while_the_sandbox_is_built(
    shop: Workspace, home: Path, monkeypatch: pytest.MonkeyPatch, becomes: str
) -> None:
    # the entries of a home with a credential store in it are shown one by one
    make_tree(home, {".npmrc": "secret\n", "note": "n\n", "other": "o\n"})

    def spoil() -> None:
        (home / "note").unlink()
        if becomes == "a directory":
            make_tree(home, {"note/in": "x\n"})

    _spoil_the_start(monkeypatch, spoil)
    result = shop.run("cat ~/other; cat ~/note/in; cat ~/note; true")
    assert (result.exit_code, result.stdout) == (0, b"o\n"), shown(result)


def test_a_file_that_vanished_for_a_moment_is_tried_again(shop: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    once = run.LinuxRun._once
    tries: list[int] = []

    def flaky(*arguments: object) -> object:
        tries.append(1)
        here, there = shop.project / "lib", shop.project / "away"
        if len(tries) == 1:
            here.rename(there)
            try:
                return once(*arguments)  # type: ignore[arg-type]
            finally:
                there.rename(here)
        return once(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(run.LinuxRun, "_once", flaky)
    assert shop.passes("cat lib/cart.py", read=["lib"]) == "cart\n"
    assert len(tries) == 2


@pytest.mark.parametrize("place", ["lib", "lib/cart.py", "out", "out/deep"])
@pytest.mark.parametrize("target", ["../../libs/money/src", "../../.git", "../../libs/money/src/coin.py"])
def test_a_link_planted_between_plan_and_start_moves_nothing(
    shop: Workspace, monkeypatch: pytest.MonkeyPatch, place: str, target: str
) -> None:
    def plant() -> None:
        planted = shop.project / place
        planted.rename(shop.base / "aside")
        planted.symlink_to(os.path.relpath((shop.project / target).resolve(), planted.parent))

    make_tree(shop.project, {"out/deep": None})
    _spoil_the_start(monkeypatch, plant)
    before = sorted(str(p) for p in shop.root.rglob("*"))
    command = "cat lib/* lib/cart.py; ls lib/cart.py out out/deep; echo x > out/deep/planted; echo y > out/planted"
    result = shop.run(command, read=["lib/cart.py"], write=["out/deep/"])
    assert b"coin" not in result.stdout
    assert b"HEAD" not in result.stdout
    assert result.started is False, shown(result)
    assert any("lib" in refusal.message or "out" in refusal.message for refusal in result.refusals), result.refusals
    assert [p for p in sorted(str(p) for p in shop.root.rglob("*")) if p.endswith("/planted")] == []
    assert before
