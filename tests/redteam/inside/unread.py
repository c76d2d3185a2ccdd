"""Makes directories and opens files by paths that are hard to read from outside, and tells what each call came to.

Arguments after the first: the way, which is `spelled`, the name of a function here or a kind of thread, and the paths.
Of those each ends in the kind of call: `@r` reads, `@d` makes the directory, `@b` makes a socket.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import platform
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
libc.syscall.restype = ctypes.c_long

AT_FDCWD, CLONE_FS, CLONE_FILES = -100, 0x200, 0x400
OPENAT, MKDIRAT = (257, 258) if platform.machine() == "x86_64" else (56, 34)
MEMFD_SECRET = 447
PAGE = mmap.PAGESIZE


def mapped(descriptor: int, size: int = PAGE) -> int:
    found = libc.mmap(None, size, 3, 1, descriptor, 0)
    if found in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "mmap")
    return int(found)


def secret() -> int:
    """Memory that nobody but this process and the kernel reads."""
    descriptor = libc.syscall(MEMFD_SECRET, 0)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "memfd_secret")
    os.ftruncate(descriptor, PAGE)
    return mapped(descriptor)


def shortened() -> int:
    """Memory of a file that became shorter."""
    descriptor = os.memfd_create("short")
    os.ftruncate(descriptor, PAGE)
    address = mapped(descriptor)
    os.ftruncate(descriptor, 0)
    return address


def cut() -> int:
    """The last bytes of memory before a page of a file that became shorter; the text goes on there."""
    descriptor = os.memfd_create("cut")
    os.ftruncate(descriptor, 2 * PAGE)
    address = mapped(descriptor, 2 * PAGE)
    ctypes.memset(address, ord("x"), PAGE)
    os.ftruncate(descriptor, PAGE)
    return address + PAGE - 4


def kernels() -> int:
    """A page of the kernel's own in every process."""
    for line in Path("/proc/self/maps").read_text(encoding="ascii").splitlines():
        if line.endswith("[vvar]"):
            return int(line.split("-")[0], 16)
    raise OSError(errno.ENOSYS, "vvar")


def unmapped() -> int:
    """An address where nothing is."""
    return 4096


def null() -> int:
    """No address."""
    return 0


def endless() -> int:
    """A text that does not end where the kernel stops to read."""
    descriptor = os.memfd_create("long")
    os.ftruncate(descriptor, 2 * PAGE)
    address = mapped(descriptor, 2 * PAGE)
    ctypes.memset(address, ord("x"), 2 * PAGE)
    return address


def call(kind: str, address: int, directory: int = AT_FDCWD) -> str:
    where = ctypes.c_void_p(address)
    if kind == "d":
        answer = libc.syscall(MKDIRAT, directory, where, 0o755)
    elif kind == "b":
        with socket.socket(socket.AF_UNIX) as sock:
            answer = libc.bind(sock.fileno(), where, 110)
    else:
        answer = libc.syscall(OPENAT, directory, where, os.O_RDONLY | os.O_CLOEXEC)
    return "done" if answer >= 0 else errno.errorcode[ctypes.get_errno()]


def text(kind: str, path: str, directory: int = AT_FDCWD) -> str:
    buffer = ctypes.create_string_buffer(os.fsencode(path))
    return call(kind, ctypes.addressof(buffer), directory)


def placed(address: int, path: str) -> int:
    ctypes.memmove(address, os.fsencode(path) + b"\0", len(os.fsencode(path)) + 1)
    return address


def in_thread(act: Callable[[], None], share: int) -> None:
    """Do something in a thread that shares less than others do."""

    def run() -> None:
        if libc.unshare(share):
            raise OSError(ctypes.get_errno(), "unshare")
        act()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def own_directory(told: dict[str, str], paths: list[str]) -> None:
    """A thread with a working directory of its own, seen by itself and by the first thread."""
    stands, goes = threading.Event(), threading.Event()
    number: list[int] = []

    def act() -> None:
        os.chdir(paths[0])
        number.append(threading.get_native_id())
        stands.set()
        goes.wait()
        told["relative"] = text("d", paths[1])
        told["thread-self"] = text("d", f"/proc/thread-self/cwd/{paths[1]}")

    thread = threading.Thread(target=lambda: in_thread(act, CLONE_FS))
    thread.start()
    stands.wait()
    told["task"] = text("d", f"/proc/self/task/{number[0]}/cwd/{paths[1]}")
    told["beside"] = text("d", f"/proc/{number[0]}/cwd/{paths[1]}")
    goes.set()
    thread.join()


def own_descriptors(told: dict[str, str], paths: list[str]) -> None:
    """A thread whose descriptor is another directory's than the first thread's of that number."""
    harmless = os.open("lib", os.O_RDONLY)

    def act() -> None:
        there = os.open(paths[0], os.O_RDONLY)
        os.dup2(there, harmless)
        told["relative"] = text("d", paths[1], harmless)
        told["thread-self"] = text("d", f"/proc/thread-self/fd/{harmless}/{paths[1]}")

    in_thread(act, CLONE_FILES)


told: dict[str, str] = {}
way, rest = sys.argv[2], sys.argv[3:]
MEMORY = {one.__name__: one for one in (secret, shortened, cut, kernels, unmapped, null, endless)}
try:
    if way == "spelled":
        for one in rest:
            told[one] = text(one[-1], one[:-2])
    elif way == "directory":
        own_directory(told, rest)
    elif way == "descriptors":
        own_descriptors(told, rest)
    else:
        for one in rest:
            address = MEMORY[way]()
            if way == "secret":
                placed(address, one[:-2])
            told[one] = call(one[-1], address)
except OSError as error:
    told["impossible"] = errno.errorcode[error.errno or 0]
sys.stdout.write(json.dumps(told))
