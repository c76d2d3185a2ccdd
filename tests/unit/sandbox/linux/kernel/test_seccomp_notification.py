from __future__ import annotations

import struct

import pytest

from sandbox.linux.kernel import seccomp_notification
from sandbox.linux.kernel.seccomp_notification import MalformedNotification


def record() -> bytes:
    return struct.pack("<QIIiIQ6Q", 7, 4100, 0, 257, 0xC000003E, 0x7F00, 0xFFFFFF9C, 1, 2, 3, 4, 5)


def test_a_record_is_eighty_bytes_and_gives_its_fields() -> None:
    assert len(record()) == seccomp_notification.SIZE
    parsed = seccomp_notification.parse(record())
    assert (parsed.id, parsed.pid, parsed.number, parsed.arch) == (7, 4100, 257, 0xC000003E)
    assert parsed.args == (0xFFFFFF9C, 1, 2, 3, 4, 5)


def test_a_longer_record_of_a_newer_kernel_is_read_alike() -> None:
    assert seccomp_notification.parse(record() + b"later") == seccomp_notification.parse(record())


@pytest.mark.parametrize("length", range(80))
def test_a_short_record_is_refused_with_its_length(length: int) -> None:
    with pytest.raises(MalformedNotification, match=f"{length} bytes"):
        seccomp_notification.parse(record()[:length])


def test_answers() -> None:
    assert struct.unpack("<QqiI", seccomp_notification.go_on(9)) == (9, 0, 0, 1)
    assert struct.unpack("<QqiI", seccomp_notification.fail(9, 30)) == (9, 0, -30, 0)
    assert struct.unpack("<QqiI", seccomp_notification.value(9, -5)) == (9, -5, 0, 0)


@pytest.mark.parametrize(
    ("name", "direction", "number", "size"),
    [("RECV", 3, 0, 80), ("SEND", 3, 1, 24), ("ID_VALID", 1, 2, 8), ("SET_FLAGS", 1, 4, 8)],
)
def test_ioctl_numbers_are_composed_as_the_kernel_composes_them(
    name: str, direction: int, number: int, size: int
) -> None:
    assert getattr(seccomp_notification, name) == direction << 30 | size << 16 | ord("!") << 8 | number
