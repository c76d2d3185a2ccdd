"""Which ports this machine's servers listen on, and the end of what a command printed."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest

from sandbox.machine import listening_ports
from sandbox.machine.listening_ports import listens
from sandbox.terminal.output_stream import TAIL_LIMIT, OutputStream


@pytest.mark.parametrize(
    ("family", "address"),
    [
        (socket.AF_INET, "127.0.0.1"),
        (socket.AF_INET, "0.0.0.0"),  # noqa: S104  every address is one of the cases
        (socket.AF_INET6, "::1"),
        (socket.AF_INET6, "::"),
    ],
)
def test_a_server_on_loopback_or_on_every_address_is_found(family: socket.AddressFamily, address: str) -> None:
    with closing(socket.socket(family)) as server:
        try:
            server.bind((address, 0))
        except OSError:
            pytest.skip(f"this machine has no {address}")
        port = server.getsockname()[1]
        assert not listens(port)
        server.listen()
        assert listens(port)


def test_a_server_on_another_address_is_none_of_loopbacks() -> None:
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.2", 0))
        server.listen()
        assert not listens(server.getsockname()[1])


@pytest.mark.parametrize(
    "table", ["", "sl\n", "sl\n  0: nonsense\n", "sl\n 0: 0100007F:XX 0:0 0A\n", "\xff\n\xff 0 0 0A\n"]
)
def test_a_table_that_cannot_be_read_says_nothing(table: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("net") / "tcp"
    path.write_text(table, encoding="latin-1")
    assert not listening_ports._listens(str(path), 80)
    assert not listening_ports._listens(str(path.parent / "gone"), 80)


@pytest.mark.parametrize("size", [1, 7, 1 << 16, 1 << 20])
@pytest.mark.parametrize("keep", [True, False])
def test_the_end_is_kept_however_it_was_cut_into_writes(size: int, *, keep: bool) -> None:
    stream = OutputStream(None, keep)
    assert stream.tail() == b""
    printed = b"".join(b"%07d\n" % number for number in range(3 * TAIL_LIMIT // 8 if size < 8 else 1 << 18))
    for at in range(0, len(printed), size):
        stream.take(printed[at : at + size])
    assert stream.tail() == printed[-TAIL_LIMIT:]
