"""The front where there is neither epoll nor netlink: waiting with poll, asking libc for this machine's addresses."""

from __future__ import annotations

import errno
import os
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from sandbox.proxy.io import getifaddrs, interfaces
from sandbox.proxy.io.event_poller import READABLE, WRITABLE, Edges, Levels
from tests.support.fronts import SECONDS, Served, Server, all_of, echo, exactly, head_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.proxy.io.event_poller import Poller

_ON_LINUX = pytest.mark.skipif(not hasattr(socket, "AF_NETLINK"), reason="nothing to compare with")
_BOTH = pytest.mark.parametrize("waits", [pytest.param(Edges, marks=_ON_LINUX), Levels])


@_BOTH
def test_a_tunnel_moves_more_than_any_buffer_holds_both_ways_and_each_ends_by_itself(
    waits: Callable[[], Poller],
) -> None:
    size = 1 << 24
    with Server(echo) as server, Served([f"127.0.0.1:{server.port}"], waits=waits()) as served:
        status, client = served.connect(f"127.0.0.1:{server.port}")
        assert status == 200

        def write() -> None:
            client.sendall(b"x" * size)
            client.shutdown(socket.SHUT_WR)

        writer = threading.Thread(target=write)
        writer.start()
        assert len(exactly(client, size)) == size
        assert client.recv(1) == b""
        writer.join(SECONDS)
        client.close()


@_BOTH
def test_many_are_served_side_by_side_while_one_does_not_read(waits: Callable[[], Poller]) -> None:
    def flood(client: socket.socket) -> None:
        while True:
            client.sendall(bytes(1 << 20))

    with (
        Server(flood) as server,
        Server(echo) as other,
        Served([f"127.0.0.1:{server.port}", f"127.0.0.1:{other.port}"], waits=waits()) as served,
    ):
        _, slow = served.connect(f"127.0.0.1:{server.port}")
        there = f"127.0.0.1:{other.port}"
        clients = [served.proxied() for _ in range(40)]
        for client in clients:
            client.sendall(f"CONNECT {there} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        for number, client in enumerate(clients):
            assert b" 200 " in head_of(client)
            client.sendall(b"%d" % number)
            client.shutdown(socket.SHUT_WR)
            assert all_of(client) == b"%d" % number
            client.close()
        slow.close()


@_BOTH
def test_what_is_ready_and_waited_for_by_nobody_takes_no_turns(waits: Callable[[], Poller]) -> None:
    poller = waits()
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        poller.watch(one.fileno())
        other.send(b"x")
        poller.want(one.fileno(), READABLE)
        ((fd, event),) = poller.poll(SECONDS)
        assert fd == one.fileno()
        assert event & READABLE
        assert poller.poll(0) == []
        other.send(b"x")
        poller.want(one.fileno(), READABLE)
        poller.want(one.fileno(), WRITABLE)
        ((fd, event),) = poller.poll(SECONDS)
        assert event & READABLE
        assert event & WRITABLE
        poller.forget(one.fileno())
        assert poller.poll(0) == []
    poller.close()


@_ON_LINUX
def test_libc_tells_the_addresses_the_kernel_tells() -> None:
    own = getifaddrs.own_addresses()
    assert own == interfaces.own_addresses()
    assert "127.0.0.1" in own


def test_an_address_of_one_link_is_told_without_the_links_number() -> None:
    kept_by_bsd = socket.inet_pton(socket.AF_INET6, "fe80:4::1")
    assert getifaddrs.unscoped(kept_by_bsd) == socket.inet_pton(socket.AF_INET6, "fe80::1")
    other = socket.inet_pton(socket.AF_INET6, "fd00:4::1")
    assert getifaddrs.unscoped(other) == other


def test_nothing_is_dialled_while_this_machines_addresses_are_not_known() -> None:
    def unknown() -> frozenset[str]:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    with Served(["db.test"], hosts={"db.test": ["192.0.2.1"]}, own=unknown) as served, served.proxied() as client:
        client.sendall(b"CONNECT db.test:5432 HTTP/1.1\r\nHost: x\r\n\r\n")
        said = all_of(client)
    assert said.startswith(b"HTTP/1.1 502 ")
    assert b"this machine's own addresses, which are refused, are not known (Permission denied)" in said
