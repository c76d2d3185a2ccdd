"""Whatever a task sends its proxy: nothing crashes it, nothing hangs it, nothing unlisted is dialled."""

from __future__ import annotations

import contextlib
import itertools
import socket
from typing import TYPE_CHECKING

import dns.exception
import dns.message
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.base import host_patterns
from sandbox.proxy.policy import address_guard
from sandbox.proxy.policy.host_rules import HostRules
from sandbox.proxy.policy.policy import Policy
from sandbox.proxy.protocol import dns_messages, socks5
from tests.support.served_proxy import SECONDS, ServedProxy, all_of

if TYPE_CHECKING:
    from collections.abc import Iterator

LABEL = st.from_regex(r"[a-z0-9_]([a-z0-9_-]{0,8}[a-z0-9_])?", fullmatch=True).filter(lambda text: not text.isdecimal())
NAME = st.lists(LABEL, min_size=2, max_size=5).map(".".join).filter(lambda name: name.rpartition(".")[2][:2] != "0x")
PORT = st.integers(1, 65535)
ODD = st.text(
    st.one_of(st.sampled_from(".:[]@/%*\0\r\n 0123456789abcxXtest-_\uff11\uff0e\u3002"), st.characters(codec="utf-8")),
    max_size=40,
)


def read_as_an_address(host: str) -> bool:
    """Whether the C library takes it for an address, as `2130706433` and `0x7f.1` are."""
    try:
        socket.inet_aton(host)
    except OSError:
        return False
    return True


@given(NAME)
def test_a_canonical_name_is_its_own_form_and_so_is_every_spelling_of_it(name: str) -> None:
    assert host_patterns.canonical_host(name) == name
    assert host_patterns.canonical_host(name.upper() + ".") == name


@given(ODD)
def test_the_form_of_a_host_is_a_form_and_ascii_or_there_is_none(text: str) -> None:
    try:
        host = host_patterns.canonical_host(text)
    except host_patterns.PatternRefused:
        return
    assert host_patterns.canonical_host(host) == host
    assert host.isascii()
    assert host.isprintable()
    # what the resolver is asked can be no other spelling of an address
    if not host_patterns.is_address(host):
        assert not host.replace(".", "").isdecimal()
        assert not read_as_an_address(host)


@given(NAME, NAME, PORT, PORT)
def test_one_pattern_allows_its_host_and_strict_subdomains_of_a_star(
    name: str, other: str, port: int, off: int
) -> None:
    rules = HostRules(Policy(allow=(f"{name}:{port}", f"*.{other}")))
    assert not rules.refusal(name, port)
    assert not rules.refusal(f"a.{other}", off)
    for host, at in ((f"x{name}", port), (f"a.{name}", port), (other, off), (f"x{other}", off)):
        allowed = not rules.refusal(host, at)
        assert allowed == (host.endswith(f".{other}") or (host, at) == (name, port))
    denied = HostRules(Policy(allow=(name, f"*.{other}"), deny=("*",)))
    assert denied.refusal(name, port)
    assert denied.lookup_refusal(f"a.{other}")


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_refused_as_itself(address: object) -> None:
    own = frozenset({"192.0.2.7"})
    alone = address_guard.kind(str(address), own)
    for spelled in (f"::ffff:{address}", f"64:ff9b::{address}", f"::{address}"):
        inside = address_guard.kind(spelled, own)
        assert bool(inside) >= bool(alone)


@given(st.binary(max_size=80))
def test_any_message_is_answered_or_not_and_never_breaks_the_reader(message: bytes) -> None:
    try:
        query = dns_messages.parse(message)
    except dns_messages.MalformedQuery:
        return
    for code in (dns_messages.NOERROR, dns_messages.NXDOMAIN):
        answer = dns_messages.reply(query, code)
        with contextlib.suppress(dns.exception.DNSException):
            assert dns.message.from_wire(answer).id == query.id


@given(NAME, st.integers(0, 65535), st.sampled_from(["A", "AAAA", "TXT", "MX", "SRV", "ANY"]))
def test_questions_are_read_as_another_implementation_writes_them(name: str, number: int, kind: str) -> None:
    sent = dns.message.make_query(name, kind, id=number)
    query = dns_messages.parse(sent.to_wire())
    assert (query.id, query.name, query.code) == (number, name, dns_messages.NOERROR)
    assert sent.is_response(dns.message.from_wire(dns_messages.reply(query, dns_messages.NOERROR)))


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=4))
def test_a_handshake_means_the_same_however_it_is_cut(data: bytes, cuts: list[int]) -> None:
    def read(pieces: list[bytes]) -> tuple[bytes, object, bytes]:
        handshake, told = socks5.Handshake(), b""
        for index, piece in enumerate(pieces):
            try:
                reply, target, early = handshake.feed(piece)
            except socks5.MalformedSocks as error:
                return told + error.reply, "malformed", b""
            told += reply
            if target is not None:
                return told, target, early + b"".join(pieces[index + 1 :])
        return told, None, b""

    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in itertools.pairwise(bounds)]
    assert read([data]) == read(pieces) == read([bytes((byte,)) for byte in data])


HELLO = st.sampled_from([b"", b"\5\1\0", b"\5\1\0\5\1\0\3", b"\5\1\0\5\1\0\1\x7f\0\0\1"])


@pytest.fixture(scope="module")
def served() -> Iterator[ServedProxy]:
    with ServedProxy(["listed.test"], hosts={}) as proxy:
        yield proxy


def _send(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), SECONDS) as client:
        # it may have been told off, and hung up on, before all was sent
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        return all_of(client)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.tuples(HELLO, st.binary(max_size=200)).map(b"".join))
def test_garbage_at_the_socks_port_dials_nothing(served: ServedProxy, data: bytes) -> None:
    _send(served.socks, data)
    assert served.failures == []
    assert set(served.asked) <= {"listed.test"}


HEAD = st.builds(
    lambda method, target, version, lines: b" ".join((method, target, version)) + b"\r\n" + b"\r\n".join(lines),
    st.sampled_from([b"GET", b"CONNECT", b"POST", b"TRACE", b"get", b""]),
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from([b"http://listed.test/", b"listed.test:443", b"http://other.test/", b"http://a@listed.test/"]),
    ),
    st.sampled_from([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/9.9", b""]),
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from(
                b"Host: x|Host: listed.test|Content-Length: 5|Content-Length: -1|Content-Length: 5, 5"
                b"|Transfer-Encoding: chunked|Transfer-Encoding: \x0bchunked| folded|Upgrade: websocket"
                b"|Expect: 100-continue|Connection: close, host||0|5|hello".split(b"|")
            ),
        ),
        max_size=6,
    ),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.one_of(st.binary(max_size=200), st.tuples(HEAD, st.binary(max_size=60)).map(b"\r\n\r\n".join)))
def test_garbage_at_the_http_port_dials_nothing_that_is_not_listed(served: ServedProxy, data: bytes) -> None:
    told = _send(served.http, data).removesuffix(b"<reset>")
    assert served.failures == []
    assert set(served.asked) <= {"listed.test"}
    assert told == b"" or told.startswith(b"HTTP/1.1 ")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(min_size=1, max_size=200))
def test_garbage_asked_for_leaves_the_next_lookup_answered(served: ServedProxy, data: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(data, ("127.0.0.1", served.lookups))
    _send(served.streamed_lookups, data)
    question = dns.message.make_query("listed.test", "A")
    assert question.is_response(dns.message.from_wire(served.ask(question.to_wire())))
    assert served.failures == []
