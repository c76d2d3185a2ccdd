"""Tries to read and change what lies beside a granted name, by every way to a file there is; tells how far it came.

Arguments after the first: the name to read, the name to change, and `race` to do it from two threads, one of which
changes the path of the other's call all the time.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

secret, code = sys.argv[2], sys.argv[3]
libc = ctypes.CDLL(None, use_errno=True)
told: dict[str, object] = {}


def attempt(label: str, act: Callable[[], object]) -> None:
    try:
        told[label] = act()
    except OSError as error:
        told[label] = errno.errorcode.get(error.errno or 0, str(error))


def call(name: str, *arguments: object) -> int:
    answer: int = getattr(libc, name)(*arguments)
    if answer < 0:
        raise OSError(ctypes.get_errno(), name)
    return answer


def read(path: str, **more: int) -> str:
    fd = os.open(path, os.O_RDONLY, **more)
    try:
        return os.read(fd, 100).decode()
    finally:
        os.close(fd)


def write(path: str, flags: int = 0, **more: int) -> int:
    fd = os.open(path, os.O_WRONLY | flags, **more)
    try:
        return os.write(fd, b"changed\n")
    finally:
        os.close(fd)


def through(link: str, target: str, act: Callable[[str], object]) -> object:
    os.symlink(target, link)
    try:
        return act(link)
    finally:
        os.unlink(link)


def second_name(path: str) -> object:
    os.link(path, "second")
    try:
        return write("second")
    finally:
        os.unlink("second")


def exchange(one: str, other: str) -> int:
    return call("renameat2", -100, one.encode(), -100, other.encode(), 2)


def change_all() -> None:
    here = os.getcwd()
    directory = os.open(".", os.O_RDONLY)
    ways = {
        "plain": (secret, code),
        "absolute": (f"{here}/{secret}", f"{here}/{code}"),
        "round": (f"../{os.path.basename(here)}/./{secret}", f"lib/../{code}"),
        "cwd": (f"/proc/self/cwd/{secret}", f"/proc/self/cwd/{code}"),
        "descriptor": (f"/proc/self/fd/{directory}/{secret}", f"/proc/self/fd/{directory}/{code}"),
    }
    for label, (hidden, readable) in ways.items():
        attempt(f"read {label}", lambda hidden=hidden: read(hidden))  # type: ignore[misc]
        attempt(f"write {label}", lambda readable=readable: write(readable))  # type: ignore[misc]
        attempt(f"read link {label}", lambda hidden=hidden: through("link", hidden, read))  # type: ignore[misc]
        attempt(f"write link {label}", lambda readable=readable: through("link", readable, write))  # type: ignore[misc]
    attempt("read at", lambda: read(secret, dir_fd=directory))
    attempt("write at", lambda: write(code, dir_fd=directory))
    for path in (secret, code):
        attempt(f"create {path}", lambda path=path: write(path, os.O_CREAT))  # type: ignore[misc]
        attempt(f"cut {path}", lambda path=path: os.truncate(path, 0))  # type: ignore[misc]
        attempt(f"second name {path}", lambda path=path: second_name(path))  # type: ignore[misc]
        attempt(f"mode {path}", lambda path=path: os.chmod(path, 0o600))  # type: ignore[misc]
        attempt(f"take {path}", lambda path=path: os.rename(path, "out.txt"))  # type: ignore[misc]
        attempt(f"away {path}", lambda path=path: os.rename(path, "gone"))  # type: ignore[misc]
        attempt(f"swap {path}", lambda path=path: exchange("out.txt", path))  # type: ignore[misc]
        attempt(f"over {path}", lambda path=path: os.rename("out.txt", path))  # type: ignore[misc]
        attempt(f"remove {path}", lambda path=path: os.unlink(path))  # type: ignore[misc]
    attempt(f"look {secret}", lambda: os.stat(secret).st_size)
    attempt("out.txt", lambda: read("out.txt"))


def race() -> None:
    """Flip the path of a call between one that is let through and one that is not."""
    allowed, wanted = b"out.txt\0", secret.encode() + b"\0"
    path = ctypes.create_string_buffer(max(len(allowed), len(wanted)))
    over = False

    def flip() -> None:
        while not over:
            ctypes.memmove(path, allowed, len(allowed))
            ctypes.memmove(path, wanted, len(wanted))

    thread = threading.Thread(target=flip)
    thread.start()
    found = set()
    buffer = ctypes.create_string_buffer(64)
    try:
        for _ in range(3000):
            fd = libc.open(path, os.O_RDONLY)
            if fd >= 0:
                size = max(0, libc.read(fd, buffer, 64))
                found.add(buffer.raw[:size])
                os.close(fd)
    finally:
        over = True
        thread.join()
    told["raced"] = sorted(text.decode(errors="replace") for text in found)


with contextlib.suppress(FileNotFoundError):
    os.unlink("out.txt")
write("out.txt", os.O_CREAT)
if "race" in sys.argv[4:]:
    race()
else:
    change_all()
sys.stdout.write(json.dumps(told))
