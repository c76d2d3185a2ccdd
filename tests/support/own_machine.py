"""What a test session must leave as it found it: the machine. As a program it prints how that is now."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from pathlib import Path

_CLONE_NEWNS = 0x20000
_MS_REC, _MS_SLAVE = 0x4000, 0x80000

#: Places whose kind, mode, owner and device number stay.
_PLACES = (
    *("/dev", "/dev/fuse", "/dev/null", "/dev/zero", "/dev/tty", "/dev/ptmx", "/dev/shm"),
    *("/etc", "/tmp", "/var/tmp"),
)
#: Files whose text stays as well: who and what there is, and what the kernel allows.
_TEXTS = (
    *("/etc/hosts", "/etc/passwd", "/etc/group", "/etc/resolv.conf", "/etc/gitconfig"),
    *(f"/proc/sys/user/max_{kind}_namespaces" for kind in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")),
    *("/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
    *("/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/fs/pipe-max-size", "/proc/sys/vm/overcommit_memory"),
    *("/proc/sys/net/ipv4/ip_local_port_range", "/proc/sys/net/ipv4/ip_unprivileged_port_start"),
)


def keep_mounts_apart() -> None:
    """Gives root's process, and what it will start, mounts of its own: nobody else sees what the tests mount.

    What the machine mounts later still arrives. A container whose root may make no such namespace may not mount either.
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) == 0:
        assert libc.mount(b"none", b"/", None, _MS_REC | _MS_SLAVE, None) == 0, os.strerror(ctypes.get_errno())


def state() -> dict[str, str]:
    """Each path and how it is."""
    found = {}
    for path in (*_PLACES, *_TEXTS):
        try:
            about = os.stat(path)
            found[path] = f"{about.st_mode:o} {about.st_uid}:{about.st_gid} {about.st_rdev:x}"
            if path in _TEXTS:
                found[path] += f" {hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]}"
        except OSError as error:
            found[path] = error.strerror or "unreadable"
    return found


def changed(before: dict[str, str]) -> list[str]:
    """A line for each path that is not as it was."""
    return [f"{path}: {before[path]}, now {now}" for path, now in state().items() if now != before[path]]


if __name__ == "__main__":
    for name, found in state().items():
        sys.stdout.write(f"{name}: {found}\n")
