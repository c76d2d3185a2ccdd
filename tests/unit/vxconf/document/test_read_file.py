"""A reader gives the bytes of regular files, and refuses every other kind of file."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from vxconf.document.read_file import Missing, ReadError, TooLarge, read_file

if TYPE_CHECKING:
    from pathlib import Path


def test_a_regular_file_is_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    assert read_file(str(tmp_path / "link")) == b"x"


def test_a_file_that_says_it_is_empty_is_read_to_its_end() -> None:
    assert b"processor" in read_file("/proc/cpuinfo").lower()


@pytest.mark.parametrize("name", ["missing", "file/below", "dangling"])
def test_a_missing_file_is_missing(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(Missing):
        read_file(str(tmp_path / name))


def test_a_directory_a_pipe_a_socket_and_a_device_are_named_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for path, what in (
            (str(tmp_path), "a directory"),
            (str(tmp_path / "pipe"), "a named pipe"),
            (str(tmp_path / "socket"), "a socket"),
            ("/dev/zero", "a device"),
        ):
            with pytest.raises(ReadError, match=what):
                read_file(path)


def test_more_bytes_than_the_limit_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"12345")
    assert read_file(str(path), limit=5) == b"12345"
    with pytest.raises(TooLarge):
        read_file(str(path), limit=4)


def test_a_growing_file_is_stopped_at_the_limit() -> None:
    # stat gives a size of 0
    with pytest.raises(TooLarge):
        read_file("/proc/cpuinfo", limit=10)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_says_so(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("")
    path.chmod(0)
    with pytest.raises(ReadError, match="permission denied"):
        read_file(str(path))


def test_a_name_with_nul_and_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(ReadError, match="too many"):
        read_file(str(tmp_path / "a"))
    with pytest.raises(ReadError, match="NUL"):
        read_file("a\0b")
