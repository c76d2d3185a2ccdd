"""A whole proxy in this process, its clients and its servers real sockets."""

from __future__ import annotations

import contextlib
import resource
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from sandbox.proxy.policy import address_guard
from sandbox.proxy.policy.policy import DENIED, NOT_ALLOWED
from sandbox.proxy.protocol import dns_messages
from tests.support.served_proxy import (
    SECONDS,
    ServedProxy,
    Server,
    all_of,
    echo,
    exactly,
    head_of,
    name_data,
    page,
    query,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_listed_host_is_connected_to_and_both_directions_end_by_themselves() -> None:
    with Server(echo) as server, ServedProxy([f"127.0.0.1:{server.port}"]) as served:
        status, client = served.connect(f"127.0.0.1:{server.port}")
        with client:
            assert status == 200
            client.sendall(b"hello")
            client.shutdown(socket.SHUT_WR)
            assert all_of(client) == b"hello"
        assert served.reports == []


@pytest.mark.parametrize(
    ("target", "asked"),
    [
        ("other.test:443", "other.test:443"),
        ("OTHER.test.:443", "other.test:443"),
        ("[::1]:443", "[::1]:443"),
        ("10.1.2.3:80", "10.1.2.3:80"),
    ],
)
def test_what_is_not_listed_is_refused_reported_and_told_with_the_line_to_add(target: str, asked: str) -> None:
    with ServedProxy(["pkg.test"]) as served:
        status, client = served.connect(target)
        with client:
            body = all_of(client).decode()
        assert (status, served.reports) == (403, [(asked, NOT_ALLOWED)])
        assert f'allow.network = ["{asked}"]' in body
        assert f"{asked} is not on the allow list" in body
        assert served.asked == []


def test_the_deny_list_wins_and_no_line_is_suggested() -> None:
    with ServedProxy(["*.acme.test"], ["ads.acme.test"]) as served:
        status, client = served.connect("ads.acme.test:443")
        with client:
            assert (status, served.reports) == (403, [("ads.acme.test:443", DENIED)])
            assert b"allow.network" not in all_of(client)


def test_a_name_is_resolved_once_and_what_passed_is_dialled() -> None:
    with (
        Server(echo) as server,
        ServedProxy(["db.test", f"127.0.0.1:{server.port}"], hosts={"db.test": ["169.254.0.9", "127.0.0.1"]}) as served,
    ):
        status, client = served.connect(f"db.test:{server.port}")
        client.close()
        assert (status, served.asked, served.reports) == (200, ["db.test"], [])


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "a loopback address"),
        ("::1", "a loopback address"),
        ("0.0.0.0", "an unspecified address"),  # noqa: S104  data
        ("169.254.169.254", "a cloud's metadata address"),
        ("169.254.1.1", "a link-local address"),
        ("fe80::1%eth0", "a link-local address"),
        ("fd00:ec2::254", "a cloud's metadata address"),
        ("fd00:ec2::23", "a cloud's metadata address"),
        ("fd20:ce::254", "a cloud's metadata address"),
        ("168.63.129.16", "a cloud's metadata address"),
        ("fec0:0:0:ffff::1", "a site-local address"),
        ("224.0.0.1", "a multicast address"),
        ("64:ff9b::7f00:1", "a loopback address inside another"),
        ("2002:7f00:1::", "a loopback address inside another"),
    ],
)
def test_a_listed_name_leads_to_no_address_of_this_machine(address: str, kind: str) -> None:
    with ServedProxy(["evil.test"], hosts={"evil.test": [address]}) as served:
        status, client = served.connect("evil.test:80")
        client.close()
        assert status == 403
        assert [asked for asked, _ in served.reports] == ["evil.test:80"]
        assert served.reports[0][1].endswith(kind)


def test_without_the_guard_a_listed_name_would_lead_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above is refused by the guard, and by nothing else."""
    monkeypatch.setattr(address_guard, "kind", lambda _address, _own: "")
    with Server(page) as server, ServedProxy(["evil.test"], hosts={"evil.test": ["127.0.0.1"]}) as served:
        with served.proxied() as client:
            client.sendall(f"GET http://evil.test:{server.port}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert b" 200 " in head_of(client)
        assert served.reports == []


@pytest.mark.parametrize("address", ["169.254.169.254", "[fd20:ce::254]", "[fd00:ec2::23]", "[::ffff:168.63.129.16]"])
def test_a_literal_metadata_address_is_refused_behind_names_of_any_kind(address: str) -> None:
    with ServedProxy(["*.a.test", "10.0.0.1"]) as served, served.proxied() as client:
        status, tunnel = served.connect(f"{address}:80")
        tunnel.close()
        client.sendall(f"GET http://{address}/ HTTP/1.1\r\nHost: a.test\r\n\r\n".encode())
        assert (status, head_of(client).split(b" ", 2)[1]) == (403, b"403")
        assert [reason for _, reason in served.reports] == [NOT_ALLOWED]


def test_a_literal_address_of_this_machine_is_refused_unless_it_and_its_port_are_listed() -> None:
    with Server(echo) as server, ServedProxy([f"127.0.0.1:{server.port}", "127.0.0.2:1"]) as served:
        for target, expected in ((f"127.0.0.1:{server.port}", 200), ("127.0.0.2:2", 403)):
            status, client = served.connect(target)
            client.close()
            assert status == expected


def test_a_mapped_address_is_the_one_inside() -> None:
    with Server(echo) as server, ServedProxy([f"127.0.0.1:{server.port}"]) as served:
        status, client = served.connect(f"[::ffff:127.0.0.1]:{server.port}")
        client.close()
        assert status == 200


def test_bare_localhost_is_the_hosts_loopback_on_either_family() -> None:
    with Server(echo, "::1") as server, ServedProxy(["localhost"]) as served:
        status, client = served.connect(f"localhost:{server.port}")
        client.close()
        assert status == 200


def test_a_server_that_is_not_there_is_told_apart_from_a_refusal() -> None:
    with ServedProxy(["gone.test", "127.0.0.1:1"]) as served:
        for target in ("gone.test:80", "127.0.0.1:1"):
            status, client = served.connect(target)
            client.close()
            assert status == 502
        assert served.reports == []


def test_every_request_of_a_kept_connection_is_judged() -> None:
    with Server(page) as server, ServedProxy([f"127.0.0.1:{server.port}"]) as served, served.proxied() as client:
        target = f"127.0.0.1:{server.port}"
        for path in ("a", "b"):
            client.sendall(f"GET http://{target}/{path} HTTP/1.1\r\nHost: other.test\r\n\r\n".encode())
            head = head_of(client)
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            body = exactly(client, length).decode()
            assert body.startswith(f"GET /{path} HTTP/1.1\r\nHost: {target}\r\n")
            assert "other.test" not in body
        client.sendall(b"GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n")
        assert b" 403 " in head_of(client)
        assert served.reports == [("other.test:80", NOT_ALLOWED)]


def test_pipelined_requests_are_judged_one_by_one() -> None:
    with Server(page) as server, ServedProxy([f"127.0.0.1:{server.port}"]) as served, served.proxied() as client:
        target = f"127.0.0.1:{server.port}"
        client.sendall(
            b"GET http://%b/ HTTP/1.1\r\nHost: x\r\n\r\n" % target.encode()
            + b"GET http://evil.test/ HTTP/1.1\r\nHost: x\r\n\r\n"
        )
        told = all_of(client)
        assert told.count(b"HTTP/1.1 200") == told.count(b"HTTP/1.1 403") == 1
        assert server.clients == 1


def test_a_body_is_passed_on_whole_and_in_chunks() -> None:
    body = bytes(range(256)) * 4000
    with Server(page) as server, ServedProxy([f"127.0.0.1:{server.port}"]) as served, served.proxied() as client:
        head = f"POST http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        threading.Thread(target=client.sendall, args=(head.encode() + body,)).start()
        told = head_of(client)
        length = int(told.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        assert exactly(client, length).endswith(body)


@pytest.mark.parametrize(
    "request_head",
    [
        "GET / HTTP/1.1\r\nHost: pkg.test\r\n\r\n",
        "GET https://pkg.test/ HTTP/1.1\r\nHost: pkg.test\r\n\r\n",
        "GET http://pkg.test/ HTTP/1.1\r\n\r\n",
        "GET http:///x HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://pkg.test:99999/ HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT pkg.test HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT :443 HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST http://pkg.test/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "POST http://pkg.test/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST http://pkg.test/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
        "POST http://pkg.test/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "GET http://pkg.test/ HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n",
        "GET http://pkg.test/ HTTP/2.0\r\nHost: x\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        "GET http://pkg.test/" + "a" * 200000 + " HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_a_head_that_could_be_read_in_two_ways_is_refused_without_a_dial(request_head: str) -> None:
    with ServedProxy(["pkg.test"]) as served, served.proxied() as client:
        client.sendall(request_head.encode("latin-1"))
        assert head_of(client).split(b" ", 2)[1] in (b"400", b"431", b"501", b"505")
        assert served.asked == []


@pytest.mark.parametrize(
    "host",
    ["a\0.pkg.test", "pkg.test\0", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0", "user@pkg.test", "pkg.test/x"],
)
def test_a_host_that_programs_read_in_different_ways_is_refused_by_socks(host: str) -> None:
    with ServedProxy(["pkg.test", "*.pkg.test", "127.0.0.1"]) as served:
        with socket.create_connection(("127.0.0.1", served.socks), SECONDS) as client:
            raw = host.encode()
            client.sendall(b"\5\1\0\5\1\0\3" + bytes((len(raw),)) + raw + b"\1\xbb")
            assert all_of(client)[:4] == b"\5\0\5\2"
        assert len(served.reports) == 1
        assert served.asked == []
        assert served.reports[0][0].isprintable()


def test_socks_is_spoken_byte_by_byte_with_and_without_a_password() -> None:
    with (
        Server(echo) as server,
        ServedProxy(["db.test", f"127.0.0.1:{server.port}"], hosts={"db.test": ["127.0.0.1"]}) as served,
    ):
        port = server.port.to_bytes(2, "big")
        for hello, answer in ((b"\5\2\0\2", b"\5\0"), (b"\5\1\2\1\3bob\2pw", b"\5\2\1\0")):
            for target in (b"\3\7db.test", b"\1\x7f\0\0\1"):
                with socket.create_connection(("127.0.0.1", served.socks), SECONDS) as client:
                    for byte in hello + b"\5\1\0" + target + port + b"early":
                        client.sendall(bytes((byte,)))
                    client.shutdown(socket.SHUT_WR)
                    assert all_of(client) == answer + b"\5\0\0\1" + bytes(6) + b"early"


def test_a_socks_client_that_speaks_something_else_is_told_so() -> None:
    with ServedProxy() as served:
        for sent, told in (
            (b"\4\1\0\x50\1\2\3\4\0", b""),
            (b"\5\1\1", b"\5\xff"),
            (b"\5\1\0\5\2\0\1\1\2\3\4\0\x50", b"\5\0\5\7"),
            (b"\5\1\0\5\1\0\7\1\2\3\4\0\x50", b"\5\0\5\x08"),
            (b"GET / HTTP/1.1\r\n\r\n", b""),
        ):
            with socket.create_connection(("127.0.0.1", served.socks), SECONDS) as client:
                client.sendall(sent)
                assert all_of(client).removesuffix(b"<reset>")[:4] == told


def test_an_allowed_name_gets_an_address_whose_listeners_lead_to_it() -> None:
    with (
        Server(echo) as server,
        ServedProxy([f"db.test:{server.port}", f"127.0.0.1:{server.port}"], hosts={"db.test": ["127.0.0.1"]}) as served,
    ):
        answer = served.ask(query("DB.test"))
        assert answer[:4] == b"\x12\x34\x85\x80"
        assert answer[-4:] == bytes((127, 64, 0, 1))
        assert served.ask(query("db.test"))[-4:] == bytes((127, 64, 0, 1))
        assert {port for _, port in served.stand_ins} == {22, 80, 443, server.port}
        with socket.create_connection(("127.0.0.1", served.stand_ins["127.64.0.1", server.port]), SECONDS) as client:
            client.sendall(b"raw")
            client.shutdown(socket.SHUT_WR)
            assert all_of(client) == b"raw"
        with (
            contextlib.suppress(ConnectionResetError),
            socket.create_connection(("127.0.0.1", served.stand_ins["127.64.0.1", 443]), SECONDS) as client,
        ):
            assert all_of(client) in (b"", b"<reset>")
        assert served.reports == [("db.test:443", NOT_ALLOWED)]


def test_a_stand_in_asked_for_through_a_proxy_is_its_name() -> None:
    with (
        Server(echo) as server,
        ServedProxy(["db.test", f"127.0.0.1:{server.port}"], hosts={"db.test": ["127.0.0.1"]}) as served,
    ):
        served.ask(query("db.test"))
        status, client = served.connect(f"127.64.0.1:{server.port}")
        client.close()
        assert (status, served.asked) == (200, ["db.test"])


def test_no_lookup_is_forwarded_and_a_refused_one_names_its_host() -> None:
    with ServedProxy(["*.acme.test"], ["ads.acme.test"]) as served:
        assert served.ask(query("secret-data.evil.test"))[3] & 15 == dns_messages.NXDOMAIN
        assert served.ask(query("ads.acme.test"))[3] & 15 == dns_messages.NXDOMAIN
        assert served.ask(query("any.acme.test", 16))[3] & 15 == dns_messages.NOERROR
        assert served.ask(query("localhost"))[-4:] == bytes((127, 0, 0, 1))
        assert served.ask(query("4.3.2.1.in-addr.arpa", dns_messages.PTR))[3] & 15 == dns_messages.NXDOMAIN
        assert served.ask(query("1.0.64.127.in-addr.arpa", dns_messages.PTR)).endswith(name_data("any.acme.test"))
        assert served.asked == []
        assert served.reports == [("secret-data.evil.test", NOT_ALLOWED), ("ads.acme.test", DENIED)]


def test_lookups_over_a_stream_are_answered_however_they_are_cut() -> None:
    with ServedProxy(["a.test"]) as served:
        message = query("a.test")
        framed = len(message).to_bytes(2, "big") + message
        with socket.create_connection(("127.0.0.1", served.streamed_lookups), SECONDS) as client:
            for byte in framed + framed:
                client.sendall(bytes((byte,)))
            client.shutdown(socket.SHUT_WR)
            told = all_of(client)
        assert told.count(bytes((127, 64, 0, 1))) == 2


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Four for each of a thousand connections, all of them in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 5000:
        pytest.skip(f"this machine allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 5000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_descriptors")
@pytest.mark.slow
def test_a_thousand_connections_are_open_at_once_and_each_is_served() -> None:
    with Server(echo) as server, ServedProxy([f"127.0.0.1:{server.port}"]) as served:
        target = f"127.0.0.1:{server.port}"
        clients = []
        for _ in range(1000):
            client = served.proxied()
            client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            clients.append(client)
        for client in clients:
            assert b" 200 " in head_of(client)
        for number, client in enumerate(clients):
            client.sendall(b"%d" % number)
        for number, client in enumerate(clients):
            client.shutdown(socket.SHUT_WR)
            assert all_of(client) == b"%d" % number
            client.close()


def test_a_reader_that_stops_holds_up_the_writer_and_nobody_else() -> None:
    def flood(client: socket.socket) -> None:
        sent = 0
        client.settimeout(0.5)
        try:
            while sent < 1 << 28:
                sent += client.send(bytes(1 << 20))
        except TimeoutError:
            stuck.set()

    stuck = threading.Event()
    with (
        Server(flood) as server,
        Server(echo) as other,
        ServedProxy([f"127.0.0.1:{server.port}", f"127.0.0.1:{other.port}"]) as served,
    ):
        _, slow = served.connect(f"127.0.0.1:{server.port}")
        assert stuck.wait(SECONDS)
        status, client = served.connect(f"127.0.0.1:{other.port}")
        client.sendall(b"x")
        assert (status, client.recv(1)) == (200, b"x")
        client.close()
        slow.close()


def test_a_server_that_breaks_off_is_told_from_one_that_ends() -> None:
    def broken(client: socket.socket) -> None:
        head_of(client)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    def silent(client: socket.socket) -> None:
        head_of(client)

    with (
        Server(broken) as server,
        Server(silent) as nothing,
        ServedProxy([f"127.0.0.1:{server.port}", f"127.0.0.1:{nothing.port}"]) as served,
    ):
        with served.proxied() as client:
            client.sendall(f"GET http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert all_of(client).endswith(b"<reset>")
        with served.proxied() as client:
            client.sendall(f"GET http://127.0.0.1:{nothing.port}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert b" 502 " in head_of(client)


@pytest.mark.parametrize("address", ["::ffff:192.0.2.5", "64:ff9b::192.0.2.5", "2002:c000:205::1", "::192.0.2.5"])
def test_a_denied_address_is_denied_inside_another(address: str) -> None:
    with ServedProxy(["a.test"], ["192.0.2.5"], hosts={"a.test": [address]}) as served:
        status, client = served.connect("a.test:443")
        client.close()
        assert (status, served.reports) == (403, [("a.test:443", DENIED)])
