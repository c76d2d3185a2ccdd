"""Requests of the mask's protocol: whole, cut at every byte, with garbage; and replies read back."""

from __future__ import annotations

import os
import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.linux.kernel import fuse_protocol
from sandbox.linux.kernel.fuse_protocol import BODIES, FuseRequest, MalformedFuseRequest, Op

NAME = st.binary(min_size=1, max_size=255).filter(lambda b: b"\0" not in b and b"/" not in b)


def header(op: int, length: int, unique: int = 5, node: int = 9) -> bytes:
    return struct.pack("<IIQQIIIHH", length, op, unique, node, 1000, 100, 4100, 0, 0)


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, FuseRequest]:
    op = draw(st.sampled_from([*BODIES, Op.BATCH_FORGET]))
    if op == Op.BATCH_FORGET:
        fields = tuple(
            n for pair in draw(st.lists(st.tuples(*[st.integers(0, 2**64 - 1)] * 2), max_size=5)) for n in pair
        )
        body = struct.pack(f"<II{len(fields)}Q", len(fields) // 2, 0, *fields)
        names: list[bytes] = []
        data = b""
    else:
        layout, count, has_data = BODIES[op]
        raw = draw(st.binary(min_size=layout.size, max_size=layout.size))
        fields = layout.unpack(raw)
        names = draw(st.lists(NAME, min_size=count, max_size=count))
        data = draw(st.binary(max_size=40)) if has_data else b""
        body = raw + b"".join(n + b"\0" for n in names) + data
    message = header(op, 40 + len(body)) + body
    return message, FuseRequest(op, 5, 9, 1000, 100, 4100, fields, tuple(os.fsdecode(n) for n in names), data)


@settings(max_examples=80, deadline=None)
@given(requests())
def test_a_request_is_read_back_whole(pair: tuple[bytes, FuseRequest]) -> None:
    message, expected = pair
    assert fuse_protocol.parse(message) == expected
    assert fuse_protocol.parse(message + b"trailing") == expected


@settings(max_examples=60, deadline=None)
@given(requests())
def test_a_request_cut_anywhere_is_refused(pair: tuple[bytes, FuseRequest]) -> None:
    message, _ = pair
    for end in range(len(message)):
        try:
            fuse_protocol.parse(message[:end])
        except MalformedFuseRequest:
            continue
        raise AssertionError(f"cut at {end} of {len(message)} it was read")


@settings(max_examples=40, deadline=None)
@given(requests())
def test_a_request_whose_length_is_cut_is_refused_or_read_as_shorter(pair: tuple[bytes, FuseRequest]) -> None:
    message, _ = pair
    for end in range(40, len(message)):
        cut = struct.pack("<I", end) + message[4:end]
        try:
            parsed = fuse_protocol.parse(cut)
        except MalformedFuseRequest:
            continue
        assert len(parsed.data) <= end - 40


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 60))
def test_garbage_is_refused_or_read_and_nothing_else(garbage: bytes, op: int) -> None:
    for message in (garbage, header(op, 40 + len(garbage)) + garbage):
        try:
            parsed = fuse_protocol.parse(message)
        except MalformedFuseRequest:
            continue
        assert isinstance(parsed, FuseRequest)


@given(st.integers(53, 2**32 - 1), st.binary(max_size=50))
def test_an_operation_of_a_later_kernel_is_a_value(op: int, body: bytes) -> None:
    parsed = fuse_protocol.parse(header(op, 40 + len(body)) + body)
    assert (parsed.op, parsed.unique, parsed.fields, parsed.names) == (op, 5, (), ())


@settings(max_examples=40, deadline=None)
@given(st.lists(NAME, max_size=30, unique=True), st.integers(24, 400))
def test_a_directory_read_in_parts_is_the_directory(raw_names: list[bytes], size: int) -> None:
    names = [os.fsdecode(n) for n in raw_names]
    entries = [(i + 2, name, 8) for i, name in enumerate(names)]
    size = max(size, max((24 + -(-len(n) // 8) * 8 for n in raw_names), default=24))
    found: list[str] = []
    offset = 0
    while part := fuse_protocol.dirents(entries, offset, size):
        assert len(part) <= size
        at = 0
        while at < len(part):
            ino, offset, length, kind = struct.unpack_from("<QQII", part, at)
            name = os.fsdecode(part[at + 24 : at + 24 + length])
            assert (ino, name, kind) == entries[len(found)]
            found.append(name)
            at += 24 + -(-length // 8) * 8
        assert at == len(part)
    assert found == names
