"""The second wall around what a task writes: what a mount lets through, Landlock does not."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox import Session
from sandbox.linux.kernel import landlock
from tests.redteam.conftest import Box, shown
from tests.support.observers import ANSWERING
from tests.support.walls_away import NO_LANDLOCK, take_away

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(
    landlock.version() < landlock.USABLE, reason="this kernel has no Landlock, and nothing else keeps these out"
)

_REFUSED = {"EACCES", "EROFS", "EXDEV", "EPERM"}
_WORD = b"from the task\n"


@contextmanager
def _read(path: Path) -> Iterator[int]:
    os.mkfifo(path, 0o666)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    # while there is a writer, a pipe that nothing was written to says so
    writer = os.open(path, os.O_WRONLY)
    try:
        yield reader
    finally:
        os.close(writer)
        os.close(reader)


def _pipes(box: Box, base: Path) -> tuple[dict[str, str], list[bytes], set[str | None]]:
    """What a task told of two pipes of the host's, what came out of each, and which paths were violations."""
    with _read(box.project / "lib/pipe") as granted, _read(base / "pipe") as outside:
        told, result = box.attack("pipes", base / "pipe")
        came = []
        for reader in (granted, outside):
            try:
                came.append(os.read(reader, 4096))
            except BlockingIOError:
                came.append(b"")
    assert result.command_exit_code == 0, shown(result)
    own = {told.pop("own in the temporary directory"), told.pop("own in out")}
    assert own == {"done"}, shown(result)
    return told, came, {v.path for v in result.violations if v.kind == "write"}


def test_a_pipe_outside_write_grants_is_not_written_to(each_box: Box, base: Path) -> None:
    told, came, violations = _pipes(each_box, base)
    assert came == [b"", b""]
    assert len(told) == 14
    assert set(told.values()) <= _REFUSED, told
    assert str(each_box.project / "lib/pipe") in violations


def test_without_landlock_a_pipe_on_a_read_only_mount_is_written_to(
    box: Box, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away(monkeypatch, NO_LANDLOCK)
    with Session() as box.session:
        told, came, violations = _pipes(box, base)
    assert set(told.values()) == {"done"}
    assert all(word.startswith(_WORD) for word in came)
    assert str(box.project / "lib/pipe") in violations, "it is a violation all the same"


_NAMES_OPEN = """from sandbox.linux.inside import landlock_rules
found = landlock_rules.writable_places
landlock_rules.writable_places = lambda plan, **given: found(plan, **{**given, "answered": False})"""


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
def test_a_pipe_beside_a_granted_name_is_not_written_to_either(each_box: Box, base: Path) -> None:
    each_box.write = ("out/", "made.txt", "own")
    told, came, violations = _pipes(each_box, base)
    assert came == [b"", b""]
    assert set(told.values()) <= _REFUSED, told
    assert str(each_box.project / "lib/pipe") in violations


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
def test_nor_by_a_path_that_changes_after_the_look(each_box: Box) -> None:
    each_box.write = ("out/", "made.txt")
    with _read(each_box.project / "lib/pipe") as reader:
        told, result = each_box.attack("swapped_pipe")
        with pytest.raises(BlockingIOError):
            os.read(reader, 9)
    assert told["pipe"] == 0 < told["name"], shown(result)


def test_without_that_rule_a_pipe_beside_a_granted_name_is_written_to(
    box: Box, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.write = ("out/", "made.txt")
    take_away(monkeypatch, _NAMES_OPEN)
    with Session() as box.session:
        told, came, _ = _pipes(box, base)
    assert {what for label, what in told.items() if label.startswith("granted")} == {"done"}
    assert came[0].startswith(_WORD)
    assert came[1] == b""


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
def test_what_is_made_at_and_below_a_granted_name_is_written_to(each_box: Box) -> None:
    each_box.write = ("made.txt", "own", "deep/*.txt")
    result = each_box.run(
        "umask 027; echo one > made.txt; echo two >> made.txt; cat made.txt; echo three > made.txt; cat made.txt\n"
        "mkdir own && mkfifo own/pipe && (echo four > own/pipe &) && cat own/pipe\n"
        "echo five > own/file && mv own/file made.txt && cat made.txt; mkdir -p deep; echo six > deep/a.txt\n"
        "set -C; echo seven > made.txt"
    )
    assert result.stdout.split() == [b"one", b"two", b"three", b"four", b"five"], shown(result)
    assert (result.violations, result.command_exit_code) == ((), 2), shown(result)
    assert (each_box.project / "deep/a.txt").read_text(encoding="utf-8") == "six\n"
    assert (each_box.project / "deep/a.txt").stat().st_mode & 0o777 == 0o640


@pytest.fixture
def given() -> Iterator[Path]:
    """A directory of the host's with a file, and room for the name of a socket."""
    directory = Path(tempfile.mkdtemp(prefix="vxr", dir="/tmp"))
    (directory / "given").write_text("the host's\n", encoding="utf-8")
    yield directory
    shutil.rmtree(directory)


def _handed(box: Box, given: Path) -> dict[str, str]:
    """What a task told that a listed server hands descriptors, opened for reading."""
    box.sockets = (str(given / "s"),)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(given / "s"))
        server.listen()
        thread = threading.Thread(target=_hand_over, args=(server, given))
        thread.start()
        try:
            told, result = box.attack("handed", given / "s")
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
    assert result.command_exit_code == 0, shown(result)
    return told


def _hand_over(server: socket.socket, given: Path) -> None:
    try:
        client, _ = server.accept()
    except OSError:
        return
    file, directory = os.open(given / "given", os.O_RDONLY), os.open(given, os.O_RDONLY)
    with client:
        socket.send_fds(client, [b"x"], [file, directory])
    os.close(file)
    os.close(directory)


def test_a_descriptor_that_a_task_is_handed_for_reading_is_no_way_to_write(box: Box, given: Path) -> None:
    told = _handed(box, given)
    assert len(told) == 12
    assert set(told.values()) <= _REFUSED, told
    assert (given / "given").read_text(encoding="utf-8") == "the host's\n"
    assert {entry.name for entry in given.iterdir()} == {"given", "s"}


def test_without_landlock_such_a_descriptor_is_a_way_to_write(
    box: Box, given: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away(monkeypatch, NO_LANDLOCK)
    with Session() as box.session:
        told = _handed(box, given)
    assert told["a file again"] == told["a new file"] == told["a removal"] == "done"
    assert {entry.name for entry in given.iterdir()} == {"new", "made", "link", "fifo", "s"}


@pytest.mark.parametrize(("known", "strength"), [(7, "full"), (5, "weaker"), (2, "weaker"), (0, "off"), (1, "off")])
def test_a_result_says_what_this_kernel_s_landlock_is_worth(
    box: Box, known: int, strength: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if known > landlock.version():
        pytest.skip(f"this kernel has version {landlock.version()}")
    take_away(monkeypatch, f"from sandbox.linux.kernel import landlock; landlock.version = lambda: {known}")
    with Session() as box.session:
        result = box.run("mkdir out/a out/b && echo x > out/a/f && mv out/a/f out/b/f && cat lib/cart.py > out/b/f")
    assert result.exit_code == 0, shown(result)
    assert result.protections.landlock == strength
