"""The host's own proxy, which a task's proxy goes through: the hosts it is asked for, and what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox.proxy.policy.policy import UpstreamProxies
from tests.support.served_proxy import ServedProxy, Server, all_of, head_of, page, query

if TYPE_CHECKING:
    import socket


def test_the_hosts_own_proxy_is_gone_through_but_for_its_exceptions() -> None:
    heads: list[bytes] = []

    def proxy(client: socket.socket) -> None:
        head = head_of(client)
        heads.append(head)
        client.sendall(b"HTTP/1.1 200 Fine\r\nContent-Length: 2\r\n\r\nok")

    with Server(proxy) as server, Server(page) as direct:
        upstream = UpstreamProxies(
            http=f"http://bob:pw@127.0.0.1:{server.port}",
            https=f"http://127.0.0.1:{server.port}",
            except_for=("127.0.0.0/8", ".inner.test"),
        )
        with ServedProxy(["far.test", f"127.0.0.1:{direct.port}"], upstream=upstream) as served:
            status, client = served.connect("far.test:443")
            client.close()
            assert (status, served.asked) == (200, [])
            with served.proxied() as client:
                client.sendall(b"GET http://far.test/x HTTP/1.1\r\nHost: far.test\r\n\r\n")
                assert b" 200 " in head_of(client)
            status, client = served.connect(f"127.0.0.1:{direct.port}")
            client.close()
            assert status == 200
    assert heads[0].startswith(b"CONNECT far.test:443 HTTP/1.1\r\n")
    assert heads[1].startswith(b"GET http://far.test/x HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic Ym9iOnB3\r\n" in heads[1]
    assert len(heads) == 2


@pytest.mark.parametrize(
    "spelled",
    ["127.64.0.1", "[fd76:7863:6f6e:64::1]", "[::ffff:127.64.0.1]", "FAR.test.", "far.test:80", "far.test:080"],
)
def test_the_hosts_own_proxy_and_a_server_are_told_the_host_that_was_judged(spelled: str) -> None:
    """A stand-in is an address of the loopback for anybody but the task."""
    heads: list[bytes] = []

    def proxy(client: socket.socket) -> None:
        heads.append(head_of(client))
        client.sendall(b"HTTP/1.1 200 Fine\r\nContent-Length: 2\r\n\r\nok")

    with Server(proxy) as server:
        upstream = UpstreamProxies(http=f"http://127.0.0.1:{server.port}", https=f"http://127.0.0.1:{server.port}")
        with ServedProxy(["far.test"], upstream=upstream) as served:
            served.ask(query("far.test"))
            with served.proxied() as client:
                client.sendall(f"GET http://{spelled}/x HTTP/1.1\r\nHost: {spelled}\r\n\r\n".encode())
                assert b" 200 " in head_of(client)
            status, client = served.connect(f"{spelled.partition(':0')[0].removesuffix(':80')}:0443")
            client.close()
            assert status == 200
    assert heads[0].startswith(b"GET http://far.test/x HTTP/1.1\r\nHost: far.test\r\n")
    assert heads[1].startswith(b"CONNECT far.test:443 HTTP/1.1\r\nHost: far.test:443\r\n")


def test_a_loopback_is_this_machines_own_whatever_proxy_it_goes_through() -> None:
    with Server(page) as server, Server(page) as other:
        upstream = UpstreamProxies(http=f"http://127.0.0.1:{other.port}", https=f"http://127.0.0.1:{other.port}")
        with ServedProxy([f"127.0.0.1:{server.port}"], upstream=upstream) as served, served.proxied() as client:
            client.sendall(f"GET http://127.0.0.1:{server.port}/x HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert b" 200 " in head_of(client)
            status, tunnel = served.connect(f"127.0.0.1:{server.port}")
            tunnel.close()
            assert status == 200
    assert other.clients == 0


@pytest.mark.parametrize("status", [b"301 There", b"302 There", b"307 There", b"200 Fine"])
def test_a_redirect_of_the_hosts_own_proxy_leads_a_task_nowhere_it_may_not_go(status: bytes) -> None:
    there = "169.254.169.254"

    def proxy(client: socket.socket) -> None:
        head_of(client)
        client.sendall(b"HTTP/1.1 %b\r\nLocation: http://%b/\r\nContent-Length: 0\r\n\r\n" % (status, there.encode()))

    with Server(proxy) as server:
        upstream = UpstreamProxies(http=f"http://127.0.0.1:{server.port}", https=f"http://127.0.0.1:{server.port}")
        with ServedProxy(["far.test"], upstream=upstream) as served:
            code, client = served.connect("far.test:443")
            client.close()
            assert code == (200 if status.startswith(b"2") else 502)
            with served.proxied() as client:
                for host, told in (("far.test", status.split()[0]), (there, b"403")):
                    client.sendall(f"GET http://{host}/ HTTP/1.1\r\nHost: far.test\r\n\r\n".encode())
                    assert head_of(client).split(b" ", 2)[1] == told
            assert [asked for asked, _ in served.reports] == [f"{there}:80"]
        assert server.clients == 2


@pytest.mark.parametrize("method", ["TRACE", "Trace"])
def test_the_password_of_the_hosts_own_proxy_is_sent_with_nothing_that_is_answered_by_showing_it(method: str) -> None:
    request = f"{method} http://far.test/ HTTP/1.1\r\nHost: far.test\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n"
    with Server(page) as server:
        for user, status in (("bob:pw@", b"400"), ("", b"200")):
            upstream = UpstreamProxies(http=f"http://{user}127.0.0.1:{server.port}")
            with ServedProxy(["far.test"], upstream=upstream) as served, served.proxied() as client:
                client.sendall(request.encode())
                assert head_of(client).split(b" ", 2)[1] == status
                assert b"Basic" not in all_of(client)
