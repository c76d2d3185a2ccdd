"""EFFECT: Landlock (landlock(7)): a process gives up every change of files but beneath the places it names.

A rule is about an inode and all beneath it, whatever mount leads there. So it holds where a mount does not: for a FIFO
or a device on a read-only mount, for a descriptor that is opened anew through `/proc/self/fd`, and for a mount that
arrives with its own attributes. Reads are not restricted. Numbers: `include/uapi/linux/landlock.h`.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from sandbox.linux.kernel import kernel_calls

if TYPE_CHECKING:
    from collections.abc import Iterable

_SYS_CREATE_RULESET = 444
_SYS_ADD_RULE = 445
_SYS_RESTRICT_SELF = 446
_VERSION = 1  # LANDLOCK_CREATE_RULESET_VERSION
_PATH_BENEATH = 1

WRITE_FILE = 1 << 1
REMOVE = 1 << 4 | 1 << 5
MAKE = sum(1 << bit for bit in range(6, 13))
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEVICE = 1 << 15

#: Rights to change what is in files and devices, and rights to change names.
CONTENTS = WRITE_FILE | TRUNCATE | IOCTL_DEVICE
NAMES = REMOVE | MAKE | REFER | TRUNCATE
EVERYTHING = CONTENTS | NAMES

#: The first version that lets a process rename between directories at all (Linux 5.19).
USABLE = 2
_TRUNCATES = 3  # Linux 6.2
_JUDGES_DEVICES = 5  # Linux 6.10
#: The first version that also confines signals and abstract sockets (Linux 6.12).
SCOPED = 6
_SCOPES = 1 | 2


class Ruleset(NamedTuple):
    """A set of rules.

    Attributes:
        version: the version of Landlock that it holds by, 0 where there is none.
        descriptor: the set's own, -1 where there is none.
    """

    version: int
    descriptor: int


def version() -> int:
    """The version of Landlock that this kernel has and lets this process use, 0 for none."""
    try:
        return kernel_calls.numbered_call("Landlock's version", _SYS_CREATE_RULESET, None, 0, _VERSION)
    except OSError:  # ENOSYS, EOPNOTSUPP: built without it, or not started; EPERM: a filter above refuses the call
        return 0


def handled(known: int) -> int:
    """The rights that a version of Landlock can withhold, of those that change something."""
    rights = WRITE_FILE | REMOVE | MAKE | REFER
    rights |= TRUNCATE if known >= _TRUNCATES else 0
    return rights | (IOCTL_DEVICE if known >= _JUDGES_DEVICES else 0)


def ruleset(known: int, rules: Iterable[tuple[int, int]]) -> Ruleset:
    """A set of rules that holds nobody yet.

    Args:
        known: the kernel's version, at least `USABLE`.
        rules: an O_PATH descriptor of each place, and the rights beneath it.
    """
    rights = handled(known)
    attributes = struct.pack("=QQQ", rights, 0, _SCOPES)[: 24 if known >= SCOPED else 8]
    made = kernel_calls.numbered_call("a Landlock ruleset", _SYS_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for place, allowed in rules:
            rule = struct.pack("=Qi", allowed & rights, place)
            kernel_calls.numbered_call("a Landlock rule", _SYS_ADD_RULE, made, _PATH_BENEATH, rule, 0)
    except BaseException:
        os.close(made)
        raise
    return Ruleset(known, made)


def restrict(rules: Ruleset) -> None:
    """Hold this thread, and all it starts, to a set of rules, for ever; sets no_new_privs."""
    if rules.version == 0:
        return
    kernel_calls.gain_nothing_by_executing()
    try:
        kernel_calls.numbered_call("Landlock", _SYS_RESTRICT_SELF, rules.descriptor, 0)
    finally:
        os.close(rules.descriptor)
