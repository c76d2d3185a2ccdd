"""EFFECT: system calls that Python has no name for; each raises `OSError` that names its subject.

Calls numbered from 424 on have one number on every architecture (`include/uapi/asm-generic/unistd.h`, Linux 5.1).
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import os
import platform
import struct

_libc = ctypes.CDLL(None, use_errno=True)

NS_GET_USERNS = 0xB701  # ioctl_ns(2)
CLONE_NEW = {
    "user": 0x10000000,
    "net": 0x40000000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
    "cgroup": 0x02000000,
    "pid": 0x20000000,
    "mnt": 0x00020000,
}

AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW = 0x100
AT_NO_AUTOMOUNT = 0x800
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
OPEN_TREE_CLONE = 1
OPEN_TREE_CLOEXEC = os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH = 4
MOUNT_ATTR_RDONLY = 1
MOUNT_ATTR_NOSUID = 2
MOUNT_ATTR_NODEV = 4
MS_PRIVATE = 1 << 18
RESOLVE_NO_MAGICLINKS = 2
RESOLVE_NO_SYMLINKS = 4
RESOLVE_BENEATH = 8
FSCONFIG_SET_STRING = 1
FSCONFIG_CMD_CREATE = 6

_SYS_OPEN_TREE = 428
_SYS_MOVE_MOUNT = 429
_SYS_FSOPEN = 430
_SYS_FSCONFIG = 431
_SYS_FSMOUNT = 432
_SYS_OPENAT2 = 437
_SYS_MOUNT_SETATTR = 442
_SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_PTRACER = 0x59616D61
_PR_SET_PTRACER_ANY = (1 << 64) - 1
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_PR_CAP_AMBIENT_CLEAR_ALL = 4

_SECCOMP_SET_MODE_FILTER = 1
_FLAG_NEW_LISTENER = 8
# a signal would otherwise restart the notified call again and again, and Go preempts its threads with one
# (Linux 5.19; SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV in Documentation/userspace-api/seccomp_filter.rst)
_FLAG_WAIT_KILLABLE_RECV = 32

_CAPABILITY_VERSION_3 = 0x20080522


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)
    return result


def _syscall(what: str, number: int, *arguments: int | bytes | None) -> int:
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _checked(int(_libc.syscall(ctypes.c_long(number), *converted)), what)


def numbered_call(what: str, number: int, *arguments: int | bytes | None) -> int:
    """Make a call by its number; `what` names it in the error."""
    return _syscall(what, number, *arguments)


def setns(fd: int, kind: str) -> None:
    """Enter the namespace that `fd` names, which must be of `kind`."""
    _checked(int(_libc.setns(fd, CLONE_NEW[kind])), f"entering the {kind} namespace")


def unshare(kind: str) -> None:
    """Make a new namespace of `kind`; a new pid namespace holds the children alone (pid_namespaces(7))."""
    _checked(int(_libc.unshare(CLONE_NEW[kind])), f"making a {kind} namespace")


def enter_new_user_namespace(proc: int) -> None:
    """Make a user namespace below this one that maps this process's user and group alone, and enter it.

    Args:
        proc: a mount of `/proc` that may be written to.
    """
    user, group = os.getuid(), os.getgid()
    unshare("user")
    # an undumpable process's files in /proc belong to root (proc(5), /proc/pid)
    permit_attaching()
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        file = os.open(f"self/{name}", os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)


def owning_user_namespace(fd: int) -> int:
    """A descriptor of the user namespace that owns the namespace `fd` names (ioctl_ns(2))."""
    return fcntl.ioctl(fd, NS_GET_USERNS)


def open_beneath(directory: int, path: str, flags: int) -> int:
    """Open `path` below `directory`, following no link anywhere on the way (openat2(2)).

    An empty path and `.` mean the directory itself.
    """
    how = struct.pack("<QQQ", flags | os.O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH)
    return _syscall(path, _SYS_OPENAT2, directory, os.fsencode(path or "."), how, len(how))


def rename(source: int, old: str, target: int, new: str, flags: int) -> None:
    """Rename between two directories (renameat2(2)); `flags` are RENAME_* of linux/fs.h."""
    arguments = (source, os.fsencode(old), target, os.fsencode(new), ctypes.c_uint(flags))
    _checked(int(_libc.renameat2(*arguments)), old)


_listing = ctypes.create_string_buffer(1 << 14)


def read_names(directory: int, count: int) -> None:
    """Have the kernel read at least `count` names of a directory, or all of them (getdents64(2))."""
    while count > 0:
        size = _checked(int(_libc.getdents64(directory, _listing, len(_listing))), "reading a directory")
        if not size:
            return
        at = 0
        while at < size:
            (length,) = struct.unpack_from("<H", _listing, at + 16)
            at, count = at + length, count - 1


UTIME_NOW = (1 << 30) - 1
UTIME_OMIT = (1 << 30) - 2


def set_times(fd: int, access: tuple[int, int], modification: tuple[int, int]) -> None:
    """Set the times of what `fd` itself names (utimensat(2)).

    Args:
        fd: any descriptor, O_PATH included.
        access: seconds and nanoseconds; `UTIME_NOW` or `UTIME_OMIT` may stand for the nanoseconds.
        modification: likewise.
    """
    times = struct.pack("@4l", *access, *modification)
    _checked(int(_libc.utimensat(fd, b"", times, AT_EMPTY_PATH)), "setting times")


def allocate(fd: int, mode: int, offset: int, length: int) -> None:
    """Allocate or free a part of a file (fallocate(2)); offset and length in bytes."""
    arguments = (fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length))
    _checked(int(_libc.fallocate64(*arguments)), "allocating")


#: CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, LINUX_IMMUTABLE, SYS_RESOURCE, MKNOD, LEASE, SETFCAP
_FILE_CAPABILITIES = sum(1 << number for number in (0, 1, 2, 3, 4, 9, 24, 27, 28, 31))


def drop_file_capabilities() -> None:
    """Leave to this thread, and those it starts, the rights over files that its user has, even where that is root."""
    header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    sets = ctypes.create_string_buffer(24)
    _checked(int(_libc.capget(header, sets)), "reading capabilities")
    effective, *rest = struct.unpack("<6I", sets.raw)
    sets = ctypes.create_string_buffer(struct.pack("<6I", effective & ~_FILE_CAPABILITIES, *rest))
    _checked(int(_libc.capset(header, sets)), "dropping capabilities")


def clone_tree(fd: int, path: str = "") -> int:
    """A detached copy of the mounts at `path` below `fd`, with everything mounted under it (open_tree(2))."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | (0 if path else AT_EMPTY_PATH)
    return _syscall(path or "a copy of a mount", _SYS_OPEN_TREE, fd, os.fsencode(path), flags)


def clone_name(directory: int, name: str, *, recursive: bool) -> int:
    """A detached copy of the mount at one name of `directory`; at a link, of the link itself."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT
    flags |= AT_RECURSIVE if recursive else 0
    result = int(_libc.syscall(_SYS_OPEN_TREE, directory, os.fsencode(name), flags))
    return result if result >= 0 else _checked(result, name)


def set_mount_attributes(
    fd: int, path: str, *, add: int = 0, remove: int = 0, propagation: int = 0, recursive: bool = True
) -> None:
    """Change attributes of a mount, and of all mounts below it unless told otherwise (mount_setattr(2), Linux 5.12)."""
    attributes = struct.pack("<QQQQ", add, remove, propagation, 0)
    flags = (AT_RECURSIVE if recursive else 0) | (0 if path else AT_EMPTY_PATH)
    _syscall(path or "a mount", _SYS_MOUNT_SETATTR, fd, os.fsencode(path), flags, attributes, len(attributes))


def attach_mount_in(tree: int, directory: int, name: str) -> None:
    """Attach the detached mount `tree` at one name of `directory`; a link there is not followed (move_mount(2))."""
    result = int(_libc.syscall(_SYS_MOVE_MOUNT, tree, b"", directory, os.fsencode(name), MOVE_MOUNT_F_EMPTY_PATH))
    _checked(result, name)


def attach_mount_at(tree: int, path: str) -> None:
    """Attach the detached mount `tree` at the absolute `path`."""
    _syscall(path, _SYS_MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(path), MOVE_MOUNT_F_EMPTY_PATH)


def new_mount(kind: str, options: dict[str, str]) -> int:
    """A detached mount of a new file system of `kind`: nosuid, nodev (fsopen(2), fsmount(2))."""
    context = _syscall(f"a {kind} file system", _SYS_FSOPEN, kind.encode(), 1)
    try:
        for key, value in options.items():
            _syscall(
                f"{kind} option {key}", _SYS_FSCONFIG, context, FSCONFIG_SET_STRING, key.encode(), value.encode(), 0
            )
        _syscall(f"a {kind} file system", _SYS_FSCONFIG, context, FSCONFIG_CMD_CREATE, None, None, 0)
        return _syscall(f"a {kind} mount", _SYS_FSMOUNT, context, 1, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
    finally:
        os.close(context)


def mount_proc() -> None:
    """Mount a fresh `/proc` of the caller's pid namespace: nosuid, nodev, noexec."""
    _checked(int(_libc.mount(b"proc", b"/proc", b"proc", 2 | 4 | 8, None)), "mounting /proc")


def become_root(path: str) -> None:
    """Make the mount at `path` the root, and take the old root away with everything on it (pivot_root(2))."""
    os.chdir(path)
    _checked(int(_libc.pivot_root(b".", b".")), f"making {path} the root")
    detach(".")
    os.chdir("/")


def detach(path: str) -> None:
    """Take a mount away lazily, whatever still uses it (umount2(2), MNT_DETACH)."""
    _checked(int(_libc.umount2(os.fsencode(path), 2)), path)


def become_subreaper() -> None:
    """Have orphans below this process become its own children (PR_SET_CHILD_SUBREAPER in prctl(2))."""
    _checked(int(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)), "becoming a subreaper")


def die_with_parent(signal: int) -> None:
    """Have `signal` sent to this process when the thread that forked it ends (PR_SET_PDEATHSIG in prctl(2))."""
    _checked(int(_libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0)), "setting the parent-death signal")


def forbid_attaching() -> None:
    """Keep processes without privilege from reading and tracing this one until it executes (PR_SET_DUMPABLE)."""
    _checked(int(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)), "becoming undumpable")


def permit_attaching() -> None:
    """Let processes of the same user read and trace this one, as they may any ordinary program."""
    _checked(int(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)), "becoming dumpable")


def permit_tracing() -> None:
    """Let processes of the same user trace this one where Yama asks for a relation, too (ptrace(2), ptrace_scope 1)."""
    permit_attaching()
    # EINVAL comes from a kernel without Yama, which asks for no relation
    _libc.prctl(_PR_SET_PTRACER, ctypes.c_ulong(_PR_SET_PTRACER_ANY), 0, 0, 0)


#: CAP_SYS_PTRACE, which Yama and undumpable processes ask of a tracer.
TRACING = 19


@functools.cache
def last_capability() -> int:
    """The number of the highest capability this kernel knows (capabilities(7))."""
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as file:
        return int(file.read())


def drop_every_capability(*, but: int | None = None) -> None:
    """Empty all five sets of capabilities, `but` for one that is to outlive an execve."""
    for capability in range(last_capability() + 1):
        if capability != but:
            _checked(int(_libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)), "dropping a capability")
    pass_on_no_capability()
    header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    kept = 0 if but is None else 1 << but
    sets = struct.pack("<6I", kept, kept, kept, 0, 0, 0)
    _checked(int(_libc.capset(header, sets)), "dropping capabilities")
    if but is not None:
        _checked(int(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, but, 0, 0)), "keeping a capability")


def pass_on_no_capability() -> None:
    """Keep programs this process executes from getting its capabilities, unless it is root's."""
    _checked(int(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)), "clearing ambient capabilities")


def gain_nothing_by_executing() -> None:
    """Keep this thread and all it starts from gaining a privilege by executing (PR_SET_NO_NEW_PRIVS in prctl(2))."""
    _checked(int(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)), "setting no_new_privs")


def give_up_privileges() -> None:
    """Take from this process every right its user's other programs lack, and any gained by executing (prctl(2))."""
    gain_nothing_by_executing()
    header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    _checked(int(_libc.capset(header, bytes(24))), "dropping capabilities")


def install_filter(program: bytes, *, listener: bool) -> int:
    """Install a filter for this thread and all it starts; sets no_new_privs (seccomp(2)).

    Args:
        program: classic BPF instructions of eight bytes each.
        listener: whether the filter uses `SECCOMP_RET_USER_NOTIF`.

    Returns:
        The listener's descriptor, or -1 without one.
    """
    gain_nothing_by_executing()
    buffer = ctypes.create_string_buffer(program, len(program))
    filter_program = _Program(len(program) // 8, ctypes.addressof(buffer))
    flags = _FLAG_NEW_LISTENER | _FLAG_WAIT_KILLABLE_RECV if listener else 0
    number = _SYS_SECCOMP[platform.machine()]
    result = _libc.syscall(
        ctypes.c_long(number),
        ctypes.c_long(_SECCOMP_SET_MODE_FILTER),
        ctypes.c_long(flags),
        ctypes.byref(filter_program),
    )
    _checked(int(result), "installing the system call filter")
    return int(result) if listener else -1
