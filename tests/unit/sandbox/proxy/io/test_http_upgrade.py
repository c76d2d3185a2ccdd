"""A plain request that asks for another protocol: carried once the server has agreed, and judged as any other."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

import pytest

from sandbox.proxy.policy.policy import NOT_ALLOWED, UpstreamProxies
from tests.support.greetings import greeting
from tests.support.served_proxy import ServedProxy, Server, all_of, exactly, head_of, page

if TYPE_CHECKING:
    import socket

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
KEY = base64.b64encode(b"sixteen bytes....")


def asking(target: str, *lines: str, method: str = "GET", version: str = "1.1") -> bytes:
    """The opening handshake of RFC 6455."""
    usual = ("Connection: Upgrade", "Upgrade: websocket", f"Sec-WebSocket-Key: {KEY.decode()}")
    head = (f"{method} http://{target}/chat HTTP/{version}", f"Host: {target}", *(lines or usual))
    return "\r\n".join((*head, "", "")).encode()


def accepts(client: socket.socket) -> None:
    """A server that agrees and speaks first, then sends back what comes; told what it was asked."""
    head = head_of(client)
    lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
    assert lines[b"upgrade"] == b"websocket"
    assert lines[b"connection"] == b"upgrade"
    key = base64.b64encode(hashlib.sha1(KEY + _GUID, usedforsecurity=False).digest())
    client.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + key + b"\r\n\r\n\x81\x05hello"
    )
    while data := client.recv(1 << 16):
        client.sendall(data)
    client.shutdown(1)


def test_a_protocol_the_server_agreed_to_is_carried_both_ways_as_it_is() -> None:
    with Server(accepts) as server, ServedProxy([f"127.0.0.1:{server.port}"]) as served, served.proxied() as client:
        client.sendall(asking(f"127.0.0.1:{server.port}"))
        head = head_of(client)
        assert head.startswith(b"HTTP/1.1 101 ")
        told = [line.lower() for line in head.split(b"\r\n")]
        assert b"upgrade: websocket" in told
        assert b"connection: upgrade" in told
        key = base64.b64encode(hashlib.sha1(KEY + _GUID, usedforsecurity=False).digest())
        assert b"Sec-WebSocket-Accept: " + key in head.split(b"\r\n")
        assert exactly(client, 7) == b"\x81\x05hello"
        frame = bytes(range(256)) * 300 + b"GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n"
        client.sendall(frame)
        assert exactly(client, len(frame)) == frame
        client.shutdown(1)
        assert all_of(client) == b""
        assert served.reports == []


def test_what_is_sent_before_the_server_agreed_is_the_new_protocols_once_it_has() -> None:
    with Server(accepts) as server, ServedProxy([f"127.0.0.1:{server.port}"]) as served, served.proxied() as client:
        client.sendall(asking(f"127.0.0.1:{server.port}") + b"early")
        assert head_of(client).startswith(b"HTTP/1.1 101 ")
        assert exactly(client, 12) == b"\x81\x05helloearly"
        assert served.reports == []


@pytest.mark.parametrize("early", [True, False])
def test_a_name_that_is_asked_for_over_tls_behind_a_switch_is_judged(*, early: bool) -> None:
    heard: list[bytes] = []

    def switches(client: socket.socket) -> None:
        head_of(client)
        client.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: TLS/1.0\r\nConnection: Upgrade\r\n\r\n")
        while data := client.recv(1 << 16):
            heard.append(data)

    with Server(switches) as server:
        allowed = [f"web.test:{server.port}", f"127.0.0.1:{server.port}"]
        with ServedProxy(allowed, hosts={"web.test": ["127.0.0.1"]}) as served, served.proxied() as client:
            asks = asking(f"web.test:{server.port}", "Connection: Upgrade", "Upgrade: TLS/1.0")
            client.sendall(asks + (greeting("hidden.test") if early else b""))
            assert head_of(client).startswith(b"HTTP/1.1 101 ")
            if not early:
                client.sendall(greeting("hidden.test"))
            assert all_of(client) == b"<reset>"
            assert served.reports == [(f"hidden.test:{server.port}", f"{NOT_ALLOWED}: asked of web.test over TLS")]
    assert heard == []


def test_a_host_that_is_not_listed_is_asked_nothing() -> None:
    with Server(accepts) as server, ServedProxy(["listed.test"]) as served, served.proxied() as client:
        client.sendall(asking(f"127.0.0.1:{server.port}"))
        assert head_of(client).startswith(b"HTTP/1.1 403 ")
        assert served.reports == [(f"127.0.0.1:{server.port}", NOT_ALLOWED)]
        assert server.clients == 0


def test_where_the_server_does_not_agree_the_next_request_is_a_request() -> None:
    hidden = b"GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n"
    with Server(page) as server, ServedProxy([f"127.0.0.1:{server.port}"]) as served, served.proxied() as client:
        client.sendall(asking(f"127.0.0.1:{server.port}") + hidden)
        told = all_of(client)
        assert told.startswith(b"HTTP/1.1 200 ")
        assert told.count(b"HTTP/1.1 403 ") == 1
        assert served.reports == [("other.test:80", NOT_ALLOWED)]


@pytest.mark.parametrize(
    "request_head",
    [
        asking("{}", "Upgrade: websocket"),
        asking("{}", "Connection: Upgrade"),
        asking("{}", "Connection: close", "Upgrade: websocket"),
        asking("{}", "Connection: Upgrade", "Upgrade: websocket", method="POST"),
        asking("{}", "Connection: Upgrade", "Upgrade: websocket", version="1.0"),
        asking("{}", "Connection: Upgrade", "Upgrade: websocket", "Content-Length: 5") + b"hello",
        asking("{}", "Connection: Upgrade", "Upgrade: websocket", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
    ],
)
def test_a_server_is_not_asked_by_a_request_that_is_more_or_less_than_that(request_head: bytes) -> None:
    heads: list[bytes] = []

    def agrees_unasked(client: socket.socket) -> None:
        heads.append(head_of(client).lower())
        client.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello")
        all_of(client)

    with (
        Server(agrees_unasked) as server,
        ServedProxy([f"127.0.0.1:{server.port}"]) as served,
        served.proxied() as client,
    ):
        client.sendall(request_head.replace(b"{}", b"127.0.0.1:%d" % server.port))
        told = all_of(client)
        # an agreement nobody asked for is no answer
        assert told.startswith(b"HTTP/1.1 502 ")
        assert b"101" not in told
        assert served.reports == []
    assert len(heads) == 1
    assert b"upgrade" not in heads[0]


def test_the_hosts_own_proxy_is_asked_for_a_tunnel() -> None:
    heads: list[bytes] = []

    def proxy(client: socket.socket) -> None:
        heads.append(head_of(client))
        client.sendall(b"HTTP/1.1 200 Fine\r\n\r\n")
        accepts(client)

    with Server(proxy) as server:
        upstream = UpstreamProxies(http="http://127.0.0.1:9", https=f"http://127.0.0.1:{server.port}")
        with ServedProxy(["far.test"], upstream=upstream) as served, served.proxied() as client:
            client.sendall(asking("far.test"))
            assert head_of(client).startswith(b"HTTP/1.1 101 ")
            assert exactly(client, 7) == b"\x81\x05hello"
    assert heads[0].startswith(b"CONNECT far.test:80 HTTP/1.1\r\n")
