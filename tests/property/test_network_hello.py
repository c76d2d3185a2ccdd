"""The name in a TLS greeting: whatever OpenSSL would take for it is what is read here, or nothing is let through."""

from __future__ import annotations

import contextlib
import ssl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.proxy.protocol.tls_front import TlsFront
from sandbox.proxy.protocol.tls_hello import MalformedHello
from tests.support.greetings import greeting, recut

# Python's binding says so of a name that is not ASCII, of which no handler is told
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
NAME = st.lists(LABEL, min_size=2, max_size=4).map(".".join).filter(lambda name: not name.replace(".", "").isdigit())


def name_in(data: bytes) -> str | None:
    """The name in the greeting that `data` begins with, empty for none; `None` where more bytes are needed.

    Raises:
        MalformedHello: it cannot be told.
    """
    front = TlsFront()
    passed, names = front.client(data)
    return names[0] if names else "" if passed else None


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
        found = name_in(data)
    except MalformedHello:
        return
    if read is not None:
        assert found == read


@given(NAME, st.lists(st.integers(0, 2000), max_size=6))
def test_a_name_is_read_however_the_message_is_cut(name: str, cuts: list[int]) -> None:
    data = recut(greeting(name), cuts)
    assert name_in(data) == name_in(data + b"\x14\x03\x03\0\1\1") == name
    held(data)


@settings(max_examples=30)
@given(NAME)
def test_of_half_a_message_nothing_is_said(name: str) -> None:
    data = greeting(name)
    assert {name_in(data[:end]) for end in range(len(data))} == {None}


def test_a_message_without_a_name_tells_none() -> None:
    assert name_in(greeting(None)) == ""


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
    assert name_in(_with_names(b"a.test")) == "a.test"
    for odd in (_with_names(b"a.test", b"b.test"), _with_names(b"a.test", kind=1), _with_names(b"\xff")):
        try:
            found = name_in(odd)
        except MalformedHello:
            continue
        raise AssertionError(found)


def test_a_message_without_end_is_given_up() -> None:
    head = b"\x16\3\1\x40\0\1\xff\xff\xff" + bytes(16380)
    try:
        found = name_in(head)
    except MalformedHello:
        return
    raise AssertionError(found)


def told(pieces: list[bytes], answer: bytes = b"", before: int = -1) -> tuple[bytes, list[str], str]:
    """What is passed on of some pieces, the names, and how it ends; the server speaks before one of the pieces."""
    front, passed = TlsFront(), b""
    names: list[str] = []
    for number, piece in enumerate(pieces):
        if number == before:
            front.server(answer)
        try:
            more, found = front.client(piece)
        except MalformedHello:
            return passed, names, "refused"
        passed, names = passed + more, names + found
    return passed, names, "over" if front.over else "waits"


GARBAGE = st.one_of(
    st.binary(max_size=12),
    st.tuples(st.integers(0, 255), st.integers(0, 4), st.binary(max_size=9)).map(
        lambda drawn: bytes((drawn[0], 3, drawn[1], 0, len(drawn[2]))) + drawn[2]
    ),
    st.sampled_from((b"\r\n", b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n", b"\r\n\r\n\0\r\nQUIT\n", b"\x80\x09\1\3\3")),
)


@given(NAME, GARBAGE, st.lists(st.integers(0, 2000), max_size=3), GARBAGE)
def test_whole_or_byte_by_byte_the_same_is_told(name: str, before: bytes, cuts: list[int], behind: bytes) -> None:
    data = before + recut(greeting(name), cuts) + behind
    whole = told([data])
    single = told([data[at : at + 1] for at in range(len(data))])
    assert whole[2] == single[2]
    if whole[2] == "refused":
        # what came before the refusal may be with the server already, but no name that was not judged
        assert data.startswith(single[0])
        assert (name.encode() in single[0]) <= (name in single[1])
    else:
        assert whole == single


@given(NAME, GARBAGE, st.lists(st.integers(0, 2000), max_size=3))
def test_no_server_that_reads_a_greeting_behind_anything_hears_a_name_that_was_not_judged(
    name: str, before: bytes, cuts: list[int]
) -> None:
    data = before + recut(greeting(name), cuts)
    read = as_openssl_reads_it(data)
    passed, names, _ = told([data])
    if read is not None and read.encode() in passed:
        assert read in names


@given(NAME, st.binary(max_size=40), st.integers(1, 40))
def test_a_server_that_speaks_first_waits_for_no_greeting(name: str, said: bytes, answer: int) -> None:
    """Its clients may begin as they like, and a greeting is judged all the same."""
    passed, names, how = told([said], b"2" * answer, 0)
    assert how != "refused" or said[:1] == b"\x16"
    assert passed == (said if how == "over" else passed)
    assert told([greeting(name)], b"2" * answer, 0)[1] == [name]
    assert names == []
