"""What a caller has behind a run's streams: a task reads and writes its bytes, and touches it in no other way."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import stat
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import Session
from sandbox.linux.run import standard_streams
from tests.redteam.conftest import Box, shown
from tests.support.walls_away import NO_LANDLOCK, take_away

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BEFORE = b"the caller's own\n"
PIPE = str(stat.S_IFIFO)


@pytest.fixture
def outside(base: Path) -> Path:
    place = base / "outside"
    place.mkdir()
    (place / "secret.txt").write_bytes(b"the caller's secret\n")
    return place


@pytest.fixture
def given(outside: Path) -> Iterator[int]:
    """A file of the caller's, open for reading and writing, at its end."""
    (outside / "given").write_bytes(BEFORE)
    os.chmod(outside / "given", 0o600)
    os.utime(outside / "given", (1000, 1000))
    fd = os.open(outside / "given", os.O_RDWR)
    yield fd
    os.close(fd)


def attacked(box: Box, **streams: Any) -> dict[str, str]:
    """What a task that did all it could to its streams told."""
    result = box.run(box.program("streams", "out/told.json"), capture=False, **streams)
    told = box.project / "out" / "told.json"
    assert told.exists(), shown(result)
    found: dict[str, str] = json.loads(told.read_text(encoding="utf-8"))
    assert "the caller's secret" not in str(found), found
    assert not (box.project / "out" / "link").exists()
    return found


def untouched(outside: Path) -> bool:
    status = os.stat(outside / "given")
    return (stat.S_IMODE(status.st_mode), status.st_mtime, (outside / "given").read_bytes()) == (0o600, 1000, BEFORE)


def test_a_file_at_the_input_is_only_read(each_box: Box, outside: Path, given: int) -> None:
    told = attacked(each_box, stdin=given)
    assert untouched(outside), told
    assert [told[f"{number} kind"] for number in (0, 1, 2)] == [PIPE] * 3
    assert not fcntl.fcntl(given, fcntl.F_GETFL) & os.O_NONBLOCK


def test_a_file_at_the_outputs_is_only_written(each_box: Box, outside: Path, given: int) -> None:
    told = attacked(each_box, stdout=given, stderr=given)
    assert untouched(outside), told
    assert "own" not in "".join(told.values()), "the task read what was in the file before it"
    assert not fcntl.fcntl(given, fcntl.F_GETFL) & os.O_NONBLOCK


def test_a_directory_at_any_stream_leads_nowhere(box: Box, outside: Path) -> None:
    directory = os.open(outside, os.O_RDONLY | os.O_DIRECTORY)
    try:
        told = attacked(box, stdin=directory, stdout=directory, stderr=directory)
    finally:
        os.close(directory)
    assert [told[f"{number} near"] for number in (0, 1, 2)] == ["NotADirectoryError"] * 3


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET])
def test_a_socket_at_any_stream_is_none_to_the_task(box: Box, kind: socket.SocketKind) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    with ours, theirs:
        ours.send(BEFORE)
        told = attacked(box, stdin=theirs.fileno(), stdout=theirs.fileno())
        ours.setblocking(False)
        with pytest.raises(BlockingIOError):
            ours.recv(99)
    assert [told[f"{number} stream"] for number in (0, 1, 2)] == ["OSError"] * 3, told


def test_a_named_pipe_at_a_stream_is_another(box: Box, outside: Path) -> None:
    os.mkfifo(outside / "pipe")
    other = os.open(outside / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    theirs = os.open(outside / "pipe", os.O_RDWR)
    try:
        attacked(box, stdin=theirs, stdout=theirs)
        assert not fcntl.fcntl(theirs, fcntl.F_GETFL) & os.O_NONBLOCK
        with pytest.raises(BlockingIOError):
            os.read(other, 99)
    finally:
        os.close(other)
        os.close(theirs)


def test_the_hosts_devices_keep_their_modes_and_times(each_box: Box) -> None:
    devices = [f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")]
    before = [(status.st_mode, status.st_gid) for status in map(os.stat, devices)]
    result = each_box.run(
        f"for d in {' '.join(devices)}; do chmod 606 $d; chgrp 0 $d; touch -c -d @1 $d; done;"
        " echo x >/dev/null && exec 3<>/dev/zero && echo x >&3 && echo written"
    )
    assert [(status.st_mode, status.st_gid) for status in map(os.stat, devices)] == before, shown(result)
    assert all(os.stat(device).st_mtime != 1 for device in devices)
    assert b"written\n" in result.stdout, shown(result)


def test_an_empty_input_is_the_tasks_own_null_device(box: Box) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    try:
        for stdin in (None, null):
            result = box.run(
                "grep -E '^mnt_id' /proc/self/fdinfo/0; grep ' /dev/null ' /proc/self/mountinfo; cat", stdin=stdin
            )
            number, mount = result.stdout.decode().splitlines()
            assert number.split()[1] == mount.split()[0], shown(result)
    finally:
        os.close(null)


_ACCEPTS_ALL = "from sandbox.linux.inside import accepted_streams; accepted_streams.accepted = list"


@pytest.mark.parametrize("accepts", [False, True], ids=["the second holds", "both are gone"])
def test_without_its_walls_a_callers_file_is_changed(
    box: Box, outside: Path, given: int, monkeypatch: pytest.MonkeyPatch, *, accepts: bool
) -> None:
    def as_it_is(self: standard_streams.StandardStreams, stdin: Any, _awaited: object) -> None:
        self.inside.append(os.open(os.devnull, os.O_RDONLY) if stdin is None else os.dup(stdin))

    monkeypatch.setattr(standard_streams.StandardStreams, "_input", as_it_is)
    take_away(monkeypatch, f"{NO_LANDLOCK}\n{_ACCEPTS_ALL}" if accepts else NO_LANDLOCK)
    with Session() as box.session:
        result = box.run(box.program("streams", "out/told.json"), stdin=given)
    if accepts:
        assert not untouched(outside), shown(result)
        assert b"changed" in (outside / "given").read_bytes()
    else:
        assert (result.exit_code, result.refusals[0].message) == (125, "a standard stream is no pipe"), shown(result)
        assert untouched(outside)


def test_a_callers_terminal_is_no_descriptor_of_the_task(box: Box, screen: tuple[int, int]) -> None:
    far, near = screen
    told = attacked(box, stdin=near, stdout=near, stderr=near)
    assert [told[f"{number} kind"] for number in (0, 1, 2)] == [PIPE] * 3
    os.set_blocking(far, False)
    with pytest.raises(BlockingIOError):
        os.read(far, 99)
