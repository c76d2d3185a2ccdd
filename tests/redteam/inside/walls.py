"""Tries every way out by a call of its own, and prints the errno of each ("done" for one that worked)."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import signal
import socket
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.insert(0, sys.argv[1])
from sandbox.linux.kernel.syscall_numbers import ARCHITECTURES

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = ARCHITECTURES[platform.machine()].numbers
PROJECT = os.getcwd()
told: dict[str, object] = {}


def name(code: int) -> str:
    return errno.errorcode.get(code, str(code))


def call(label: str, system_call: str, *arguments: int | bytes) -> int:
    number = NUMBERS.get(system_call)
    if number is None:
        return -1
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = int(LIBC.syscall(ctypes.c_long(number), *converted))
    told[label] = "done" if result >= 0 else name(ctypes.get_errno())
    return result


def attempt(label: str, what: Callable[[], object]) -> None:
    try:
        what()
        told[label] = "done"
    except OSError as error:
        told[label] = name(error.errno or 0)


def namespaces() -> None:
    for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x80):
        call(f"unshare {bit:#x}", "unshare", bit)
        if bit != 0x80:
            pid = call(f"clone {bit:#x}", "clone", bit | signal.SIGCHLD, 0, 0, 0, 0)
            if pid == 0:
                os._exit(0)
    call("clone3", "clone3", struct.pack("<8Q", 0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0), 64)
    for kind in ("user", "mnt", "pid", "net"):
        fd = os.open(f"/proc/self/ns/{kind}", os.O_RDONLY)
        call(f"setns {kind}", "setns", fd, 0)
    call("setns pidfd", "setns", os.pidfd_open(os.getpid()), 0x20000)


def mounts() -> None:
    call("mount", "mount", b"none", b"/tmp", b"tmpfs", 0, 0)
    call("remount", "mount", b"none", b"/", b"", 32 | 4096, 0)
    call("umount2", "umount2", PROJECT.encode(), 2)
    call("umount2 /proc", "umount2", b"/proc/sys", 2)
    call("pivot_root", "pivot_root", b"/", b"/")
    call("chroot", "chroot", b"/tmp")
    call("open_tree", "open_tree", -100, b"/", 1)
    call("open_tree plain", "open_tree", -100, b"/", 0)
    call("open_tree_attr", "open_tree_attr", -100, b"/", 1, struct.pack("<4Q", 0, 1, 0, 0), 32)
    call("move_mount", "move_mount", -100, b"/", -100, b"/tmp", 0)
    call("fsopen", "fsopen", b"tmpfs", 0)
    call("fspick", "fspick", -100, b"/", 0)
    call("mount_setattr", "mount_setattr", -100, b"/", 0x8000, struct.pack("<4Q", 0, 1, 0, 0), 32)
    handle = ctypes.create_string_buffer(struct.pack("<Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    LIBC.name_to_handle_at(-100, b"/", handle, ctypes.byref(mount), 0)
    result = LIBC.open_by_handle_at(os.open("/", os.O_RDONLY), handle, os.O_RDONLY)
    told["open_by_handle_at"] = "done" if result >= 0 else name(ctypes.get_errno())


def kernel() -> None:
    for ring in ("io_uring_setup", "io_uring_enter", "io_uring_register"):
        call(ring, ring, 8, bytes(120), 0, 0, 0, 0)
    call("keyctl", "keyctl", 0, -3, 1)
    call("add_key", "add_key", b"user", b"k", b"v", 1, -3)
    call("request_key", "request_key", b"user", b"k", 0, -3)
    call("bpf", "bpf", 0, bytes(120), 120)
    call("perf_event_open", "perf_event_open", bytes(128), 0, -1, -1, 0)
    call("userfaultfd", "userfaultfd", 0)
    call("syslog", "syslog", 10, 0, 0)
    call("reboot", "reboot", 0xFEE1DEAD, 672274793, 0, 0)
    call("sethostname", "sethostname", b"x", 1)
    master, slave = os.openpty()
    for request in (0x5412, 0x541C, 0x5412 | 1 << 32, 0x541C | 0xFFFFFFFF << 32):
        call(f"ioctl {request:#x}", "ioctl", slave, request, b"x")
    os.close(master)
    attempt("/dev/fuse", lambda: os.open("/dev/fuse", os.O_RDWR))
    attempt("mknod", lambda: os.mknod("out/vda", 0o60600, os.makedev(254, 0)))
    attempt("/dev/tty", lambda: os.open("/dev/tty", os.O_RDWR))


def settings() -> None:
    for path in (
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/printk",
        "/proc/sys/vm/drop_caches",
        "/proc/sysrq-trigger",
        "/proc/irq/default_smp_affinity",
        "/sys/kernel/uevent_helper",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/fs/cgroup/cgroup.procs",
    ):
        if os.path.exists(path):

            def opened(path: str = path) -> None:
                os.close(os.open(path, os.O_WRONLY))

            attempt(f"write {path}", opened)


def foreign() -> None:
    """32-bit and x32 calls; a kernel without them kills or refuses, none may answer."""
    if platform.machine() != "x86_64":
        return
    result = int(LIBC.syscall(ctypes.c_long(0x40000000 | 39)))
    told["x32 getpid"] = "done" if result >= 0 else name(ctypes.get_errno())
    pid = os.fork()
    if pid == 0:
        # mov eax, 20 (getpid); int 0x80; ret
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        answer = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
        os._exit(0 if answer < 0 else 7)
    told["int 0x80"] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def sockets() -> None:
    for label, family in (("unix", socket.AF_UNIX), ("vsock", 40)):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
            attempt(f"socket {label} {kind.name}", lambda family=family, kind=kind: socket.socket(family, kind))  # type: ignore[misc]
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        attempt(f"pair {kind.name}", lambda kind=kind: socket.socketpair(socket.AF_UNIX, kind))  # type: ignore[misc]
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        one, other = socket.socketpair(socket.AF_UNIX, kind)
        one.send(b"x")
        told[f"talk {kind.name}"] = other.recv(1).decode()
        for target, what in zip(sys.argv[2:5], ("stream", "letters", "abstract"), strict=True):
            address = target.replace("@", "\0")
            attempt(f"connect {kind.name} {what}", lambda one=one, address=address: one.connect(address))  # type: ignore[misc]
            attempt(f"sendto {kind.name} {what}", lambda one=one, address=address: one.sendto(b"x", address))  # type: ignore[misc]
    attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3))
    attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
    told["interfaces"] = [entry[1] for entry in socket.if_nameindex()]
    port, datagrams = int(sys.argv[5]), int(sys.argv[6])
    for host in ("127.0.0.1", "192.0.2.1", "8.8.8.8", "169.254.169.254"):
        link = socket.socket()
        link.settimeout(2)
        attempt(f"tcp {host}", lambda link=link, host=host: link.connect((host, port)))  # type: ignore[misc]
        letter = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        attempt(f"udp {host}", lambda letter=letter, host=host: letter.sendto(b"x", (host, datagrams)))  # type: ignore[misc]


def descriptors() -> None:
    told["descriptors"] = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))
    told["session"] = os.getsid(0) == os.getpid() or os.getsid(0) > 1
    told["setuid"] = bool(os.statvfs("/usr/bin").f_flag & os.ST_NOSUID)
    with open("/proc/self/status", encoding="ascii") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    told["status"] = {key: status[key] for key in ("CapBnd", "CapEff", "CapPrm", "CapAmb", "Seccomp", "NoNewPrivs")}
    fcntl.fcntl(0, fcntl.F_GETFD)


descriptors()
namespaces()
mounts()
kernel()
settings()
foreign()
sockets()
sys.stdout.write(json.dumps(told))
