"""A name that is asked for over TLS behind another one is judged as that one is, before its server hears of it."""

from __future__ import annotations

import contextlib
import socket
import ssl

import pytest

from sandbox.proxy.policy.policy import DENIED, NOT_ALLOWED, UNTOLD
from sandbox.proxy.protocol import tls_hello
from tests.support.greetings import greeting, recut, with_early_data
from tests.support.served_proxy import SECONDS, ServedProxy, Server, all_of, echo, exactly

# what OpenSSL, GnuTLS, Go, nginx or an old server passes over before a greeting, and its siblings
SKIPPED = {
    "a warning": b"\x15\3\1\0\2\1\x5a",
    "another warning": b"\x15\2\0\0\2\1\x70",
    "an alert in parts": b"\x15\3\1\0\1\1\x15\3\1\0\1\x5a",
    "an alert of nothing": b"\x15\3\1\0\0",
    "a handshake of nothing": b"\x16\3\1\0\0",
    "many of nothing": b"\x16\3\1\0\0" * 30,
    "a change of ciphers": b"\x14\3\3\0\1\1",
    "a change of nothing": b"\x14\3\3\0\0",
    "data of nothing": b"\x17\3\3\0\0",
    "a heartbeat": b"\x18\3\2\0\3\1\0\0",
    "an unknown kind": b"\x50\3\1\0\1a",
    "a kind of zero": b"\0\3\3\0\0",
    "a request to greet": b"\x16\3\1\0\4\0\0\0\0",
    "a greeting of SSL 2": b"\x80\x12\1\3\3\0\3\0\0\0\6\0\0\x3c" + bytes(6),
    "a padded one": b"\0\x13\1\1\3\1\0\3\0\0\0\6\0\0\x3c" + bytes(7),
    "a line end": b"\r\n",
    "blanks": b" \t\n\n",
    "a PROXY line": b"PROXY TCP4 192.0.2.1 192.0.2.2 5 443\r\n",
    "a PROXY line of nobody": b"PROXY UNKNOWN\r\n",
    "a binary PROXY header": b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0",
}
RETRY = b"\x16\3\3\0\x2a\2\0\0\x26\3\3" + bytes.fromhex(
    "CF21AD74E59A6111BE1D8C021E65B891C2A211167ABB8C5E079E09E2C8A8339C0013010000"
)
RETRY = RETRY[:3] + (len(RETRY) - 5).to_bytes(2, "big") + RETRY[5:]
HOSTS = {"web.test": ["127.0.0.1"], "also.test": ["127.0.0.1"]}


def _hears(client: socket.socket, heard: list[bytes]) -> None:
    while data := client.recv(1 << 16):
        heard.append(data)
        client.sendall(data)


def _hears_once(client: socket.socket, heard: list[bytes]) -> None:
    """One whole greeting."""
    while tls_hello.GreetingReader().read(b"".join(heard)) is None:
        heard.append(client.recv(1 << 16))


def _asks_again(client: socket.socket, heard: list[bytes]) -> None:
    """A server that wants another key, and then sends back what comes."""
    said: list[bytes] = []
    _hears_once(client, said)
    heard += said
    client.sendall(RETRY)
    _hears(client, heard)


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


@pytest.mark.parametrize("before", sorted(SKIPPED))
def test_a_greeting_behind_what_some_server_passes_over_is_refused(before: str) -> None:
    heard: list[bytes] = []
    serves = Server(lambda client: _hears(client, heard))
    with serves as server, ServedProxy(_listed(server.port), hosts=HOSTS) as served:
        said = SKIPPED[before] + greeting("hidden.test")
        for pieces in ([said], [SKIPPED[before], greeting("hidden.test")]):
            _, client = served.connect(f"web.test:{server.port}")
            with client:
                with contextlib.suppress(OSError):  # it is refused before the last byte was sent
                    for piece in pieces:
                        client.sendall(piece)
                all_of(client)
        (report,) = served.reports
    assert (report[0], report[1].startswith(UNTOLD)) == (f"web.test:{server.port}", True)
    # a blank alone may be the whole of what a client says, and is not waited with
    assert b"".join(heard).strip() == b""


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
    serves = Server(lambda client: _asks_again(client, heard))
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


def test_what_comes_after_the_servers_answer_is_passed_on_as_it_is() -> None:
    """No server asks for another greeting once it has answered; the end of a handshake may look like one."""
    encrypted = b"\x16\3\3\0\x28\1\0\1" + bytes(37)
    follows = (
        CHANGED + b"\x17\3\3\0\5hello",
        b"\x16\3\3\0\5\x10\0\0\1a" + CHANGED + encrypted,
        CHANGED + encrypted + b"\x17\3\3\0\5hello",
        CHANGED + b"\x16\3\3\0\x28\1\xff" + bytes(38),
        b"\x15\3\3\0\2\2\x2e",
        b"GET / HTTP/1.0\r\n\r\n",
        greeting("hidden.test"),
    )
    with Server(echo) as server, ServedProxy(_listed(server.port), hosts=HOSTS) as served:
        for follow in follows:
            _, client = served.connect(f"web.test:{server.port}")
            with client:
                data = greeting("web.test")
                client.sendall(data)
                assert exactly(client, len(data)) == data
                client.sendall(follow)
                assert exactly(client, len(follow)) == follow
        assert served.reports == []


@pytest.mark.parametrize("follow", [b"\x18\3\3\0\1a", b"\x16\3\3\0\0", b"\x17\3\3\0\0", b"\x50\3\3\0\0", b"GET"])
def test_what_is_not_read_between_two_greetings_is_refused(follow: bytes) -> None:
    heard: list[bytes] = []

    with (
        Server(lambda client: _asks_again(client, heard)) as server,
        ServedProxy(_listed(server.port), hosts=HOSTS) as served,
    ):
        _, client = served.connect(f"web.test:{server.port}")
        with client:
            client.sendall(greeting("web.test"))
            assert exactly(client, len(RETRY)) == RETRY
            client.sendall(CHANGED + follow + greeting("hidden.test"))
            assert all_of(client) == b"<reset>"
        ((asked, why),) = served.reports
        assert (asked, why.startswith(UNTOLD)) == (f"web.test:{server.port}", True)
    assert b"hidden" not in b"".join(heard)


def test_a_client_that_is_asked_to_greet_again_is_passed_on() -> None:
    heard: list[bytes] = []

    def asks_again(client: socket.socket) -> None:
        _hears_once(client, heard)
        client.sendall(b"\x15\3\3\0\2\1\x70" + RETRY)
        echo(client)

    with Server(asks_again) as server, ServedProxy(_listed(server.port), hosts=HOSTS) as served:
        _, client = served.connect(f"web.test:{server.port}")
        with client:
            client.sendall(greeting("web.test"))
            assert exactly(client, 7 + len(RETRY)).endswith(RETRY)
            again = CHANGED + greeting("web.test") + b"\x17\3\3\0\5hello"
            client.sendall(again)
            assert exactly(client, len(again)) == again
        assert served.reports == []


def test_half_a_greeting_is_kept_from_its_server() -> None:
    heard: list[bytes] = []
    serves = Server(lambda client: _hears(client, heard))
    with serves as server, ServedProxy(_listed(server.port), hosts=HOSTS) as served:
        _, client = served.connect(f"web.test:{server.port}")
        with client:
            client.sendall(greeting("web.test")[:-1])
            client.shutdown(socket.SHUT_WR)
            assert all_of(client) == b"<reset>"
        assert served.reports == []
    assert heard == []


def test_a_second_greeting_behind_what_was_said_too_early_is_judged() -> None:
    early = with_early_data(greeting("web.test"))
    with (
        Server(lambda client: _asks_again(client, [])) as server,
        ServedProxy(_listed(server.port), hosts=HOSTS) as served,
    ):
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
