"""No race, no spelling and no borrowed descriptor gets a byte of a task's to a socket of the host's."""

from __future__ import annotations

import dataclasses
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.redteam.conftest import Box, shown

if TYPE_CHECKING:
    from collections.abc import Iterator


_REFUSED = {"EPERM", "EACCES", "EROFS", "EXDEV", "ENOENT", "ELOOP"}


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of the host's, and a temporary one for the task, with room for the names of sockets."""
    directory = Path(tempfile.mkdtemp(prefix="vxr", dir="/tmp"))
    (directory / "temp").mkdir()
    (directory / "host").mkdir()
    monkeypatch.setenv("VX_TMPDIR", str(directory / "temp"))
    yield directory / "host"
    shutil.rmtree(directory)


@pytest.mark.parametrize("part", ["all", "descriptor"])
@pytest.mark.parametrize("observer", ["auto", "notify"])
def test_no_race_reaches_the_hosts_sockets(box: Box, outside: Path, part: str, observer: str) -> None:
    listed = outside / "listed"
    hostile = dataclasses.replace(box, observer=observer, write=(), sockets=(str(listed),))
    with (
        socket.socket(socket.AF_UNIX) as stream,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as letters,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as abstract,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as server,
    ):
        stream.bind(str(outside / "stream"))
        stream.listen()
        letters.bind(str(outside / "letters"))
        abstract.bind("")  # an abstract name of its own
        udp.bind(("127.0.0.1", 0))
        server.bind(str(listed))
        server.listen()
        thread = threading.Thread(target=_hands_over, args=(server,))
        thread.start()
        try:
            told, result = hostile.attack(
                "sockets",
                *(stream.getsockname(), letters.getsockname(), listed, udp.getsockname()[1], part),
                abstract.getsockname().hex(),
                timeout=110,
            )
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
        for one in (stream, letters, abstract, udp):
            one.setblocking(False)
        with pytest.raises(BlockingIOError):
            stream.accept()
        for one in (letters, abstract, udp):
            with pytest.raises(BlockingIOError):
                one.recv(16)
    assert result.command_exit_code == 0, shown(result)
    assert all(told.pop(label) for label in list(told) if label.startswith("tries"))
    if part == "descriptor":
        return
    reached = {v.path for v in result.violations if v.kind == "network"}
    assert reached >= {str(outside / "stream"), str(outside / "letters")}, shown(result)
    assert told.pop("sent of three") == 1
    assert (told.pop("arrived"), told.pop("arrived after")) == ("mixed", "nothing")
    assert told.pop("while many wait") == "done"
    assert told.pop("still there")
    assert told.pop("too many descriptors") in ("EINVAL", "ETOOMANYREFS")
    assert told.pop("no such descriptor") == "EBADF"
    assert told.pop("a control message too long") in ("ENOBUFS", "EINVAL")
    assert {label: value for label, value in told.items() if value not in _REFUSED} == {}, shown(result)


def _hands_over(server: socket.socket) -> None:
    """A careless server of the host's: sockets of its own network for whoever comes."""
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        with (
            client,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
        ):
            socket.send_fds(client, [b"x"], [one.fileno(), other.fileno()])
