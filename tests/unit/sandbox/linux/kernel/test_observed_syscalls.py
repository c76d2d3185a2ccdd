from __future__ import annotations

import re
from pathlib import Path

import pytest

from sandbox.contract.intents import Intent
from sandbox.linux.kernel import observed_syscalls
from sandbox.linux.kernel.observed_syscalls import CALLS, UnreadableArgument, follows, open_intent, parse_syscall_line
from sandbox.linux.kernel.syscall_numbers import AARCH64, ARCHITECTURES, TABLE, X86_64, Architecture

HEADERS = [
    Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    Path("/usr/include/asm/unistd_64.h"),
]
O_CREAT, O_EXCL, O_TRUNC, O_PATH, O_TMPFILE = 0o100, 0o200, 0o1000, 0o10000000, 0o20200000


def test_numbers_agree_with_the_kernel_headers_of_this_machine() -> None:
    header = next((h for h in HEADERS if h.exists()), None)
    if header is None:
        pytest.skip("no x86_64 kernel headers are installed")
    known = {m[1]: int(m[2]) for m in re.finditer(r"#define __NR_(\w+) (\d+)", header.read_text())}
    assert {n: row[0] for n, row in TABLE.items() if n in known} == {n: known[n] for n in TABLE if n in known}


@pytest.mark.parametrize("arch", [X86_64, AARCH64], ids=lambda a: a.name)
def test_no_number_is_given_twice(arch: Architecture) -> None:
    assert len(arch.names) == len(arch.numbers)


def test_machines_are_known_by_the_name_uname_gives() -> None:
    assert ARCHITECTURES["x86_64"] is X86_64
    assert ARCHITECTURES["aarch64"] is AARCH64


def test_every_observed_call_has_a_number_somewhere_and_is_found_by_it() -> None:
    for name, call in CALLS.items():
        numbers = [(a, a.numbers[name]) for a in (X86_64, AARCH64) if name in a.numbers]
        assert numbers, name
        assert all(observed_syscalls.by_number(a, n) is call for a, n in numbers)
    assert observed_syscalls.by_number(X86_64, X86_64.numbers["close"]) is None


def test_the_calls_that_change_something_are_all_named() -> None:
    assert {
        "creat",
        "mkdir",
        "mkdirat",
        "mknod",
        "mknodat",
        "unlink",
        "unlinkat",
        "rmdir",
        "rename",
        "renameat",
        "renameat2",
        "link",
        "linkat",
        "symlink",
        "symlinkat",
        "truncate",
        "chmod",
        "fchmodat",
        "fchmodat2",
        "chown",
        "lchown",
        "fchownat",
        "utime",
        "utimes",
        "futimesat",
        "utimensat",
        "setxattr",
        "lsetxattr",
        "setxattrat",
        "removexattr",
        "lremovexattr",
        "removexattrat",
        "file_setattr",
    } == observed_syscalls.WRITES


@pytest.mark.parametrize(
    ("flags", "exists", "intent"),
    [
        (0, True, Intent.OPEN),
        (0, False, Intent.OPEN),
        (1, False, Intent.WRITE),
        (2, True, Intent.WRITE),
        (O_TRUNC, True, Intent.WRITE),
        (O_CREAT, True, Intent.OPEN),
        (O_CREAT, False, Intent.CREATE),
        (O_CREAT | O_EXCL | 1, True, Intent.CREATE),
        (O_CREAT | O_TRUNC | 1, True, Intent.WRITE),
        (O_CREAT | O_TRUNC | 1, False, Intent.CREATE),
        (O_TMPFILE | 2, True, Intent.WRITE),
        (O_PATH, True, Intent.PROBE),
        (O_PATH | O_CREAT | 1, False, Intent.PROBE),
    ],
)
def test_what_an_open_means(flags: int, exists: bool, intent: Intent) -> None:
    assert open_intent(flags, exists=exists) is intent


@pytest.mark.parametrize(
    ("name", "index", "flags", "expected"),
    [
        ("open", 0, 0, True),
        ("openat", 0, 0o400000, False),
        ("openat", 0, O_CREAT | O_EXCL, False),
        ("creat", 0, 0o1101, True),
        ("stat", 0, 0, True),
        ("lstat", 0, 0, False),
        ("newfstatat", 0, 0, True),
        ("newfstatat", 0, 0x100, False),
        ("faccessat", 0, 0x100, True),  # that call has no flags: the register holds something else
        ("linkat", 0, 0, False),
        ("linkat", 0, 0x400, True),
        ("linkat", 1, 0x400, False),
        ("name_to_handle_at", 0, 0x400, True),
        ("readlink", 0, 0, False),
        ("unlinkat", 0, 0x200, False),
        ("rename", 1, 0, False),
        ("chdir", 0, 0, True),
        ("inotify_add_watch", 0, 0x02000000, False),
    ],
)
def test_whether_the_last_link_is_followed(name: str, index: int, flags: int, expected: bool) -> None:
    call = CALLS[name]
    assert follows(X86_64, call, call.paths[index], flags) is expected


def test_nofollow_is_another_bit_on_arm() -> None:
    call = CALLS["openat"]
    assert not follows(AARCH64, call, call.paths[0], 0o100000)
    assert follows(AARCH64, call, call.paths[0], 0o400000)


def test_flags_come_from_the_register_or_the_call_itself() -> None:
    registers = (1, 2, 0xFFFFFFFF00000241, 4, 5, 6)
    assert observed_syscalls.flags_of(CALLS["openat"], registers) == 0x241
    assert observed_syscalls.flags_of(CALLS["creat"], registers) == 1 | O_CREAT | O_TRUNC
    assert observed_syscalls.flags_of(CALLS["mkdir"], registers) == 0


def test_a_relative_path_starts_from_its_descriptor_or_the_working_directory() -> None:
    call = CALLS["linkat"]
    registers = (0xFFFFFF9C, 0, 7, 0, 0, 0)
    assert observed_syscalls.descriptor(call.paths[0], registers) == observed_syscalls.AT_FDCWD
    assert observed_syscalls.descriptor(call.paths[1], registers) == 7
    assert observed_syscalls.descriptor(CALLS["open"].paths[0], registers) == observed_syscalls.AT_FDCWD


def test_a_rename_removes_one_name_and_gives_another() -> None:
    for name in ("rename", "renameat", "renameat2"):
        assert [p.intent for p in CALLS[name].paths] == [Intent.REMOVE, Intent.RENAME]
    for name in ("link", "linkat"):
        assert [p.intent for p in CALLS[name].paths] == [Intent.PROBE, Intent.LINK]


def test_the_line_of_a_process_in_a_call() -> None:
    line = "257 0xffffff9c 0x7f3100 0x80000 0x0 0x0 0x0 0x7ffd10 0x7f3200\n"
    assert parse_syscall_line(line) == (257, (0xFFFFFF9C, 0x7F3100, 0x80000, 0, 0, 0))


@pytest.mark.parametrize("text", ["running\n", "-1 0x7ffd10 0x7f3200\n"])
def test_a_process_outside_any_call(text: str) -> None:
    assert parse_syscall_line(text) is None


@pytest.mark.parametrize(
    "text",
    ["", "stopped", "257", "257 0x1 0x2", "257 a b c d e f g h", "0x", "-2 0 0 0 0 0 0 0 0", "1 -1 0 0 0 0 0 0 0"],
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(UnreadableArgument):
        parse_syscall_line(text)
