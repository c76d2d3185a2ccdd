"""Names files from pages of a served file that is cut short, dies in the middle of calls, and goes to extremes."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import mmap
import os
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
FAR = 1 << 40
told: dict[str, object] = {}

fd = os.open("dist", os.O_CREAT | os.O_RDWR)
os.ftruncate(fd, 1 << 20)
pages = mmap.mmap(fd, 1 << 20)
pages[8190:8206] = b"secret.txt".ljust(16, b"\0")
where = ctypes.addressof((ctypes.c_char * (1 << 20)).from_buffer(pages))


def call() -> None:
    while True:
        LIBC.posix_fadvise(fd, 0, 0, 4)
        LIBC.mkdir(ctypes.c_void_p(where + 8190), 0o755)
        LIBC.rmdir(ctypes.c_void_p(where + 8190))


def cut() -> None:
    while True:
        for size in (8192, 0, 1 << 20):
            os.ftruncate(fd, size)


for number in range(25):
    child = os.fork()
    if child == 0:
        for target in (call, call, cut):
            threading.Thread(target=target, daemon=True).start()
        time.sleep(30)
        os._exit(0)
    time.sleep(0.002 * number)
    os.kill(child, 9)
    os.waitpid(child, 0)
os.ftruncate(fd, FAR)
told["size"] = os.fstat(fd).st_size
told["written"] = os.pwrite(fd, b"x" * (8 << 20), FAR - (8 << 20))
told["data"] = os.lseek(fd, 0, os.SEEK_DATA) == FAR - (8 << 20)
told["read"] = len(os.pread(fd, 16 << 20, FAR - (8 << 20)))
for label, work in (
    ("past the end", lambda: os.pwrite(fd, b"x", (1 << 63) - 2)),
    ("longer than any", lambda: os.ftruncate(fd, (1 << 63) - 1)),
):
    try:
        told[label] = work()
    except OSError as error:
        told[label] = errno.errorcode[error.errno or 0]
os.ftruncate(fd, 0)
for number in range(600):
    with contextlib.suppress(FileNotFoundError):
        os.rename(f".{number}", "dist")
    os.close(os.open(f".{number + 1}", os.O_CREAT | os.O_WRONLY))
os.rename(".600", "dist")
told["beside"] = sorted(os.listdir("."))
sys.stdout.write(json.dumps(told))
