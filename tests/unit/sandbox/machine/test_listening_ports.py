"""Which ports this machine's servers listen on, and the end of what a command printed."""

from __future__ import annotations

import errno
import socket
from contextlib import ExitStack, closing

import pytest

from sandbox.machine import listening_ports
from sandbox.machine.listening_ports import listens
from sandbox.terminal.output_stream import TAIL_LIMIT, OutputStream


def _held(stack: ExitStack, *addresses: str) -> socket.socket:
    """A socket bound at the first address; at the same port nobody else can be, on loopback or on every address.

    A port the kernel picks is free at that address alone: somebody else's server may have it at another.
    """
    for _ in range(100):
        with ExitStack() as trying:
            sockets: list[socket.socket] = []
            port = 0
            for address in addresses:
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                one = trying.enter_context(closing(socket.socket(family)))
                try:
                    one.bind((address, port))
                except OSError as error:
                    if error.errno == errno.EADDRINUSE:
                        break
                    if not sockets:
                        pytest.skip(f"this machine has no {address}")
                    continue
                sockets.append(one)
                port = one.getsockname()[1]
            else:
                stack.push(trying.pop_all())
                return sockets[0]
    pytest.fail("no port is free on all of loopback")


@pytest.mark.parametrize(
    ("address", "others"),
    [
        ("127.0.0.1", ("::1",)),
        ("0.0.0.0", ("::1",)),  # noqa: S104  every address is one of the cases
        ("::1", ("127.0.0.1",)),
        # of both families
        ("::", ()),
    ],
)
def test_a_server_on_loopback_or_on_every_address_is_found(address: str, others: tuple[str, ...]) -> None:
    with ExitStack() as stack:
        server = _held(stack, address, *others)
        port = server.getsockname()[1]
        assert not listens(port)
        server.listen()
        assert listens(port)


def test_a_server_on_another_address_is_none_of_loopbacks() -> None:
    with ExitStack() as stack:
        server = _held(stack, "127.0.0.2", "127.0.0.1", "::1")
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
