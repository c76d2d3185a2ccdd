"""Attacks process 1 of its own namespace, and prints how far it came."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import signal
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.insert(0, sys.argv[1])
from sandbox.linux.kernel.syscall_numbers import ARCHITECTURES

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = ARCHITECTURES[platform.machine()].numbers
told: dict[str, object] = {}


def attempt(label: str, what: Callable[[], object]) -> None:
    try:
        what()
        told[label] = "done"
    except OSError as error:
        told[label] = errno.errorcode.get(error.errno or 0, str(error.errno))


def raw(number: int, *arguments: int | bytes) -> int:
    result = int(
        LIBC.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    )
    if result < 0:
        raise OSError(ctypes.get_errno(), "call")
    return result


def walk() -> list[dict[str, str]]:
    found = []
    for entry in sorted(filter(str.isdecimal, os.listdir("/proc")), key=int):
        try:
            file = open(f"/proc/{entry}/status", encoding="utf-8")  # noqa: SIM115
        except FileNotFoundError:
            continue
        try:
            with file:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        except ProcessLookupError:
            continue
        found.append({key: status[key] for key in ("Name", "Pid", "CapBnd", "CapEff", "Seccomp", "NoNewPrivs")})
    return found


told["processes"] = walk()
for entry in ("mem", "environ", "maps", "auxv", "syscall", "stack"):
    attempt(f"read {entry}", lambda entry=entry: os.read(os.open(f"/proc/1/{entry}", os.O_RDONLY), 1))  # type: ignore[misc]
for entry in ("root", "cwd", "exe", "fd/3", "ns/mnt"):
    attempt(f"readlink {entry}", lambda entry=entry: os.readlink(f"/proc/1/{entry}"))  # type: ignore[misc]
attempt("list fd", lambda: os.listdir("/proc/1/fd"))
attempt("list root", lambda: os.listdir("/proc/1/root"))
attempt("write mem", lambda: os.open("/proc/1/mem", os.O_RDWR))
for label, request in (("attach", 16), ("seize", 0x4206)):
    attempt(f"ptrace {label}", lambda request=request: raw(NUMBERS["ptrace"], request, 1, 0, 0))  # type: ignore[misc]
first = os.pidfd_open(1)
for fd in range(12):
    attempt(f"pidfd_getfd {fd}", lambda fd=fd: raw(438, first, fd, 0))  # type: ignore[misc]
vector = ctypes.create_string_buffer(struct.pack("<QQ", 0x400000, 8))
attempt(
    "process_vm_readv", lambda: raw(310 if platform.machine() == "x86_64" else 270, 1, vector.raw, 1, vector.raw, 1, 0)
)

for number in range(1, signal.NSIG):
    try:
        os.kill(1, number)
        signal.pidfd_send_signal(first, number)
    except OSError:
        continue
os.kill(-1, 0)
# stopped or confused, it would not reap this
child = os.fork()
if child == 0:
    if os.fork() == 0:
        os.setsid()
        os._exit(3)
    os._exit(0)
os.waitpid(child, 0)
for _ in range(200):
    if len(walk()) == len(told["processes"]):  # type: ignore[arg-type]
        break
    os.sched_yield()
    signal.sigtimedwait([], 0.01)
told["after"] = walk()
sys.stdout.write(json.dumps(told))
sys.stdout.flush()
os._exit(42)
