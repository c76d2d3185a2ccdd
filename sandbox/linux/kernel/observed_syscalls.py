"""The observed system calls, which name a file: where in registers the path is, and what they mean to do. Pure.

A caller that stands still, in a notification or in a request to the mask, is read with these tables: registers in,
meaning out. The caller's memory is read in `sandbox.linux.caller`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sandbox.contract.intents import WRITE_INTENTS, Intent
from sandbox.linux.kernel.syscall_numbers import AARCH64, ARCHITECTURES, X86_64, Architecture

__all__ = [
    "AARCH64",
    "ARCHITECTURES",
    "AT_EMPTY_PATH",
    "AT_FDCWD",
    "CALLS",
    "OPENS",
    "OPEN_WRITE_FLAGS",
    "X86_64",
    "Architecture",
    "Call",
    "PathArgument",
    "UnreadableArgument",
    "by_number",
    "descriptor",
    "flags_of",
    "follows",
    "mode_of",
    "named_descriptor",
    "open_intent",
    "parse_syscall_line",
]

AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW = 0x100
AT_SYMLINK_FOLLOW = 0x400
AT_EMPTY_PATH = 0x1000
IN_DONT_FOLLOW = 0x02000000
FAN_MARK_DONT_FOLLOW = 0x4

O_ACCMODE = 0o3
O_CREAT = 0o100
O_EXCL = 0o200
O_TRUNC = 0o1000
O_PATH = 0o10000000
O_TMPFILE_BIT = 0o20000000  # O_TMPFILE without the O_DIRECTORY it implies, whose bit differs between architectures

#: The flags with any of which an open may change something; the same bits on both architectures.
OPEN_WRITE_FLAGS = O_ACCMODE | O_CREAT | O_TRUNC | O_TMPFILE_BIT

_DESCRIPTOR = re.compile(r"/(?:proc/(?:self|thread-self|\d+)|dev)/fd/(\d+)")
REGISTERS = 6


class UnreadableArgument(ValueError):
    """Bytes or text that the kernel does not write."""


class PathArgument(NamedTuple):
    """A path among the arguments of a call.

    Attributes:
        path: the register holding the pointer to the path.
        intent: what the call means to do with this path; of the open family, what it means without write flags (see
            `open_intent`).
        dirfd: the register holding the descriptor of the directory it is relative to, -1 for the working directory.
        follows: whether a link in the last place is followed.
        toggle: the bit of the call's flags that inverts `follows`, 0 for none.
    """

    path: int
    intent: Intent
    dirfd: int = -1
    follows: bool = True
    toggle: int = 0


class Call(NamedTuple):
    """An observed system call.

    Attributes:
        paths: one or two; the first of two (rename, link) must exist, or the call changes nothing.
        flags: the register holding open or AT_ flags, -1 for none.
        empty: whether AT_EMPTY_PATH in the flags lets an empty path name the descriptor itself.
        null: whether a null path names the descriptor itself.
        size: the register holding the size of the `struct sockaddr` that holds the path, -1 for a plain path.
    """

    name: str
    paths: tuple[PathArgument, ...]
    flags: int = -1
    empty: bool = False
    null: bool = False
    size: int = -1


def _one(name: str, intent: Intent, *, follows: bool = True) -> Call:
    return Call(name, (PathArgument(0, intent, follows=follows),))


def _at(name: str, intent: Intent, *, flags: int = -1, follows: bool = True, toggle: int = AT_SYMLINK_NOFOLLOW) -> Call:
    """A call of the `*at` family: directory in register 0, path in 1, AT_ flags in `flags`."""
    return Call(
        name,
        (PathArgument(1, intent, 0, follows=follows, toggle=toggle if flags >= 0 else 0),),
        flags=flags,
        empty=flags >= 0,
    )


_ALL = (
    Call("open", (PathArgument(0, Intent.OPEN),), flags=1),
    Call("openat", (PathArgument(1, Intent.OPEN, 0),), flags=2),
    Call("creat", (PathArgument(0, Intent.OPEN),)),
    _one("mkdir", Intent.MKDIR, follows=False),
    _at("mkdirat", Intent.MKDIR, follows=False),
    _one("mknod", Intent.CREATE, follows=False),
    _at("mknodat", Intent.CREATE, follows=False),
    _one("unlink", Intent.REMOVE, follows=False),
    _at("unlinkat", Intent.REMOVE, follows=False),
    _one("rmdir", Intent.REMOVE, follows=False),
    # a rename removes its first name and makes its second: only the second may be missing
    *(
        Call(
            name,
            (
                PathArgument(old, Intent.REMOVE, old_dir, follows=False),
                PathArgument(new, Intent.RENAME, new_dir, follows=False),
            ),
        )
        for name, old_dir, old, new_dir, new in (
            ("rename", -1, 0, -1, 1),
            ("renameat", 0, 1, 2, 3),
            ("renameat2", 0, 1, 2, 3),
        )
    ),
    # link(2) only looks at its first name, and makes its second
    Call("link", (PathArgument(0, Intent.PROBE, follows=False), PathArgument(1, Intent.LINK, follows=False))),
    Call(
        "linkat",
        (
            PathArgument(1, Intent.PROBE, 0, follows=False, toggle=AT_SYMLINK_FOLLOW),
            PathArgument(3, Intent.LINK, 2, follows=False),
        ),
        flags=4,
        empty=True,
    ),
    Call("symlink", (PathArgument(1, Intent.CREATE, follows=False),)),
    Call("symlinkat", (PathArgument(2, Intent.CREATE, 1, follows=False),)),
    _one("truncate", Intent.WRITE),
    _one("chmod", Intent.ATTRIBUTES),
    _at("fchmodat", Intent.ATTRIBUTES),
    _at("fchmodat2", Intent.ATTRIBUTES, flags=3),
    _one("chown", Intent.ATTRIBUTES),
    _one("lchown", Intent.ATTRIBUTES, follows=False),
    _at("fchownat", Intent.ATTRIBUTES, flags=4),
    _one("setxattr", Intent.ATTRIBUTES),
    _one("lsetxattr", Intent.ATTRIBUTES, follows=False),
    _at("setxattrat", Intent.ATTRIBUTES, flags=2),
    _one("removexattr", Intent.ATTRIBUTES),
    _one("lremovexattr", Intent.ATTRIBUTES, follows=False),
    _at("removexattrat", Intent.ATTRIBUTES, flags=2),
    _at("file_setattr", Intent.ATTRIBUTES, flags=4),
    _one("utime", Intent.TIMES),
    _one("utimes", Intent.TIMES),
    Call("futimesat", (PathArgument(1, Intent.TIMES, 0),), null=True),
    _at("utimensat", Intent.TIMES, flags=3)._replace(null=True),
    _one("execve", Intent.EXEC),
    _at("execveat", Intent.EXEC, flags=4),
    _one("access", Intent.PROBE),
    _at("faccessat", Intent.PROBE),
    _at("faccessat2", Intent.PROBE, flags=3),
    _one("stat", Intent.PROBE),
    _one("lstat", Intent.PROBE, follows=False),
    _at("newfstatat", Intent.PROBE, flags=3),
    _at("statx", Intent.PROBE, flags=2)._replace(null=True),
    _one("statfs", Intent.PROBE),
    _one("readlink", Intent.PROBE, follows=False),
    _at("readlinkat", Intent.PROBE, follows=False)._replace(empty=False),
    _one("chdir", Intent.PROBE),
    _at("name_to_handle_at", Intent.PROBE, flags=4, follows=False, toggle=AT_SYMLINK_FOLLOW),
    _one("getxattr", Intent.PROBE),
    _one("lgetxattr", Intent.PROBE, follows=False),
    _at("getxattrat", Intent.PROBE, flags=2),
    _one("listxattr", Intent.PROBE),
    _one("llistxattr", Intent.PROBE, follows=False),
    _at("listxattrat", Intent.PROBE, flags=2),
    _at("file_getattr", Intent.PROBE, flags=4),
    # a null path stands for the descriptor; the third argument is a mask of 64 bits, one register
    Call("fanotify_mark", (PathArgument(4, Intent.PROBE, 3, toggle=FAN_MARK_DONT_FOLLOW),), flags=1, null=True),
    Call("inotify_add_watch", (PathArgument(1, Intent.PROBE, toggle=IN_DONT_FOLLOW),), flags=2),
)

#: Every observed call by name.
CALLS: dict[str, Call] = {call.name: call for call in _ALL}

#: The calls whose flags decide what they mean.
OPENS = frozenset({"open", "openat", "creat"})


#: The calls that change something whatever their flags.
WRITES = frozenset(c.name for c in _ALL if any(p.intent in WRITE_INTENTS for p in c.paths)) | {"creat"}

#: bind(2), which makes a socket's file where the address is a path.
BIND = Call("bind", (PathArgument(1, Intent.CREATE, follows=False),), size=2)

_BY_NUMBER = {
    arch.audit: {arch.numbers[c.name]: c for c in (*_ALL, BIND) if c.name in arch.numbers} for arch in (X86_64, AARCH64)
}


def by_number(arch: Architecture, number: int) -> Call | None:
    """The observed call of a number, `None` when it names no watched file."""
    return _BY_NUMBER[arch.audit].get(number)


def signed(register: int) -> int:
    """A register as the C `int` that the kernel takes it for (directory descriptors, AT_FDCWD)."""
    register &= 0xFFFFFFFF
    return register - 0x100000000 if register & 0x80000000 else register


def descriptor(argument: PathArgument, registers: tuple[int, ...]) -> int:
    """The directory descriptor a relative path starts from, `AT_FDCWD` for the working directory."""
    return AT_FDCWD if argument.dirfd < 0 else signed(registers[argument.dirfd])


def flags_of(call: Call, registers: tuple[int, ...]) -> int:
    """The flags of a call, 0 when it has none."""
    if call.name == "creat":
        return 0o1 | O_CREAT | O_TRUNC
    return registers[call.flags] & 0xFFFFFFFF if call.flags >= 0 else 0


def mode_of(call: Call, registers: tuple[int, ...]) -> int:
    """The mode that an open gives a file it makes."""
    return registers[1 if call.name == "creat" else call.flags + 1]


def follows(arch: Architecture, call: Call, argument: PathArgument, flags: int) -> bool:
    """Whether the kernel would follow a link in the last place of this path."""
    if call.name in OPENS:
        exclusive = flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL and not flags & O_PATH
        return not (flags & arch.nofollow or exclusive)
    return argument.follows != bool(flags & argument.toggle)


def may_write(call: Call, registers: tuple[int, ...]) -> bool:
    """Whether a call may change something, by what its registers say alone."""
    if call.name in WRITES or call is BIND:
        return True
    return call.name in OPENS and bool(flags_of(call, registers) & OPEN_WRITE_FLAGS)


def named_descriptor(text: str) -> int | None:
    """The descriptor that a path names by its link in `/proc`, -1 for an empty path, `None` for any other path.

    What is behind it may have no name (O_TMPFILE in open(2)).
    """
    match = _DESCRIPTOR.fullmatch(text)
    return int(match[1]) if match else None if text else -1


def open_intent(flags: int, *, exists: bool) -> Intent:
    """The intent of an open, given whether the host has the path.

    An exclusive create of a path that exists is a `CREATE`, too: a visible name answers it with EEXIST.
    """
    if flags & O_PATH:
        return (
            Intent.PROBE
        )  # O_PATH: nothing can be read through the descriptor, and the kernel ignores every other flag
    if flags & O_TMPFILE_BIT:
        return Intent.WRITE  # O_TMPFILE: a nameless file in an existing directory
    if flags & O_CREAT and (not exists or flags & O_EXCL):
        return Intent.CREATE
    return Intent.WRITE if flags & (O_ACCMODE | O_TRUNC) else Intent.OPEN


def parse_syscall_line(text: str) -> tuple[int, tuple[int, ...]] | None:
    """The call that a process stands in, from `/proc/<pid>/syscall`: its number and six registers.

    `None` stands for a process that runs ("running") or waits outside any call (number -1); proc(5).

    Raises:
        UnreadableArgument: the text has another shape.
    """
    fields = text.split()
    if fields == ["running"]:
        return None
    try:
        number, *words = (int(field, 0) for field in fields)
    except ValueError:
        raise UnreadableArgument(f"not a line of /proc/<pid>/syscall: {text[:80]!r}") from None
    if number == -1:
        return None
    if number < 0 or len(words) != REGISTERS + 2 or any(not 0 <= w < 1 << 64 for w in words):
        raise UnreadableArgument(f"not a line of /proc/<pid>/syscall: {text[:80]!r}")
    return number, tuple(words[:REGISTERS])
