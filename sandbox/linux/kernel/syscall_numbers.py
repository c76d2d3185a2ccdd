"""System call numbers of both architectures, for every call that is named anywhere; `None` where one lacks it.

Sources: `arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h` of the kernel.
"""

from __future__ import annotations

from typing import NamedTuple

AUDIT_ARCH_X86_64 = 0xC000003E
AUDIT_ARCH_AARCH64 = 0xC00000B7

#: A bit in the number of every call of the x32 ABI, whose audit value is x86_64's own (seccomp(2)).
X32_BIT = 0x40000000

#: Each call's number on x86_64 and on aarch64.
TABLE: dict[str, tuple[int | None, int | None]] = {
    "open": (2, None),
    "openat": (257, 56),
    "creat": (85, None),
    "openat2": (437, 437),
    "memfd_secret": (447, 447),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rmdir": (84, None),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "truncate": (76, 45),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "execve": (59, 221),
    "execveat": (322, 281),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "stat": (4, None),
    "lstat": (6, None),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "chdir": (80, 49),
    "name_to_handle_at": (303, 264),
    "statfs": (137, 43),
    "getxattr": (191, 8),
    "lgetxattr": (192, 9),
    "listxattr": (194, 11),
    "llistxattr": (195, 12),
    "fanotify_mark": (301, 263),
    "inotify_add_watch": (254, 27),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "ioctl": (16, 29),
    "unshare": (272, 97),
    "clone": (56, 220),
    "setns": (308, 268),
    "clone3": (435, 435),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "socket": (41, 198),
    "open_by_handle_at": (304, 265),
    "syslog": (103, 116),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "acct": (163, 89),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18),
    "vhangup": (153, 58),
    "read": (0, 63),
    "readv": (19, 65),
    "preadv2": (327, 286),
    "splice": (275, 76),
    "tee": (276, 77),
    "sendfile": (40, 71),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    "epoll_wait": (232, None),
    "epoll_pwait": (281, 22),
    "epoll_pwait2": (441, 441),
    "write": (1, 64),
    "close": (3, 57),
    "connect": (42, 203),
    "ptrace": (101, 117),
    "socketpair": (53, 199),
    "fork": (57, None),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "vfork": (58, None),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "bind": (49, 200),
    "fchdir": (81, 50),
    "fchmodat2": (452, 452),
    "setxattrat": (463, 463),
    "getxattrat": (464, 464),
    "listxattrat": (465, 465),
    "removexattrat": (466, 466),
    "open_tree_attr": (467, 467),
    "file_getattr": (468, 468),
    "file_setattr": (469, 469),
}


class Architecture(NamedTuple):
    """A system call convention.

    Attributes:
        numbers: the number of each call by name, for the calls it has.
        names: the name of each call by number.
        directory, nofollow: O_DIRECTORY and O_NOFOLLOW, whose bits differ between architectures (`asm/fcntl.h`).
    """

    name: str
    audit: int
    numbers: dict[str, int]
    names: dict[int, str]
    directory: int
    nofollow: int


def _architecture(name: str, audit: int, column: int, directory: int, nofollow: int) -> Architecture:
    numbers = {call: row[column] for call, row in TABLE.items()}
    present = {call: number for call, number in numbers.items() if number is not None}
    return Architecture(name, audit, present, {n: c for c, n in present.items()}, directory, nofollow)


X86_64 = _architecture("x86_64", AUDIT_ARCH_X86_64, 0, 0o200000, 0o400000)
AARCH64 = _architecture("aarch64", AUDIT_ARCH_AARCH64, 1, 0o40000, 0o100000)

#: Conventions by the name that `uname -m` prints.
ARCHITECTURES: dict[str, Architecture] = {"x86_64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}
