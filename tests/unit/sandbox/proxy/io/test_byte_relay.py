"""A tunnel through the proxy: both ways at once, each ending by itself, beside others that stand still."""

from __future__ import annotations

import socket
import threading

from tests.support.served_proxy import SECONDS, ServedProxy, Server, all_of, echo, exactly, head_of


def test_a_tunnel_moves_more_than_any_buffer_holds_both_ways_and_each_ends_by_itself() -> None:
    size = 1 << 24
    with Server(echo) as server, ServedProxy([f"127.0.0.1:{server.port}"]) as served:
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


def test_many_are_served_side_by_side_while_one_does_not_read() -> None:
    def flood(client: socket.socket) -> None:
        while True:
            client.sendall(bytes(1 << 20))

    with (
        Server(flood) as server,
        Server(echo) as other,
        ServedProxy([f"127.0.0.1:{server.port}", f"127.0.0.1:{other.port}"]) as served,
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
