"""Notification records and the text of a call: anything the kernel could write is read, anything else refused."""

from __future__ import annotations

import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.linux.kernel import seccomp_notification
from sandbox.linux.kernel.observed_syscalls import UnreadableArgument, parse_syscall_line

U64 = st.integers(0, 2**64 - 1)
U32 = st.integers(0, 2**32 - 1)


@settings(max_examples=80, deadline=None)
@given(U64, U32, U32, st.integers(-(2**31), 2**31 - 1), U32, U64, st.tuples(*[U64] * 6), st.binary(max_size=16))
def test_a_record_is_read_back(  # noqa: PLR0917  hypothesis hands over the fields of one struct
    unique: int, pid: int, flags: int, number: int, arch: int, ip: int, args: tuple[int, ...], later: bytes
) -> None:
    raw = struct.pack("<QIIiIQ6Q", unique, pid, flags, number, arch, ip, *args)
    assert seccomp_notification.parse(raw + later) == (unique, pid, flags, number, arch, ip, args)
    assert seccomp_notification.parse(bytearray(raw)) == seccomp_notification.parse(raw)


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200))
def test_garbage_is_a_record_or_refused(raw: bytes) -> None:
    try:
        parsed = seccomp_notification.parse(raw)
    except seccomp_notification.MalformedNotification:
        assert len(raw) < seccomp_notification.SIZE
    else:
        assert len(parsed.args) == 6


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 500), st.lists(U64, min_size=8, max_size=8))
def test_a_call_written_as_the_kernel_writes_it_is_read_back(number: int, words: list[int]) -> None:
    text = f"{number} " + " ".join(hex(w) for w in words) + "\n"
    assert parse_syscall_line(text) == (number, tuple(words[:6]))


@settings(max_examples=80, deadline=None)
@given(st.one_of(st.text(max_size=80), st.lists(st.integers(-5, 2**65)).map(lambda n: " ".join(map(str, n)))))
def test_any_other_text_is_refused_or_read_whole(text: str) -> None:
    try:
        found = parse_syscall_line(text)
    except UnreadableArgument:
        return
    assert found is None or (found[0] >= 0 and len(found[1]) == 6)
