"""Addresses and messages of sockets: what was packed is read back, and no bytes break the reading."""

from __future__ import annotations

import ctypes
import ipaddress
import socket
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.linux.kernel import sockaddr
from sandbox.linux.kernel.sockaddr import Abstract, Control, Inet, MalformedAddress, Netlink, Path, Unspecified

_FEW = settings(max_examples=80, deadline=None)
_PATHS = st.binary(min_size=1, max_size=107).filter(lambda raw: b"\0" not in raw)


@_FEW
@given(st.binary(max_size=140))
def test_any_bytes_are_an_address_or_none(raw: bytes) -> None:
    try:
        found = sockaddr.parse(raw)
    except MalformedAddress:
        return
    family = int.from_bytes(raw[:2], "little")
    expected: dict[int, set[type]] = {0: {Unspecified}, 1: {Path, Abstract}, 2: {Inet}, 10: {Inet}, 16: {Netlink}}
    assert type(found) in expected[family]


@_FEW
@given(path=_PATHS, rest=st.binary(max_size=20))
def test_a_path_ends_where_the_kernel_ends_it(path: bytes, rest: bytes) -> None:
    assert sockaddr.parse(struct.pack("H", 1) + path) == Path(path)
    assert sockaddr.parse(sockaddr.unix(path)) == Path(path)
    filled = (struct.pack("H", 1) + path + b"\0" + rest)[:110]
    assert sockaddr.parse(filled) == Path(path)
    assert sockaddr.parse(struct.pack("H", 1) + b"\0" + path) == Abstract(path)


@pytest.mark.parametrize("size", [0, 1, 2, 111, 128])
def test_what_the_kernel_takes_for_no_path_is_none(size: int) -> None:
    with pytest.raises(MalformedAddress):
        sockaddr.parse((struct.pack("H", 1) + b"x" * 126)[:size])


@_FEW
@given(address=st.ip_addresses(), port=st.integers(0, 65535))
def test_a_host_is_read_as_it_was_packed(address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> None:
    if isinstance(address, ipaddress.IPv4Address):
        raw = struct.pack("H", socket.AF_INET) + port.to_bytes(2, "big") + address.packed + bytes(8)
        mapped = struct.pack("HHI", socket.AF_INET6, 0, 0) + bytes(10) + b"\xff\xff" + address.packed
        mapped = mapped[:2] + port.to_bytes(2, "big") + mapped[4:] + bytes(4)
        assert sockaddr.parse(mapped) == Inet(address.packed, port)
        loopback = address.is_loopback or address == ipaddress.IPv4Address(0)
    else:
        raw = struct.pack("H", socket.AF_INET6) + port.to_bytes(2, "big") + bytes(4) + address.packed + bytes(4)
        if address.ipv4_mapped is not None:
            return
        loopback = address.is_loopback or int(address) == 0
    found = sockaddr.parse(raw)
    assert found == Inet(address.packed, port)
    assert isinstance(found, Inet)
    assert found.loopback == loopback


class _Message(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_int),
        ("parts", ctypes.c_void_p),
        ("part_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_size", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


_POINTER = st.integers(1, 2**47)


@_FEW
@given(
    name=_POINTER, size=st.integers(-(2**31), 2**31 - 1), parts=_POINTER, count=st.integers(0, 2**40), control=_POINTER
)
def test_a_message_header_is_read_as_a_compiler_lays_it_out(
    name: int, size: int, parts: int, count: int, control: int
) -> None:
    raw = bytes(_Message(name, size, parts, count, control, 40, 7))
    assert len(raw) == sockaddr.MSGHDR_SIZE
    found = sockaddr.header(raw + b"more")
    assert found == (name, size, parts, count, control, 40, 7)
    assert found.addressed == bool(size)
    with pytest.raises(MalformedAddress):
        sockaddr.header(raw[:-1])


_CONTROLS = st.lists(st.builds(Control, st.integers(0, 300), st.integers(0, 300), st.binary(max_size=40)), max_size=4)


@_FEW
@given(_CONTROLS)
def test_control_messages_are_packed_and_read_back(messages: list[Control]) -> None:
    packed = sockaddr.packed_controls(messages)
    assert len(packed) == sum(socket.CMSG_SPACE(len(message.data)) for message in messages)
    assert list(sockaddr.controls(packed)) == messages


@_FEW
@given(st.binary(max_size=200))
def test_any_bytes_are_control_messages_or_none(raw: bytes) -> None:
    try:
        found = list(sockaddr.controls(raw))
    except MalformedAddress:
        return
    assert sum(16 + len(message.data) for message in found) <= len(raw)


@_FEW
@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), max_size=5), st.binary(max_size=15))
def test_parts_are_read_in_order_and_a_rest_is_left_out(parts: list[tuple[int, int]], rest: bytes) -> None:
    assert sockaddr.parts(b"".join(struct.pack("QQ", *part) for part in parts) + rest) == parts


def _request(kind: int, body: bytes = b"") -> bytes:
    raw = struct.pack("IHHII", 16 + len(body), kind, 0x301, 1, 0) + body
    return raw + bytes(-len(raw) % 4)


@_FEW
@given(st.lists(st.tuples(st.integers(0, 200), st.binary(max_size=20)), min_size=1, max_size=4))
def test_a_netlink_message_asks_only_when_each_part_does(requests: list[tuple[int, bytes]]) -> None:
    raw = b"".join(_request(kind, body) for kind, body in requests)
    asks = {18 + 4 * n for n in range(50)}  # RTM_GETLINK, RTM_GETADDR, RTM_GETROUTE, ...
    assert sockaddr.asks_only(raw) == all(kind in asks for kind, _ in requests)


@_FEW
@given(st.binary(max_size=60))
def test_any_bytes_ask_or_do_not(raw: bytes) -> None:
    assert sockaddr.asks_only(raw) in (True, False)
