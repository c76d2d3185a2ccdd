"""The filter's program, run by an interpreter of classic BPF, answers as a plain look-up in its tables would."""

from __future__ import annotations

import struct
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.linux.kernel.observed_syscalls import CALLS, O_CREAT, O_TMPFILE_BIT, OPEN_WRITE_FLAGS, WRITES
from sandbox.linux.kernel.seccomp_filter import (
    CHANGES_MODE,
    CLONE_NAMESPACES,
    REFUSED,
    TIOCLINUX,
    TIOCSTI,
    UNSHARE_NAMESPACES,
    Notify,
    UnixSockets,
    mediated,
    program,
)
from sandbox.linux.kernel.syscall_numbers import (
    AARCH64,
    AUDIT_ARCH_AARCH64,
    AUDIT_ARCH_X86_64,
    TABLE,
    X86_64,
    Architecture,
)

ALLOW, NOTIFY, ERRNO = 0x7FFF0000, 0x7FC00000, 0x50000
EPERM, ENOSYS, EAFNOSUPPORT = ERRNO | 1, ERRNO | 38, ERRNO | 97
# conventions of 32-bit programs on the two machines (linux/audit.h)
AUDIT_ARCH_I386, AUDIT_ARCH_ARM = 0x40000003, 0x40000028
BOTH = (X86_64, AARCH64)
MODES: tuple[Notify, ...] = get_args(Notify)
SOCKETS: tuple[UnixSockets, ...] = get_args(UnixSockets)
NAMES = {arch.name: {row[column]: n for n, row in TABLE.items()} for column, arch in enumerate(BOTH)}
Code = list[tuple[int, int, int, int]]


def decode(raw: bytes) -> Code:
    return [struct.unpack_from("<HBBI", raw, at) for at in range(0, len(raw), 8)]


PROGRAMS = {
    (arch.name, mode, sockets): decode(program(arch, notify=mode, unix_sockets=sockets))
    for arch in BOTH
    for mode in MODES
    for sockets in SOCKETS
}


def run(code: Code, number: int, audit: int, args: tuple[int, ...]) -> int:
    """What the kernel would answer: load, jump and return of classic BPF, with the kernel's own bounds."""
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, audit, 0, *args)
    assert 0 < len(code) <= 4096
    accumulator, at = 0, 0
    while True:
        op, jt, jf, k = code[at]
        at += 1
        if op == 0x20:
            assert k % 4 == 0
            (accumulator,) = struct.unpack_from("<I", data, k)
        elif op == 0x05:
            at += k
        elif op == 0x15:
            at += jt if accumulator == k else jf
        elif op == 0x35:
            at += jt if accumulator >= k else jf
        elif op == 0x45:
            at += jt if accumulator & k else jf
        else:
            assert op == 0x06
            return k


def sets_id(name: str, low: list[int]) -> bool:
    """Whether a call would give a file a set-user-ID or set-group-ID bit, by what its registers say."""
    # the register of the mode, and that of the flags for calls that make a file only with some
    mode = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
    opens = {"open": (1, 2), "openat": (2, 3)}
    if name in opens:
        flags, given = opens[name]
        return bool(low[flags] & (O_CREAT | O_TMPFILE_BIT) and low[given] & 0o6000)
    return name in mode and bool(low[mode[name]] & 0o6000)


def expected(arch: Architecture, mode: str, *, sockets: str, number: int, audit: int, args: tuple[int, ...]) -> int:
    """The same answer from the tables alone."""
    if audit != arch.audit or number >= 0x40000000:
        return ENOSYS
    name = NAMES[arch.name].get(number)
    low = [a & 0xFFFFFFFF for a in args]
    if name is None:
        return ALLOW
    if name in REFUSED:
        return ERRNO | REFUSED[name]
    datagram = bool(low[1] & 2)
    of_unix = {"refused": EPERM, "mediated": NOTIFY if datagram else ALLOW, "free": ALLOW}[sockets]
    dialled = NOTIFY if sockets == "mediated" else ALLOW
    special = {
        "connect": dialled,
        "sendto": dialled if args[4] else ALLOW,
        "sendmsg": dialled,
        "sendmmsg": dialled,
        "ioctl": EPERM if low[1] in (TIOCSTI, TIOCLINUX) else ALLOW,
        "clone": EPERM if low[0] & CLONE_NAMESPACES else ALLOW,
        "unshare": EPERM if low[0] & UNSHARE_NAMESPACES else ALLOW,
        "socket": of_unix if low[0] == 1 else ALLOW if low[0] in (2, 10, 16, 17) else EAFNOSUPPORT,
        "socketpair": of_unix if datagram else ALLOW,
    }
    if name in special:
        return special[name]
    if sets_id(name, low):
        return NOTIFY if name in CHANGES_MODE and mode != "none" else EPERM
    if mode == "none" or name not in {*CALLS, "bind"}:
        return ALLOW
    if mode == "all" or name in {*WRITES, "bind"}:
        return NOTIFY
    if name in ("open", "openat"):
        return NOTIFY if low[1 if name == "open" else 2] & OPEN_WRITE_FLAGS else ALLOW
    return ALLOW


@pytest.mark.parametrize("sockets", SOCKETS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("arch", BOTH, ids=lambda a: a.name)
def test_every_number_of_the_table_and_its_neighbours(arch: Architecture, mode: Notify, sockets: UnixSockets) -> None:
    code = PROGRAMS[arch.name, mode, sockets]
    values = (
        0,
        1,
        2,
        3,
        10,
        16,
        17,
        38,
        40,
        0x80,
        0x241,
        0x1ED,
        0x400,
        0x800,
        0xC40,
        0x20000,
        0x5412,
        0x541C,
        0xFFFFFFFF,
    )
    for number in range(-1, 480):
        for value in values:
            args = (value,) * 6
            assert run(code, number, arch.audit, args) == expected(
                arch, mode, sockets=sockets, number=number & 0xFFFFFFFF, audit=arch.audit, args=args
            ), number


_ARGUMENT = st.one_of(
    st.integers(0, 2**64 - 1),
    st.sampled_from([0, 1, 40, 0x5412, 0x541C, 0x80, 0x10000000, 0x40, 0x200, 2**32 + 0x5412, 2**32 + 1, 2**40]),
)


@settings(max_examples=80, deadline=None)
@given(
    arch=st.sampled_from(BOTH),
    mode=st.sampled_from(MODES),
    sockets=st.sampled_from(SOCKETS),
    number=st.one_of(st.integers(0, 480), st.integers(0, 2**32 - 1), st.integers(0x40000000, 0x40000200)),
    audit=st.sampled_from([AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, AUDIT_ARCH_I386, AUDIT_ARCH_ARM, 0]),
    args=st.tuples(*[_ARGUMENT] * 6),
)
def test_any_call_with_any_arguments(
    *, arch: Architecture, mode: Notify, sockets: UnixSockets, number: int, audit: int, args: tuple[int, ...]
) -> None:
    assert run(PROGRAMS[arch.name, mode, sockets], number, audit, args) == expected(
        arch, mode, sockets=sockets, number=number, audit=audit, args=args
    )


@pytest.mark.parametrize("arch", BOTH, ids=lambda a: a.name)
def test_terminal_injection_is_refused_whatever_the_high_half_of_the_request_says(arch: Architecture) -> None:
    code = PROGRAMS[arch.name, "none", "free"]
    for request in (0x5412, 0x541C):
        for high in (0, 1, 0xFFFFFFFF):
            args = (0, request | high << 32, 0, 0, 0, 0)
            assert run(code, arch.numbers["ioctl"], arch.audit, args) == EPERM


@pytest.mark.parametrize("arch", BOTH, ids=lambda a: a.name)
@pytest.mark.parametrize("bit", [17, 25, 26, 27, 28, 29, 30])
def test_no_namespace_can_be_made(arch: Architecture, bit: int) -> None:
    code = PROGRAMS[arch.name, "writes", "refused"]
    args = (1 << bit | 17, 0, 0, 0, 0, 0)
    assert run(code, arch.numbers["clone"], arch.audit, args) == EPERM
    assert run(code, arch.numbers["unshare"], arch.audit, args) == EPERM


@pytest.mark.parametrize("arch", BOTH, ids=lambda a: a.name)
def test_threads_forks_and_pairs_of_sockets_run(arch: Architecture) -> None:
    code = PROGRAMS[arch.name, "writes", "refused"]
    thread = (0x3D0F00, 0, 0, 0, 0, 0)
    fork = (0x1200011, 0, 0, 0, 0, 0)
    assert run(code, arch.numbers["clone"], arch.audit, thread) == ALLOW
    assert run(code, arch.numbers["clone"], arch.audit, fork) == ALLOW
    assert run(code, arch.numbers["socketpair"], arch.audit, (1, 1, 0, 0, 0, 0)) == ALLOW
    assert run(code, arch.numbers["socketpair"], arch.audit, (1, 5 | 0x80800, 0, 0, 0, 0)) == ALLOW
    assert run(code, arch.numbers["ptrace"], arch.audit, (0,) * 6) == ALLOW


@pytest.mark.parametrize("arch", BOTH, ids=lambda a: a.name)
def test_a_pair_that_could_be_turned_to_a_listener_of_the_host_is_refused(arch: Architecture) -> None:
    code = PROGRAMS[arch.name, "writes", "refused"]
    for kind in (2, 3):
        for flags in (0, 0x800, 0x80000):
            assert run(code, arch.numbers["socketpair"], arch.audit, (1, kind | flags, 0, 0, 0, 0)) == EPERM


def test_an_open_for_reading_never_stops_while_the_mask_sees_it() -> None:
    code = PROGRAMS["x86_64", "writes", "free"]
    for flags in (0, 0o2000000, 0o200000, 0o10000000, 0o4000):
        assert run(code, 257, X86_64.audit, (0, 0, flags, 0, 0, 0)) == ALLOW
    for flags in (1, 2, 0o100, 0o1000, 0o20200000):
        assert run(code, 257, X86_64.audit, (0, 0, flags, 0, 0, 0)) == NOTIFY


def test_no_call_is_both_refused_and_watched() -> None:
    assert not set(REFUSED) & set(CALLS)
    special = {"ioctl", "clone", "unshare", "socket", "socketpair", *mediated()}
    assert not special & (set(REFUSED) | set(CALLS))


@pytest.mark.parametrize("arch", BOTH, ids=lambda a: a.name)
def test_a_plain_send_never_stops_and_an_addressed_one_always_does(arch: Architecture) -> None:
    code = PROGRAMS[arch.name, "writes", "mediated"]
    for address, verdict in ((0, ALLOW), (1, NOTIFY), (1 << 32, NOTIFY), (0x7FFF00000000, NOTIFY)):
        assert run(code, arch.numbers["sendto"], arch.audit, (3, 0x1000, 5, 0, address, 0)) == verdict


@pytest.mark.parametrize("arch", BOTH, ids=lambda a: a.name)
def test_the_first_datagram_socket_stops_and_a_stream_does_not(arch: Architecture) -> None:
    code = PROGRAMS[arch.name, "writes", "mediated"]
    for call in ("socket", "socketpair"):
        for flags in (0, 0x800, 0x80000):
            for kind, verdict in ((1, ALLOW), (2, NOTIFY), (3, NOTIFY), (5, ALLOW)):
                assert run(code, arch.numbers[call], arch.audit, (1, kind | flags, 0, 0, 0, 0)) == verdict


@pytest.mark.parametrize("family", [*range(3, 10), 11, 29, 31, 38, 40, 42, 44, 1 << 31])
def test_families_that_no_network_namespace_holds_do_not_exist(family: int) -> None:
    for sockets in SOCKETS:
        code = PROGRAMS["x86_64", "writes", sockets]
        assert run(code, 41, X86_64.audit, (family, 3, 0, 0, 0, 0)) == EAFNOSUPPORT
