"""The name in a TLS greeting: whatever OpenSSL would take for it is what is read here, or nothing is let through."""

from __future__ import annotations

import contextlib
import ssl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.proxy.protocol import tls_hello
from tests.support.greetings import greeting, recut

# Python's binding says so of a name that is not ASCII, of which no handler is told
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
NAME = st.lists(LABEL, min_size=2, max_size=4).map(".".join).filter(lambda name: not name.replace(".", "").isdigit())


def as_openssl_reads_it(data: bytes) -> str | None:
    """The name its server side goes by, `None` where it goes by none or takes the message for nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    told: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: told.append(name)
    heard = ssl.MemoryBIO()
    heard.write(data)
    with contextlib.suppress(ssl.SSLError):
        context.wrap_bio(heard, ssl.MemoryBIO(), server_side=True).do_handshake()
    return told[0] if told else None


def held(data: bytes) -> None:
    """Never another name than OpenSSL reads, and never none where it reads one."""
    read = as_openssl_reads_it(data)
    try:
        found = tls_hello.server_name(data)
    except tls_hello.MalformedHello:
        return
    if read is not None:
        assert found == read


@given(NAME, st.lists(st.integers(0, 2000), max_size=6))
def test_a_name_is_read_however_the_message_is_cut(name: str, cuts: list[int]) -> None:
    data = recut(greeting(name), cuts)
    assert tls_hello.server_name(data) == tls_hello.server_name(data + b"\x14\x03\x03\0\1\1") == name
    held(data)


@settings(max_examples=30)
@given(NAME)
def test_of_half_a_message_nothing_is_said(name: str) -> None:
    data = greeting(name)
    assert {tls_hello.server_name(data[:end]) for end in range(len(data))} == {None}


def test_a_message_without_a_name_tells_none() -> None:
    assert tls_hello.server_name(greeting(None)) == ""


@given(NAME, st.integers(0, 2000), st.integers(0, 255))
def test_a_byte_that_differs_makes_no_name_of_another(name: str, at: int, byte: int) -> None:
    data = greeting(name)
    held(data[: at % len(data)] + bytes((byte,)) + data[at % len(data) + 1 :])


@given(NAME, NAME, st.integers(0, 600), st.integers(0, 40), st.integers(0, 600))
def test_pieces_of_one_in_another_make_no_name_of_another(name: str, other: str, at: int, drop: int, take: int) -> None:
    one, two = greeting(name), greeting(other)
    held(one[:at] + two[take : take + 64] + one[at + drop :])


@given(st.one_of(st.binary(max_size=80), st.binary(max_size=80).map(lambda rest: b"\x16\x03\x01" + rest)))
def test_any_bytes_are_read_or_not(data: bytes) -> None:
    held(data)


def _with_names(*names: bytes, kind: int = 0) -> bytes:
    """A greeting whose extension holds some names."""
    entries = b"".join(bytes((kind,)) + len(name).to_bytes(2, "big") + name for name in names)
    listed = len(entries).to_bytes(2, "big") + entries
    extensions = b"\0\0" + len(listed).to_bytes(2, "big") + listed
    body = b"\3\3" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0" + len(extensions).to_bytes(2, "big") + extensions
    message = b"\1" + len(body).to_bytes(3, "big") + body
    return b"\x16\3\1" + len(message).to_bytes(2, "big") + message


@given(st.lists(st.binary(max_size=12), max_size=3), st.integers(0, 2))
def test_lists_of_names_are_read_as_one_name_or_as_none_for_certain(names: list[bytes], kind: int) -> None:
    held(_with_names(*names, kind=kind))


def test_a_message_of_more_names_than_one_is_not_guessed_at() -> None:
    assert tls_hello.server_name(_with_names(b"a.test")) == "a.test"
    for odd in (_with_names(b"a.test", b"b.test"), _with_names(b"a.test", kind=1), _with_names(b"\xff")):
        try:
            found = tls_hello.server_name(odd)
        except tls_hello.MalformedHello:
            continue
        raise AssertionError(found)


def test_a_message_without_end_is_given_up() -> None:
    head = b"\x16\3\1\x40\0\1\xff\xff\xff" + bytes(16380)
    try:
        found = tls_hello.server_name(head)
    except tls_hello.MalformedHello:
        return
    raise AssertionError(found)
