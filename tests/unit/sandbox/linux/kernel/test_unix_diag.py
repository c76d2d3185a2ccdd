"""The kernel's answers about AF_UNIX sockets, as bytes."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.linux.kernel import unix_diag

if TYPE_CHECKING:
    from pathlib import Path

_SOCKET = struct.pack("<BBBBIII", 1, 1, 10, 0, 77, 5, 6)
_FILE = struct.pack("<HHII", 12, 1, 4242, 254 << 20 | 3)


def _message(kind: int, body: bytes) -> bytes:
    return struct.pack("<IHHII", 16 + len(body), kind, 2, 1, 0) + body


def test_files_and_the_end_are_told() -> None:
    name = struct.pack("<HH3sx", 7, 0, b"abc")
    data = _message(20, _SOCKET + name + _FILE) + _message(20, _SOCKET + name)
    assert unix_diag.read(data) == ([unix_diag.BoundFile(4242, os.makedev(254, 3), 77)], False)
    assert unix_diag.read(data + _message(3, bytes(4))) == (
        [unix_diag.BoundFile(4242, os.makedev(254, 3), 77)],
        True,
    )


def test_a_large_device_number_is_as_stat_has_it() -> None:
    number = struct.pack("<HHII", 12, 1, 1, 8 << 20 | 0x54321)
    assert unix_diag.read(_message(20, _SOCKET + number))[0][0].device == os.makedev(8, 0x54321)


def test_a_refusal_is_raised() -> None:
    with pytest.raises(OSError, match="tells of no sockets") as refused:
        unix_diag.read(_message(2, struct.pack("<i", -2)))
    assert refused.value.errno == 2


@given(st.binary(max_size=200))
def test_bytes_that_are_no_answer_raise_nothing_else(data: bytes) -> None:
    with contextlib.suppress(unix_diag.MalformedAnswer, OSError):
        unix_diag.read(data)
    with contextlib.suppress(unix_diag.MalformedAnswer, OSError):
        unix_diag.read(_message(20, data))


@pytest.mark.skipif(sys.platform != "linux", reason="netlink is of Linux")
def test_a_kernel_answers_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        try:
            asked = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, unix_diag.PROTOCOL)
        except OSError:
            pytest.skip("this kernel has no sock_diag")
        monkeypatch.chdir(tmp_path)
        bound.bind("s")
        with asked:
            asked.send(unix_diag.QUESTION)
            found: list[unix_diag.BoundFile] = []
            last = False
            while not last:
                told, last = unix_diag.read(asked.recv(1 << 16))
                found += told
        about, itself = (tmp_path / "s").stat(), os.fstat(bound.fileno())
    assert unix_diag.BoundFile(about.st_ino & 0xFFFFFFFF, about.st_dev, itself.st_ino) in found
