"""The seccomp filter of a task: calls that are refused and calls that stop for the observer; all others run.

A filter refuses here what neither a mount nor a namespace takes away: input typed into a terminal (TIOCSTI,
CVE-2017-5226; TIOCLINUX, CVE-2023-28100), io_uring, whose operations pass no filter, key rings, which are the user's
(keyrings(7)), and the families of sockets that no network namespace holds. AF_UNIX is one of those. It works where
calls stop for the warden, which makes the connections (`sandbox.linux.connect`). No call gives a file a set-user-ID or
set-group-ID bit: a program with one runs as whoever ran the task.
"""

from __future__ import annotations

from typing import Literal

from sandbox.linux.kernel import bpf
from sandbox.linux.kernel.observed_syscalls import BIND, CALLS, O_CREAT, O_TMPFILE_BIT, OPEN_WRITE_FLAGS, OPENS, WRITES
from sandbox.linux.kernel.set_id_bits import SET_ID
from sandbox.linux.kernel.syscall_numbers import X32_BIT, Architecture

Notify = Literal["none", "writes", "all"]
UnixSockets = Literal["refused", "mediated", "free"]

EPERM = 1
ENOSYS = 38
EAFNOSUPPORT = 97

AF_UNIX = 1
#: AF_INET, AF_INET6 and AF_NETLINK end at the network namespace, and for AF_PACKET a task lacks the capability. Any
#: other family (vsock, Bluetooth, the kernel's ciphers, ...) answers as in a kernel without it.
CONFINED = (2, 10, 16, 17)
#: A bit of SOCK_DGRAM and SOCK_RAW, which AF_UNIX takes for the same (`net/unix/af_unix.c`), and of no other kind.
DATAGRAM = 2
TIOCSTI = 0x5412
TIOCLINUX = 0x541C

#: Every CLONE_NEW* but CLONE_NEWTIME: in clone(2) that bit belongs to the exit signal (`linux/sched.h`, CSIGNAL).
CLONE_NAMESPACES = 0x7E020000
UNSHARE_NAMESPACES = CLONE_NAMESPACES | 0x80

#: The register in which each call that sets a mode has it. A mkdir passes over set-ID bits (fs/namei.c, vfs_mkdir).
CHANGES_MODE = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
_MAKES_WITH_MODE = {"creat": 1, "mknod": 1, "mknodat": 2}
# the registers of the flags and of the mode, which counts only where a file is made
_OPENS_WITH_MODE = {"open": (1, 2), "openat": (2, 3)}

#: Calls that are refused whatever their arguments, and the errno of each.
REFUSED: dict[str, int] = {
    # ENOSYS makes a libc fall back: to clone(2), whose flags a filter can read (CVE-2021-41133), and to plain calls
    "clone3": ENOSYS,
    # the flags and the mode of this one lie in memory, which no filter sees; before Linux 5.6 there was none
    "openat2": ENOSYS,
    "io_uring_setup": ENOSYS,
    "io_uring_enter": ENOSYS,
    "io_uring_register": ENOSYS,
    # a path in memory that nobody but the kernel reads is seen by no observer
    "memfd_secret": ENOSYS,
    **dict.fromkeys(
        (
            "setns",
            "mount",
            "umount2",
            "pivot_root",
            # a task holds no capability for chroot; the refusal stays where one is granted
            "chroot",
            "open_tree",
            "open_tree_attr",
            "move_mount",
            "fsopen",
            "fsconfig",
            "fsmount",
            "fspick",
            "mount_setattr",
            "open_by_handle_at",
            "keyctl",
            "add_key",
            "request_key",
            "bpf",
            "perf_event_open",
            "userfaultfd",
            "kexec_load",
            "kexec_file_load",
            "init_module",
            "finit_module",
            "delete_module",
            "syslog",
            "quotactl",
            "quotactl_fd",
            "swapon",
            "swapoff",
            "reboot",
            "acct",
            "sethostname",
            "setdomainname",
            "settimeofday",
            "clock_settime",
            "iopl",
            "ioperm",
            "vhangup",
            "nfsservctl",
            "lookup_dcookie",
        ),
        EPERM,
    ),
}


def conditions(unix_sockets: UnixSockets) -> dict[str, bpf.Block]:
    """Calls that their arguments decide about; the same for every architecture."""
    eperm, allow = bpf.refuse(EPERM), bpf.ALLOW
    if unix_sockets == "refused":
        of_unix, datagrams = bpf.returns(eperm), eperm
    elif unix_sockets == "mediated":
        of_unix, datagrams = bpf.if_any_bit(1, DATAGRAM, bpf.NOTIFY, allow), bpf.NOTIFY
    else:
        of_unix, datagrams = bpf.returns(allow), allow
    others = bpf.if_one_of(0, CONFINED, allow, bpf.refuse(EAFNOSUPPORT))
    sockets = [bpf.load_low(0), bpf.Instruction(bpf.JUMP_EQUAL, 0, len(of_unix), AF_UNIX), *of_unix, *others]
    # a datagram socket of a pair can be connected to any listening address; a stream socket keeps its peer (unix(7))
    pairs = bpf.if_any_bit(1, DATAGRAM, datagrams, allow)
    return {
        "ioctl": bpf.if_one_of(1, (TIOCSTI, TIOCLINUX), eperm, allow),
        "clone": bpf.if_any_bit(0, CLONE_NAMESPACES, eperm, allow),
        "unshare": bpf.if_any_bit(0, UNSHARE_NAMESPACES, eperm, allow),
        "socket": sockets,
        "socketpair": pairs,
    }


def notified(notify: Notify) -> dict[str, bpf.Block]:
    """Calls that stop for the observer."""
    if notify == "none":
        return {}
    if notify == "all":
        return {name: bpf.returns(bpf.NOTIFY) for name in (*CALLS, BIND.name)}
    blocks = {name: bpf.returns(bpf.NOTIFY) for name in (*WRITES, BIND.name)}
    for name in OPENS - WRITES:
        blocks[name] = bpf.if_any_bit(CALLS[name].flags, OPEN_WRITE_FLAGS, bpf.NOTIFY, bpf.ALLOW)
    return blocks


def mediated() -> dict[str, bpf.Block]:
    """Calls that the warden makes for the task."""
    return {
        "connect": bpf.returns(bpf.NOTIFY),
        # send(3) of a connected socket is this call without an address
        "sendto": bpf.if_any_set(4, bpf.NOTIFY, bpf.ALLOW),
        # the addresses of these lie in memory, which no filter sees
        "sendmsg": bpf.returns(bpf.NOTIFY),
        "sendmmsg": bpf.returns(bpf.NOTIFY),
    }


def set_id(blocks: dict[str, bpf.Block], *, answered: bool) -> dict[str, bpf.Block]:
    """The calls that would set a mode with a set-ID bit, and what they do without one.

    Args:
        blocks: the filter's other rules.
        answered: whether the warden answers: it sets a mode without the bit (`sandbox.linux.warden.mode_calls`).
    """
    eperm = bpf.returns(bpf.refuse(EPERM))
    change = bpf.returns(bpf.NOTIFY) if answered else eperm

    def other(name: str) -> bpf.Block:
        return blocks.get(name) or bpf.returns(bpf.ALLOW)

    return {
        **{name: bpf.if_any_bit_else(mode, SET_ID, change, other(name)) for name, mode in CHANGES_MODE.items()},
        **{name: bpf.if_any_bit_else(mode, SET_ID, eperm, other(name)) for name, mode in _MAKES_WITH_MODE.items()},
        **{
            name: bpf.if_any_bit_else(
                flags, O_CREAT | O_TMPFILE_BIT, bpf.if_any_bit_else(mode, SET_ID, eperm, other(name)), other(name)
            )
            for name, (flags, mode) in _OPENS_WITH_MODE.items()
        },
    }


def program(arch: Architecture, *, notify: Notify, unix_sockets: UnixSockets) -> bytes:
    """The task's filter as `struct sock_filter[]` (8 bytes an instruction, little endian).

    Args:
        arch: the machine's own convention; calls of any other (i386, x32, 32-bit arm) answer ENOSYS, as of a kernel
            built without it.
        notify: which calls stop for the observer; `writes` where the mask sees the reads.
        unix_sockets: `refused` where nobody makes connections for the task (a socketpair stays possible, through which
            nothing else is reached), `mediated` where the warden makes them, `free` for a task that may reach any
                socket.
    """
    blocks = {
        **conditions(unix_sockets),
        **notified(notify),
        **(mediated() if unix_sockets == "mediated" else {}),
        **{name: bpf.returns(bpf.refuse(errno)) for name, errno in REFUSED.items()},
    }
    blocks.update(set_id(blocks, answered=notify != "none"))
    return assembled(arch, blocks)


def assembled(arch: Architecture, blocks: dict[str, bpf.Block]) -> bytes:
    """A filter with a block for each named call that the architecture has; a call without a block runs."""
    entries = sorted((arch.numbers[name], block) for name, block in blocks.items() if name in arch.numbers)
    foreign = bpf.returns(bpf.refuse(ENOSYS))
    return bpf.assemble(
        [
            bpf.Instruction(bpf.LOAD, 0, 0, bpf.ARCH),
            bpf.Instruction(bpf.JUMP_EQUAL, 1, 0, arch.audit),
            *foreign,
            bpf.Instruction(bpf.LOAD, 0, 0, bpf.NUMBER),
            bpf.Instruction(bpf.JUMP_AT_LEAST, 0, 1, X32_BIT),
            *foreign,
            *bpf.select(entries, bpf.ALLOW),
        ]
    )
