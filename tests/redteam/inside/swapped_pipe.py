"""Opens a granted name for writing while another thread turns the path into that of a pipe that is only read."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading

NAME, PIPE = b"made.txt", b"lib/pipe"
TRIES = 1500
LIBC = ctypes.CDLL(None, use_errno=True)
path = ctypes.create_string_buffer(NAME)
going = True


def swap() -> None:
    while going:
        ctypes.memmove(path, PIPE, len(PIPE))
        ctypes.memmove(path, NAME, len(NAME))


thread = threading.Thread(target=swap)
thread.start()
opened = {"name": 0, "pipe": 0}
for _ in range(TRIES):
    fd = LIBC.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, 0o600)
    if fd >= 0:
        opened["pipe" if os.readlink(f"/proc/self/fd/{fd}").endswith("pipe") else "name"] += 1
        os.write(fd, b"from the task\n")
        os.close(fd)
going = False
thread.join()
sys.stdout.write(json.dumps(opened))
