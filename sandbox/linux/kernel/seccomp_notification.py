"""Records of the seccomp listener, as the kernel lays them out (`linux/seccomp.h`, seccomp_unotify(2)). Pure."""

from __future__ import annotations

import struct
from typing import NamedTuple

RECV = 0xC0502100
SEND = 0xC0182101
ID_VALID = 0x40082102
ADD_DESCRIPTOR = 0x40182103
SET_FLAGS = 0x40082104

#: A flag of SET_FLAGS: wake the observer on the caller's own processor (Linux 6.6).
SYNC_WAKE_UP = 1

SIZE = 80
FLAG_CONTINUE = 1

_RECORD = struct.Struct("<QIIiIQ6Q")
_RESPONSE = struct.Struct("<QqiI")
_DESCRIPTOR = struct.Struct("<QIIII")


class MalformedNotification(ValueError):
    """Bytes that are no notification."""


class Notification(NamedTuple):
    """A call that stands still until it is answered.

    Attributes:
        id: the number that the answer must carry.
        pid: the caller, as the observer's pid namespace numbers it; 0 when it is not visible there.
        arch: the caller's convention, an AUDIT_ARCH value.
        args: the six argument registers.
    """

    id: int
    pid: int
    flags: int
    number: int
    arch: int
    ip: int
    args: tuple[int, ...]


def parse(raw: bytes | bytearray) -> Notification:
    """A notification from a `struct seccomp_notif`; bytes that a later kernel appends are passed over.

    Raises:
        MalformedNotification: the record has fewer than 80 bytes.
    """
    if len(raw) < SIZE:
        raise MalformedNotification(f"a notification of {len(raw)} bytes, {SIZE} expected")
    unique, pid, flags, number, arch, ip, *args = _RECORD.unpack_from(raw)
    return Notification(unique, pid, flags, number, arch, ip, tuple(args))


def go_on(unique: int) -> bytes:
    """The answer that lets the call run as if it had never stopped."""
    return _RESPONSE.pack(unique, 0, 0, FLAG_CONTINUE)


def fail(unique: int, errno: int) -> bytes:
    """The answer that makes the call fail with `errno` (positive)."""
    return _RESPONSE.pack(unique, 0, -errno, 0)


def value(unique: int, result: int) -> bytes:
    """The answer that makes the call return `result` without running."""
    return _RESPONSE.pack(unique, result, 0, 0)


def descriptor(unique: int, fd: int, flags: int) -> bytes:
    """The record of ADD_DESCRIPTOR that gives a caller a copy of `fd`, with `flags` O_CLOEXEC or 0, under any number.

    The request tells that number. The call stands still until it is answered (SECCOMP_ADDFD_FLAG_SEND is not set).
    """
    return _DESCRIPTOR.pack(unique, 0, fd, 0, flags)
