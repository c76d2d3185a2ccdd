"""A CONNECT that is read without h11 is one that h11 reads the same and answers the same."""

from __future__ import annotations

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbox.proxy.io.http_port import split_authority
from sandbox.proxy.protocol import connect_head

TARGET = st.one_of(
    st.from_regex(r"[a-z0-9._-]{1,20}:[0-9]{1,6}", fullmatch=True),
    st.from_regex(r"\[[0-9a-f:.]{1,20}\]:[0-9]{1,6}", fullmatch=True),
    st.sampled_from(["a.test:0", "a.test", ":443", "a.test:", "a.test:443:443", "a@b.test:1", "http://a.test/", "*"]),
    st.text(st.characters(max_codepoint=255), max_size=12),
)
NAME = st.one_of(
    st.sampled_from(
        [
            *("Host", "host", "HOST", "User-Agent", "Proxy-Connection", "Accept", "Connection", "Upgrade", "Expect"),
            *("Content-Length", "Transfer-Encoding", "Proxy-Authorization", "Host ", " Host", "Hos\tt", "", "TE"),
        ]
    ),
    st.text(st.characters(max_codepoint=255), max_size=6),
)
VALUE = st.one_of(
    st.sampled_from(["x", "a.test:443", "close", "chunked", "5", "-1", "5, 5", "", " ", " x ", "x\r\n y", "\x0bx"]),
    st.text(st.characters(max_codepoint=255), max_size=12),
)
SEPARATOR = st.sampled_from([": ", ": ", ": ", ":", ":  ", ":\t", " : ", ""])
LINE = st.tuples(NAME, SEPARATOR, VALUE).map("".join)
END = st.sampled_from(["\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r", ""])
HEAD = st.builds(
    lambda method, target, version, end, lines, last: (
        f"{method} {target} {version}{end}{''.join(line + end for line in lines)}{last}".encode("latin-1")
    ),
    st.sampled_from(["CONNECT"] * 6 + ["connect", "GET", "CONNECT ", ""]),
    TARGET,
    st.sampled_from(["HTTP/1.1"] * 4 + ["HTTP/1.0", "http/1.1", "HTTP/1.2", "HTTP/2", ""]),
    END,
    st.lists(LINE, max_size=5),
    END,
)
#: What most draws would miss: the shape itself, with lines that are always of it.
PLAIN = st.builds(
    lambda target, version, lines: f"CONNECT {target} {version}\r\n{''.join(lines)}\r\n".encode("latin-1"),
    TARGET,
    st.sampled_from(["HTTP/1.1", "HTTP/1.0"]),
    st.lists(
        st.builds(
            "{}: {}\r\n".format,
            st.sampled_from(["Host", "hOST", "User-Agent", "accept", "Proxy-Connection"]),
            st.from_regex(r"[!-~][ -~]{0,8}", fullmatch=True),
        ),
        max_size=4,
    ),
)


def same_to_h11(data: bytes) -> bool:
    """Whether it was read here; h11 then has to read it as well, and everything about it the same."""
    found = connect_head.read(data)
    if found is None:
        return False
    server = h11.Connection(h11.SERVER)
    server.receive_data(data)
    request = server.next_event()
    assert isinstance(request, h11.Request)
    assert request.method == b"CONNECT"
    assert split_authority(request.target.decode("ascii"), None) == (found.host, found.port)
    assert not {b"content-length", b"transfer-encoding", b"expect"} & {name for name, _ in request.headers}
    assert isinstance(server.next_event(), h11.EndOfMessage)
    answer = server.send(h11.Response(status_code=200, headers=[], reason=b"Connection established"))
    assert answer == found.answer
    assert server.trailing_data == (data[found.size :], False)
    return True


@given(st.one_of(HEAD, PLAIN), st.binary(max_size=20))
@example(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nhost: b.test\r\n\r\n", b"")
@example(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n folded\r\n\r\n", b"")
def test_what_is_read_without_h11_is_read_the_same_by_it(head: bytes, rest: bytes) -> None:
    same_to_h11(head + rest)


@given(PLAIN, st.integers(0, 300), st.integers(0, 255))
def test_one_byte_that_differs_makes_no_difference_to_who_reads_it(head: bytes, at: int, byte: int) -> None:
    same_to_h11(head[: at % len(head)] + bytes((byte,)) + head[at % len(head) + 1 :])


@given(PLAIN)
def test_half_a_head_is_none(head: bytes) -> None:
    assert all(connect_head.read(head[:end]) is None for end in range(len(head)))


@pytest.mark.parametrize(
    ("head", "target"),
    [
        ("CONNECT pypi.test:443 HTTP/1.1\r\nHost: pypi.test:443\r\n\r\n", ("pypi.test", 443)),
        ("CONNECT [2001:db8::1]:8443 HTTP/1.1\r\nHost: [2001:db8::1]:8443\r\n\r\n", ("[2001:db8::1]", 8443)),
        # as curl, http.client and node's agents write it
        (
            "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nUser-Agent: a/7.8\r\nProxy-Connection: Keep-Alive\r\n\r\n",
            ("a.test", 443),
        ),
        ("CONNECT a.test:443 HTTP/1.0\r\n\r\n", ("a.test", 443)),
        ("CONNECT a.test:443 HTTP/1.1\r\nhost: a.test\r\nproxy-connection: close\r\n\r\n", ("a.test", 443)),
    ],
)
def test_what_clients_write_is_read_without_h11(head: str, target: tuple[str, int]) -> None:
    found = connect_head.read(head.encode() + b"\x16\x03\x01")
    assert found is not None
    assert (found.host, found.port, found.size) == (*target, len(head))
    assert same_to_h11(head.encode() + b"\x16\x03\x01")


@pytest.mark.parametrize(
    "head",
    [
        "CONNECT a.test:443 HTTP/1.1\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Basic eDp5\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\nHost: a.test\n\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost : a.test\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n folded\r\n\r\n",
        "CONNECT a.test:65536 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "CONNECT a.test:0 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "CONNECT a\0.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "CONNECT u@a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "connect a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        f"CONNECT a.test:443 HTTP/1.1\r\nHost: {'a' * 3000}\r\n\r\n",
    ],
)
def test_every_other_shape_is_left_to_h11(head: str) -> None:
    assert connect_head.read(head.encode()) is None
