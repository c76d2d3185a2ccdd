"""Makes very many names under a granted one, and files far larger than any disk; tells how far it came."""

from __future__ import annotations

import errno
import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

count = int(sys.argv[2])
told: dict[str, object] = {}


def attempt(label: str, act: Callable[[], object]) -> None:
    try:
        told[label] = act()
    except OSError as error:
        told[label] = errno.errorcode.get(error.errno or 0, str(error))


os.mkdir("dist")
for number in range(count):
    if number % 1000 == 0:
        os.mkdir(f"dist/{number // 1000}")
    os.close(os.open(f"dist/{number // 1000}/{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
told["listed"] = sum(len(os.listdir(f"dist/{name}")) for name in os.listdir("dist"))
fd = os.open("dist/large", os.O_RDWR | os.O_CREAT)
attempt("allocate 1 EiB", lambda: os.posix_fallocate(fd, 0, 1 << 60))
attempt("allocate past the largest", lambda: os.posix_fallocate(fd, 1, (1 << 63) - 1))
attempt("cut to 1 EiB", lambda: os.ftruncate(fd, 1 << 60))
attempt("write far out", lambda: os.pwrite(fd, b"x", (1 << 62) - 1))
os.ftruncate(fd, 0)
told["size"] = os.fstat(fd).st_size
told["written"] = os.write(fd, b"still here")
told["read"] = os.pread(fd, 100, 0).decode()
sys.stdout.write(json.dumps(told))
