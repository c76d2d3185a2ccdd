"""A name that is asked for over TLS behind another one is judged as that one is, before its server hears of it."""

from __future__ import annotations

import contextlib
import socket
import ssl

import pytest

from sandbox.proxy.policy.policy import DENIED, NOT_ALLOWED
from tests.support.greetings import greeting, recut, with_early_data
from tests.support.served_proxy import SECONDS, ServedProxy, Server, all_of, echo, exactly

HOSTS = {"web.test": ["127.0.0.1"], "also.test": ["127.0.0.1"]}


def _hears(client: socket.socket, heard: list[bytes]) -> None:
    while data := client.recv(1 << 16):
        heard.append(data)
        client.sendall(data)


def _listed(port: int) -> list[str]:
    return [f"web.test:{port}", f"also.test:{port}", f"127.0.0.1:{port}"]


def _by_socks(served: ServedProxy, host: str, port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", served.socks), SECONDS)
    client.sendall(b"\5\1\0\5\1\0\3" + bytes((len(host),)) + host.encode() + port.to_bytes(2, "big"))
    assert exactly(client, 12)[3] == 0
    return client


@pytest.mark.parametrize("name", ["web.test", "also.test", None])
def test_the_dialled_name_another_listed_one_and_none_at_all_are_passed_on(name: str | None) -> None:
    with Server(echo) as server, ServedProxy(_listed(server.port), hosts=HOSTS) as served:
        data = greeting(name)
        for client in (served.connect(f"web.test:{server.port}")[1], _by_socks(served, "web.test", server.port)):
            with client:
                # a byte at a time, as some clients cut theirs to be hard to read
                for at in range(len(data)):
                    client.sendall(data[at : at + 1])
                assert exactly(client, len(data)) == data
                client.sendall(b"the rest")
                assert exactly(client, 8) == b"the rest"
        assert served.reports == []


@pytest.mark.parametrize("cuts", [[], [1], [3, 90, 200]])
def test_a_name_that_is_not_listed_is_refused_and_its_server_hears_nothing(cuts: list[int]) -> None:
    heard: list[bytes] = []
    serves = Server(lambda client: _hears(client, heard))
    with serves as server, ServedProxy(_listed(server.port), hosts=HOSTS) as served:
        for client in (served.connect(f"web.test:{server.port}")[1], _by_socks(served, "web.test", server.port)):
            with client:
                client.sendall(recut(greeting("hidden.test"), cuts))
                assert all_of(client) == b"<reset>"
        assert served.reports == [(f"hidden.test:{server.port}", f"{NOT_ALLOWED}: asked of web.test over TLS")]
    assert heard == []


@pytest.mark.parametrize("before", [b"\x15\3\1\0\2\1\x5a", b"\x16\3\1\0\0", b"\x15\2\0\0\2\1\x70"])
def test_a_greeting_behind_what_some_servers_pass_over_is_refused(before: bytes) -> None:
    heard: list[bytes] = []
    serves = Server(lambda client: _hears(client, heard))
    with serves as server, ServedProxy(_listed(server.port), hosts=HOSTS) as served:
        _, client = served.connect(f"web.test:{server.port}")
        with client:
            client.sendall(before + greeting("hidden.test"))
            assert all_of(client) == b"<reset>"
        why = "what its server is called over TLS cannot be told"
        assert served.reports == [(f"web.test:{server.port}", why)]
    assert heard == []


@pytest.mark.parametrize("version", [b"\2\0", b"\x0f\xff"])
def test_a_greeting_of_a_version_that_some_servers_do_not_look_at_is_judged(version: bytes) -> None:
    heard: list[bytes] = []
    serves = Server(lambda client: _hears(client, heard))
    with serves as server, ServedProxy(_listed(server.port), hosts=HOSTS) as served:
        data = greeting("hidden.test")
        for said in (data[:1] + version + data[3:], recut(data[:1] + version + data[3:], [1, 9])):
            _, client = served.connect(f"web.test:{server.port}")
            with client:
                client.sendall(said)
                assert all_of(client) == b"<reset>"
        assert served.reports == [(f"hidden.test:{server.port}", f"{NOT_ALLOWED}: asked of web.test over TLS")]
    assert heard == []


CHANGED = b"\x14\3\3\0\1\1"


@pytest.mark.parametrize("between", [b"", CHANGED, b"\x15\3\3\0\2\1\x5a" + CHANGED])
@pytest.mark.parametrize("first", ["web.test", None])
@pytest.mark.parametrize("cuts", [[], [40, 200]])
def test_another_name_in_a_second_greeting_is_refused(between: bytes, first: str | None, cuts: list[int]) -> None:
    """A server that wants another key has its client greet again, and OpenSSL's then goes by the second name."""
    heard: list[bytes] = []
    serves = Server(lambda client: _hears(client, heard))
    with serves as server, ServedProxy(_listed(server.port), hosts=HOSTS) as served:
        begins, rest = greeting(first), between + recut(greeting("hidden.test"), cuts)
        for pieces in ([begins + rest], [begins, rest], [begins, *(rest[at : at + 1] for at in range(len(rest)))]):
            _, client = served.connect(f"web.test:{server.port}")
            with client:
                with contextlib.suppress(OSError):  # it is refused before the last byte was sent
                    for piece in pieces:
                        client.sendall(piece)
                with contextlib.suppress(OSError):
                    assert all_of(client).endswith(b"<reset>")
        assert served.reports == [(f"hidden.test:{server.port}", f"{NOT_ALLOWED}: asked of web.test over TLS")]
    # what came of the three to their server, one after the other or not
    assert len(b"".join(heard)) <= 3 * len(begins + between)


def test_what_comes_after_a_greeting_is_passed_on_as_it_is() -> None:
    encrypted = b"\x16\3\3\0\x28\1\0\1" + bytes(37)
    follows = (
        CHANGED + b"\x17\3\3\0\5hello",
        b"\x16\3\3\0\5\x10\0\0\1a" + CHANGED + encrypted,
        # the end of a handshake that goes on from an earlier one, and looks like a greeting
        CHANGED + encrypted + b"\x17\3\3\0\5hello",
        CHANGED + b"\x16\3\3\0\x28\1\xff" + bytes(38),
        b"\x15\3\3\0\2\2\x2e",
        b"GET / HTTP/1.0\r\n\r\n",
        greeting("also.test") + b"\x17\3\3\0\5hello",
    )
    with Server(echo) as server, ServedProxy(_listed(server.port), hosts=HOSTS) as served:
        for follow in follows:
            _, client = served.connect(f"web.test:{server.port}")
            with client:
                data = greeting("web.test") + follow
                client.sendall(data)
                assert exactly(client, len(data)) == data
        assert served.reports == []


def test_a_second_greeting_behind_what_was_said_too_early_is_judged() -> None:
    early = with_early_data(greeting("web.test"))
    with Server(echo) as server, ServedProxy(_listed(server.port), hosts=HOSTS) as served:
        _, client = served.connect(f"web.test:{server.port}")
        with client:
            client.sendall(early + b"\x17\3\3\0\5hello" + CHANGED + greeting("hidden.test"))
            assert all_of(client).endswith(b"<reset>")
        assert [asked for asked, _ in served.reports] == [f"hidden.test:{server.port}"]


def test_a_name_that_is_denied_and_what_is_no_name_are_refused() -> None:
    with Server(echo) as server:
        allowed = [f"*.web.test:{server.port}", f"127.0.0.1:{server.port}"]
        hosts = {"a.web.test": ["127.0.0.1"]}
        with ServedProxy(allowed, ["ads.web.test"], hosts=hosts) as served:
            for data in (greeting("ads.web.test"), greeting("b.web.test").replace(b"b.web.test", b"b.web\0test")):
                _, client = served.connect(f"a.web.test:{server.port}")
                with client:
                    client.sendall(data)
                    assert all_of(client) == b"<reset>"
            assert served.reports == [
                (f"ads.web.test:{server.port}", f"{DENIED}: asked of a.web.test over TLS"),
                (f"b.web\\x00test:{server.port}", "a host holds no blank, control character, user, path or zone"),
            ]


def test_an_address_that_is_listed_may_be_called_anything() -> None:
    with Server(echo) as server, ServedProxy([f"127.0.0.1:{server.port}"]) as served:
        _, client = served.connect(f"127.0.0.1:{server.port}")
        with client:
            data = greeting("anything.test")
            client.sendall(data)
            assert exactly(client, len(data)) == data
        assert served.reports == []


def test_what_is_no_tls_and_a_server_that_speaks_first_are_waited_for_by_nobody() -> None:
    def first(client: socket.socket) -> None:
        client.sendall(b"220 hello")
        echo(client)

    with Server(first) as server, ServedProxy(_listed(server.port), hosts=HOSTS) as served:
        # the last but one is how MySQL's clients begin
        for data in (
            b"\x16\3",
            b"\x16\4\1\0\5\1",
            b"\x15\3\1",
            b"\x15\3\1\0\2\2\1",
            b"\x16\1\0\1\x85\xa6",
            b"SSH-2.0-x\r\n",
        ):
            _, client = served.connect(f"web.test:{server.port}")
            with client:
                assert exactly(client, 9) == b"220 hello"
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                assert all_of(client) == data
        assert served.reports == []


def test_a_real_handshake_ends_at_the_proxy() -> None:
    context = ssl.create_default_context()
    with Server(echo) as server, ServedProxy(_listed(server.port), hosts=HOSTS) as served:
        _, client = served.connect(f"web.test:{server.port}")
        with client, pytest.raises((ConnectionResetError, ssl.SSLError)):
            context.wrap_socket(client, server_hostname="hidden.test")
        assert [asked for asked, _ in served.reports] == [f"hidden.test:{server.port}"]
