"""What the command's streams are to the caller whose descriptors they are relayed to: as if the command had them."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import resource
import select
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from sandbox import Session
from tests.kernel.conftest import Workspace, shown
from tests.support.talks import Talk, in_background

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINES = b"".join(b"line %d\n" % n for n in range(40_000))
_WAITS = {
    "read": "read line; echo got $line",
    "select": "import select; select.select([0], [], []); print('got', input())",
    "poll": "import select; p = select.poll(); p.register(0, 1); p.poll(); print('got', input())",
    "epoll": "import select; p = select.epoll(); p.register(0, 1); p.poll(); print('got', input())",
}


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


def read_all(fd: int) -> bytes:
    with open(fd, "rb", closefd=False) as file:
        return file.read()


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("vxconf-")}


def test_outputs_reach_files_pipes_and_sockets_whole(quick_shop: Workspace, pipe: tuple[int, int]) -> None:
    given = quick_shop.base / "given"
    given.write_bytes(LINES)
    ours, theirs = socket.socketpair()
    with open(given, "rb") as file, open(quick_shop.base / "out", "wb") as out, ours, theirs:
        reading, writing = pipe
        os.set_blocking(writing, False)
        for source, target, far in (
            (file.fileno(), out.fileno(), None),
            (file.fileno(), writing, reading),
            (file.fileno(), theirs.fileno(), ours.fileno()),
        ):
            file.seek(0)
            wait = in_background(functools.partial(quick_shop.run, "cat", stdin=source, stdout=target))
            if far is not None:
                got = b""
                while len(got) < len(LINES):
                    got += os.read(far, 1 << 16)
                assert got == LINES
            assert wait().exit_code == 0
        assert fcntl.fcntl(writing, fcntl.F_GETFL) & os.O_NONBLOCK
    assert (quick_shop.base / "out").read_bytes() == LINES
    assert _threads() == set()


def test_inputs_from_pipes_and_sockets_arrive_whole_and_end(quick_shop: Workspace, pipe: tuple[int, int]) -> None:
    ours, theirs = socket.socketpair()
    reading, writing = pipe
    os.set_blocking(reading, False)
    with ours, theirs:
        for source, far in ((reading, writing), (theirs.fileno(), ours.fileno())):
            wait = in_background(functools.partial(quick_shop.run, "cat", stdin=source))
            left = memoryview(LINES)
            while left:
                left = left[os.write(far, left) :]
            ours.shutdown(socket.SHUT_WR) if far != writing else os.close(writing)
            assert wait().stdout == LINES
    assert fcntl.fcntl(reading, fcntl.F_GETFL) & os.O_NONBLOCK


def test_a_file_is_left_where_the_command_stopped_reading(quick_shop: Workspace) -> None:
    given = quick_shop.base / "given"
    given.write_bytes(LINES)
    with open(given, "rb", buffering=0) as file:
        assert quick_shop.passes("true", stdin=file.fileno()) == ""
        assert file.tell() == 0
        assert quick_shop.passes("read line; echo $line", stdin=file.fileno()) == "line 0\n"
        assert file.tell() == len(b"line 0\n")
        file.seek(len(LINES) - 7)
        assert quick_shop.passes("head -c 3", stdin=file.fileno()) == os.fsdecode(LINES[-7:-4])
        assert file.tell() == len(LINES) - 4
        assert quick_shop.passes("cat", stdin=file.fileno()) == os.fsdecode(LINES[-4:])
        assert file.read() == b""


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_nothing_is_taken_from_a_stream_that_the_command_does_not_read(quick_shop: Workspace, kind: str) -> None:
    ends = os.pipe() if kind == "pipe" else tuple(one.detach() for one in socket.socketpair())
    reading, writing = ends
    try:
        os.write(writing, b"one\n")
        os.write(writing, b"two\n")
        os.write(writing, bytes(10_000))
        assert quick_shop.passes("read -r line </dev/null; sleep 0.1; true", stdin=reading) == ""
        # a shell reads byte by byte, since it leaves the rest to what it runs
        assert quick_shop.passes("read line; echo $line", stdin=reading) == "one\n"
        assert quick_shop.passes("exec <&-; sleep 0.1", stdin=reading) == ""
        assert os.read(reading, 4) == b"two\n"
        assert quick_shop.passes("head -c 10000 | wc -c", stdin=reading) == "10000\n"
    finally:
        for end in ends:
            os.close(end)


def test_no_more_is_taken_ahead_than_a_pipe_holds(quick_shop: Workspace, pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 1 << 20)
    os.write(writing, bytes(900_000))
    assert quick_shop.passes("head -c 8192 | wc -c; sleep 0.2", stdin=reading) == "8192\n"
    os.close(writing)
    assert len(read_all(reading)) >= 900_000 - 8192 - (256 << 10)


def test_one_file_for_both_outputs_is_written_in_order_and_at_its_end(quick_shop: Workspace) -> None:
    place = quick_shop.base / "log"
    place.write_bytes(b"before\n")
    with open(place, "ab") as log:
        quick_shop.run(
            "for n in 1 2 3 4 5; do echo out $n; echo err $n >&2; done", stdout=log.fileno(), stderr=log.fileno()
        )
    said = b"".join(b"out %d\nerr %d\n" % (n, n) for n in range(1, 6))
    assert place.read_bytes() == b"before\n" + said


@pytest.mark.parametrize("where", ["closed", "full"])
def test_a_target_that_takes_no_more_is_heard_as_a_closed_pipe(quick_shop: Workspace, where: str) -> None:
    reading, target = os.pipe()
    os.close(reading)
    if where == "full":
        os.close(target)
        target = os.open("/dev/full", os.O_WRONLY)
    try:
        result = quick_shop.run("trap '' TERM; while echo more; do sleep 0.01; done 2>/dev/null", stdout=target)
        assert (result.signal, result.command_exit_code) == ("SIGPIPE", 141), shown(result)
        told = quick_shop.run(
            "trap '' PIPE; while echo more; do sleep 0.01; done; echo over >&2", stdout=target, observer="auto"
        )
        assert b"over\n" in told.stderr, "who ignores the signal gets EPIPE"
    finally:
        os.close(target)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_that_is_lost_fails_a_command_that_has_passed(quick_shop: Workspace, stream: str) -> None:
    # the command is done before its few bytes reach the file
    command = "echo written" if stream == "stdout" else "echo written >&2"
    with open("/dev/full", "wb") as full:
        target = full.fileno()
        result = (
            quick_shop.run(command, stdout=target) if stream == "stdout" else quick_shop.run(command, stderr=target)
        )
    assert (result.exit_code, result.command_exit_code) == (1, 0), shown(result)
    assert any("No space left on device" in hint.line for hint in result.hints), shown(result)


def test_a_file_that_grew_to_its_limit_fails_a_command_that_has_passed(quick_shop: Workspace) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with (quick_shop.root / "log").open("wb") as log:
        log.seek(1 << 30)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, before[1]))
        try:
            result = quick_shop.run("echo written", stdout=log.fileno())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (result.exit_code, result.command_exit_code) == (1, 0), shown(result)
    assert any("File too large" in hint.line for hint in result.hints), shown(result)


def test_a_reader_that_is_gone_fails_no_command_that_has_passed(quick_shop: Workspace, pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.close(reading)
    result = quick_shop.run("echo written", stdout=writing)
    assert result.command_exit_code in (0, 141)
    assert result.exit_code == result.command_exit_code, shown(result)


def test_a_slow_reader_holds_the_command_back_and_gets_all(
    quick_shop: Workspace, pipe: tuple[int, int], talk: Talk
) -> None:
    reading, writing = pipe
    wait = in_background(
        lambda: quick_shop.run(
            "head -c 3000000 /dev/zero; echo written >&2", stdout=writing, on_stderr=talk.heard, timeout=60
        )
    )
    time.sleep(0.3)
    assert b"written" not in talk._said
    got = 0
    while got < 3_000_000:
        got += len(os.read(reading, 1 << 16))
    assert wait().exit_code == 0


def test_a_result_comes_after_the_last_byte_was_delivered(quick_shop: Workspace, pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    wait = in_background(lambda: quick_shop.run("head -c 20000 /dev/zero; (sleep 30; echo late) &", stdout=writing))
    time.sleep(0.5)
    left, got = 20_000, 0
    while left:
        got = len(os.read(reading, left))
        left -= got
    assert wait().exit_code == 0
    assert not select.select([reading], [], [], 0)[0]


def test_a_run_that_is_stopped_waits_for_no_reader(quick_shop: Workspace, pipe: tuple[int, int], talk: Talk) -> None:
    _, writing = pipe
    with Session() as quick_shop.session:
        wait = in_background(lambda: quick_shop.run("echo up >&2; cat /dev/zero", stdout=writing, on_stderr=talk.heard))
        talk.until("up")
        while select.select([], [writing], [], 0)[1]:
            time.sleep(0.01)
    assert wait().signal == "SIGKILL"


def test_a_run_that_takes_too_long_waits_for_no_reader(quick_shop: Workspace, pipe: tuple[int, int]) -> None:
    result = quick_shop.run("cat /dev/zero", stdout=pipe[1], timeout=0.3)
    assert (result.exit_code, result.timed_out) == (124, True), shown(result)


@pytest.mark.parametrize("way", _WAITS)
def test_a_terminal_is_read_for_who_waits_for_input_and_left_alone_otherwise(
    quick_shop: Workspace, screen: tuple[int, int], way: str
) -> None:
    far, near = screen
    code = _WAITS[way]
    command = code if way == "read" else f'python3 -c "{code}"'
    os.write(far, b"typed\nfor others\n")
    assert quick_shop.passes("sleep 0.2; echo slept", stdin=near) == "slept\n"
    assert quick_shop.passes(command, stdin=near) == "got typed\n"
    assert os.read(near, 99) == b"for others\n"


def test_a_terminal_at_its_end_is_an_input_at_its_end(quick_shop: Workspace, screen: tuple[int, int]) -> None:
    far, near = screen
    os.write(far, b"one\ntwo\n\x04")
    assert quick_shop.passes("cat; test -t 0 || echo none", stdin=near) == "one\ntwo\nnone\n"


def test_no_descriptor_and_no_thread_outlives_a_run(
    quick_shop: Workspace, pipe: tuple[int, int], tmp_path: Path
) -> None:
    reading, writing = pipe
    quick_shop.run("true", stdin=reading, stdout=writing)
    before = len(os.listdir("/proc/self/fd"))
    (tmp_path / "f").write_bytes(b"x")
    with open(tmp_path / "f", "rb") as file:
        for stdin in (reading, file.fileno(), b"bytes", bytes(1 << 20)):
            quick_shop.run("exec 0<&-; echo x", stdin=stdin, stdout=writing, stderr=writing)
            quick_shop.run("kill -9 $$", stdin=stdin, stdout=writing)
            quick_shop.run("true", stdin=stdin, cwd="/gone", stdout=writing)
    assert (len(os.listdir("/proc/self/fd")), _threads()) == (before, set())
