"""Uses a /proc that shows processes outside; prints as JSON what became of each attempt: `done`, or an errno's name.

Arguments: the checkout, the number of a process outside, a socket in its directory, a text in its environment.
"""

from __future__ import annotations

import ctypes
import errno
import json
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
THEM = int(sys.argv[2])
SOCKET = sys.argv[3]
MARK = sys.argv[4]
# no process of this task's has a number so large
OWN = 64
SPACE = ctypes.create_string_buffer(8)
BOTH = struct.pack("QQ", ctypes.addressof(SPACE), 8)
told: dict[str, object] = {}


def attempt(label: str, what: Callable[[], object]) -> None:
    try:
        what()
    except OSError as error:
        told[label] = errno.errorcode[error.errno or 0]
    else:
        told[label] = "done"


def raw(name: str, *arguments: object) -> None:
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    if LIBC.syscall(ctypes.c_long(NUMBERS[name]), *converted) < 0:
        raise OSError(ctypes.get_errno(), name)


def checked(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), "call")


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(64)


def write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def signalled() -> None:
    fd = os.open(f"/proc/{THEM}", os.O_RDONLY | os.O_DIRECTORY)
    signal.pidfd_send_signal(fd, signal.SIGKILL)


def connected(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)


told["their command line"] = read(f"/proc/{THEM}/cmdline").decode()
for name in ("environ", "mem", "auxv", "maps", "smaps", "stack", "syscall", "io", "pagemap"):
    attempt(f"read {name}", lambda name=name: read(f"/proc/{THEM}/{name}"))  # type: ignore[misc]
for name in ("cwd", "root", "exe", "fd/0", "fd/1", "ns/user", "ns/mnt", "ns/net"):
    attempt(f"follow {name}", lambda name=name: os.readlink(f"/proc/{THEM}/{name}"))  # type: ignore[misc]
for name in ("cwd", "root/etc/hostname", "root/proc/self", "fd/0", f"task/{THEM}/root"):
    attempt(f"open {name}", lambda name=name: os.open(f"/proc/{THEM}/{name}", os.O_RDONLY))  # type: ignore[misc]
attempt("list their mappings", lambda: os.listdir(f"/proc/{THEM}/map_files"))
attempt("enter their namespace", lambda: os.open(f"/proc/{THEM}/ns/mnt", os.O_RDONLY))
told["signal them"] = "ESRCH"
if THEM > OWN:
    attempt("signal them", lambda: os.kill(THEM, signal.SIGKILL))
attempt("signal their directory", signalled)
attempt("trace them", lambda: checked(LIBC.ptrace(16, THEM, None, None)))
attempt("read their memory", lambda: checked(LIBC.process_vm_readv(THEM, BOTH, 1, BOTH, 1, 0)))
attempt("connect through their root", lambda: connected(f"/proc/{THEM}/root{SOCKET}"))
attempt("connect through their directory", lambda: connected(f"/proc/{THEM}/cwd/{os.path.basename(SOCKET)}"))

for path in (
    f"/proc/{THEM}/oom_score_adj",
    f"/proc/{THEM}/comm",
    f"/proc/{THEM}/clear_refs",
    f"/proc/{THEM}/coredump_filter",
    f"/proc/{THEM}/autogroup",
    f"/proc/{THEM}/timerslack_ns",
    "/proc/self/oom_score_adj",
    "/proc/self/mem",
    "/proc/self/uid_map",
    "/proc/self/setgroups",
    "/proc/sys/vm/swappiness",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/user/max_user_namespaces",
):
    if os.path.exists(path):
        attempt(f"write {path.replace(str(THEM), 'them')}", lambda path=path: write(path, "1"))  # type: ignore[misc]

for kind, bit in (("user", 0x10000000), ("mnt", 0x20000), ("pid", 0x20000000), ("net", 0x40000000)):
    attempt(f"unshare {kind}", lambda bit=bit: raw("unshare", bit))  # type: ignore[misc]
    attempt(f"clone {kind}", lambda bit=bit: raw("clone", bit | 17, 0, 0, 0, 0))  # type: ignore[misc]
attempt("clone3", lambda: raw("clone3", bytes(64), 64))
for place in ("/proc/irq", "/proc/keys", "/proc/sys", "/proc", os.path.dirname(os.getcwd())):
    attempt(f"unmount {os.path.basename(place)}", lambda place=place: raw("umount2", place.encode(), 2))  # type: ignore[misc]
attempt("mount /proc", lambda: raw("mount", b"proc", b"/proc", b"proc", 0, None))

# every process there is, whoever's: what may be read of one belongs to this task
own = os.readlink("/proc/self/ns/user")
read_of: list[str] = []
seen = 0
for entry in os.listdir("/proc"):
    if not entry.isdecimal():
        continue
    seen += 1
    try:
        with open(f"/proc/{entry}/environ", "rb") as file:
            if MARK.encode() in file.read():
                read_of.append(entry)
        if os.readlink(f"/proc/{entry}/ns/user") != own:
            read_of.append(entry)
    except OSError:
        continue
told["seen"] = seen
told["read of"] = read_of
sys.stdout.write(json.dumps(told))
