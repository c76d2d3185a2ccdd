"""The one seccomp program of a task: what is refused, what stops for the observer, all else runs.

Nothing is hidden by it that a mount or a namespace does not hide already, except what only a filter
can refuse: typing into the terminal, io_uring (its operations never pass a filter), AF_UNIX and
vsock sockets (no network namespace holds either), and key rings.
"""

from __future__ import annotations

from typing import Literal

from sandbox.linux import bpf
from sandbox.linux.numbers import X32_BIT, Architecture
from sandbox.linux.syscalls import CALLS, OPEN_WRITE_FLAGS, OPENS, WRITES

Notify = Literal["none", "writes", "all"]

EPERM = 1
ENOSYS = 38
EAFNOSUPPORT = 97

AF_UNIX = 1
AF_VSOCK = 40
#: Set in SOCK_DGRAM and SOCK_RAW (which AF_UNIX takes for the same), not in SOCK_STREAM or SOCK_SEQPACKET.
DATAGRAM = 2
TIOCSTI = 0x5412
TIOCLINUX = 0x541C

#: CLONE_NEW* but for time, which only unshare takes: in clone that bit belongs to the exit signal.
CLONE_NAMESPACES = 0x7E020000
UNSHARE_NAMESPACES = CLONE_NAMESPACES | 0x80

#: Refused whatever the arguments.
REFUSED: dict[str, int] = {
    # a libc falls back where these do not exist: to clone, whose flags can be read here, and to plain calls
    "clone3": ENOSYS,
    "io_uring_setup": ENOSYS,
    "io_uring_enter": ENOSYS,
    "io_uring_register": ENOSYS,
    **dict.fromkeys(
        (
            "setns",
            "mount",
            "umount2",
            "pivot_root",
            # a task holds no capability for it; refused here too so that no later grant of one opens it
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


def conditions(*, refuse_unix_sockets: bool) -> dict[str, bpf.Block]:
    """Calls whose arguments decide; the same for every architecture."""
    eperm, allow = bpf.refuse(EPERM), bpf.ALLOW
    unsupported = bpf.refuse(EAFNOSUPPORT)
    if refuse_unix_sockets:
        sockets = [
            bpf.load_low(0),
            bpf.Instruction(bpf.JUMP_EQUAL, 1, 0, AF_UNIX),
            bpf.Instruction(bpf.JUMP_EQUAL, 1, 2, AF_VSOCK),
            *bpf.returns(eperm),
            *bpf.returns(unsupported),
            *bpf.returns(allow),
        ]
    else:
        sockets = bpf.if_one_of(0, (AF_VSOCK,), unsupported, allow)
    # one of a pair of datagram sockets can be turned to any listening address; a stream's peer stays what it is
    pairs = bpf.if_any_bit(1, DATAGRAM, eperm, allow) if refuse_unix_sockets else bpf.returns(allow)
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
        return {name: bpf.returns(bpf.NOTIFY) for name in CALLS}
    blocks = {name: bpf.returns(bpf.NOTIFY) for name in WRITES}
    for name in OPENS - WRITES:
        blocks[name] = bpf.if_any_bit(CALLS[name].flags, OPEN_WRITE_FLAGS, bpf.NOTIFY, bpf.ALLOW)
    return blocks


def program(arch: Architecture, *, notify: Notify, refuse_unix_sockets: bool) -> bytes:
    """The task's filter as `struct sock_filter[]` (8 bytes an instruction, little endian).

    Args:
        arch: the machine's own convention; any other (i386, x32, 32-bit arm) answers ENOSYS, as a
            kernel built without it would.
        notify: which calls stop for the observer; `writes` where the mask sees the reads.
        refuse_unix_sockets: where connecting cannot be mediated; a socketpair that nothing else can be reached
            through stays possible.
    """
    blocks = {
        **{name: bpf.returns(bpf.refuse(errno)) for name, errno in REFUSED.items()},
        **conditions(refuse_unix_sockets=refuse_unix_sockets),
        **notified(notify),
    }
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
