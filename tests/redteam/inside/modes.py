"""Sets set-ID bits by every call that sets a mode, and prints what each came to; what it makes stays."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import stat
import struct
import sys

sys.path.insert(0, sys.argv[1])
from sandbox.linux.kernel.syscall_numbers import ARCHITECTURES

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = ARCHITECTURES[platform.machine()].numbers
BITS = 0o6755
MAKES = os.O_CREAT | os.O_WRONLY
told: dict[str, str] = {}


def call(label: str, name: str, *arguments: int | bytes) -> int:
    if name not in NUMBERS:
        return -1
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = int(LIBC.syscall(ctypes.c_long(NUMBERS[name]), *converted))
    told[label] = "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
    return result


def made(path: str) -> bytes:
    os.close(os.open(path, MAKES, 0o644))
    return path.encode()


def changes(place: str) -> None:
    here = -100
    call("chmod", "chmod", made(f"{place}/chmod"), BITS)
    # the kernel passes over bits that no mode has (S_IALLUGO), and the upper half of the register
    call("beyond", "chmod", made(f"{place}/beyond"), BITS | 0o10000 | 1 << 40)
    call("fchmodat", "fchmodat", here, made(f"{place}/fchmodat"), BITS)
    call("fchmodat2", "fchmodat2", here, made(f"{place}/fchmodat2"), BITS, 0)
    directory = os.open(place, os.O_PATH)
    made(f"{place}/relative")
    call("relative", "fchmodat", directory, b"relative", BITS)
    for label, flags in (("fchmod", os.O_RDONLY), ("through", os.O_PATH), ("itself", os.O_PATH)):
        fd = os.open(made(f"{place}/{label}"), flags)
        if label == "fchmod":
            call(label, "fchmod", fd, BITS)
        elif label == "through":
            call(label, "chmod", f"/proc/self/fd/{fd}".encode(), BITS)
        else:
            call(label, "fchmodat2", fd, b"", BITS, 0x1000)
    os.symlink("linked", f"{place}/link")
    made(f"{place}/linked")
    call("link", "chmod", f"{place}/link".encode(), BITS)
    call("of the link", "fchmodat2", here, f"{place}/link".encode(), BITS, 0x100)
    os.mkdir(f"{place}/directory")
    call("directory", "chmod", f"{place}/directory".encode(), BITS)
    told["mode of the directory"] = oct(stat.S_IMODE(os.stat(f"{place}/directory").st_mode))
    told["mode of a file"] = oct(stat.S_IMODE(os.stat(f"{place}/chmod").st_mode))


def makes(place: str) -> None:
    here, how = -100, struct.pack("<QQQ", MAKES, BITS, 0)
    call("open", "open", f"{place}/open".encode(), MAKES, BITS)
    call("openat", "openat", here, f"{place}/openat".encode(), MAKES, BITS)
    call("openat2", "openat2", here, f"{place}/openat2".encode(), how, 24)
    call("creat", "creat", f"{place}/creat".encode(), BITS)
    call("mknod", "mknod", f"{place}/mknod".encode(), stat.S_IFREG | BITS, 0)
    call("mknodat", "mknodat", here, f"{place}/mknodat".encode(), stat.S_IFREG | BITS, 0)
    fd = call("nameless", "openat", here, place.encode(), os.O_TMPFILE | os.O_WRONLY, BITS)
    if fd >= 0:
        LIBC.linkat(here, f"/proc/self/fd/{fd}".encode(), here, f"{place}/nameless".encode(), 0x400)
    os.umask(0)
    call("mkdir", "mkdirat", here, f"{place}/made".encode(), BITS)
    # a mode that the call does not take counts for nothing
    call("no mode", "openat", here, made(f"{place}/plain"), os.O_RDONLY, BITS)


def capable(place: str) -> None:
    try:
        os.setxattr(made(f"{place}/capable"), "security.capability", struct.pack("<5I", 0x02000001, 1 << 21, 0, 0, 0))
        told["capability"] = "done"
    except OSError as error:
        told["capability"] = errno.errorcode[error.errno or 0]


place = sys.argv[2]
os.makedirs(place, exist_ok=True)
changes(place)
makes(place)
capable(place)
sys.stdout.write(json.dumps(told))
