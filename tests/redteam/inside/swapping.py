"""Tries to have what stands beside a granted name read or changed by whoever makes the task's calls for it.

Arguments after the first: the name to read, the name to change, and for how many seconds each race goes on. `out.txt`
and `dist` are granted, and one is made of them before.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

secret, code, seconds = sys.argv[2].encode(), sys.argv[3].encode(), float(sys.argv[4])
libc = ctypes.CDLL(None, use_errno=True)
told: dict[str, object] = {}
AT, EXCHANGE, EMPTY_PATH, FOLLOW = -100, 2, 0x1000, 0x400


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


def flipped(one: bytes, other: bytes, act: Callable[[ctypes.Array[ctypes.c_char]], object]) -> int:
    """Makes a call over and over while another thread flips its path; how often it came to something."""
    path, over, came = ctypes.create_string_buffer(64), False, 0

    def flip() -> None:
        while not over:
            ctypes.memmove(path, one + b"\0", len(one) + 1)
            ctypes.memmove(path, other + b"\0", len(other) + 1)

    thread = threading.Thread(target=flip)
    thread.start()
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                act(path)
                came += 1
    finally:
        over = True
        thread.join()
    return came


def overwrite(path: object) -> None:
    fd = call("open", path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, b"changed\n")
    os.close(fd)


def read(path: object) -> None:
    fd = call("open", path, os.O_RDONLY)
    found = os.read(fd, 64)
    os.close(fd)
    if found not in (b"changed\n", b""):
        told["read by a race"] = found.decode(errors="replace")


def move(path: object) -> None:
    with contextlib.suppress(OSError):
        overwrite(b"out.txt")
    call("renameat2", AT, b"out.txt", AT, path, 0)


def races() -> None:
    told["raced"] = [
        flipped(b"out.txt", code, overwrite),
        flipped(b"out.txt", secret, read),
        flipped(b"out.txt", code, lambda path: call("unlink", path)),
        flipped(b"dist/moved", code, move),
        flipped(b"dist/moved", b"lib/cart.py", move),
        flipped(b"dist/moved", code, lambda path: call("link", path, b"dist/second")),
    ]


def swapped_directory() -> None:
    """A directory below a granted name and a link out of it change places all the time."""
    os.makedirs("dist/in", exist_ok=True)
    for number, target in enumerate(("../lib", "..", "../conf")):
        os.symlink(target, f"dist/link{number}")
        over = threading.Event()

        def swap(number: int = number, over: threading.Event = over) -> None:
            while not over.is_set():
                with contextlib.suppress(OSError):
                    call("renameat2", AT, b"dist/in", AT, f"dist/link{number}".encode(), EXCHANGE)

        thread = threading.Thread(target=swap)
        thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for name in (b"cart.py", code, b"real.json", b"planted"):
                for act in (
                    lambda: overwrite(b"out.txt"),
                    lambda name=name: call("renameat2", AT, b"out.txt", AT, b"dist/in/" + name, 0),
                    lambda name=name: call("linkat", AT, b"dist/in/" + name, AT, b"out.txt", 0),
                    lambda name=name: call("renameat2", AT, b"dist/in/" + name, AT, b"out.txt", EXCHANGE),
                ):
                    with contextlib.suppress(OSError):
                        act()
        over.set()
        thread.join()


def handed() -> None:
    """What was handed in leads to the file and to nothing around it."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink("out.txt")
    fd = os.open("out.txt", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    nameless = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o644)
    for label, held in (("made", fd), ("nameless", nameless)):
        attempt(f"{label} above", lambda held=held: os.open("..", os.O_RDONLY, dir_fd=held))  # type: ignore[misc]
        attempt(f"{label} beside", lambda held=held: os.open(f"/proc/self/fd/{held}/../{code.decode()}", os.O_RDWR))  # type: ignore[misc]
        attempt(f"{label} link", lambda held=held: call("linkat", held, b"", AT, b"lib/second", EMPTY_PATH))  # type: ignore[misc]
        attempt(f"{label} moved", lambda held=held: call("renameat2", held, b"x", AT, b"out.txt", 0))  # type: ignore[misc]


def taken_for_a_name() -> None:
    """A file that is only read becomes no granted name."""
    held = os.open(code, os.O_RDONLY)
    link = f"/proc/self/fd/{held}".encode()
    with contextlib.suppress(FileNotFoundError):
        os.unlink("out.txt")
    attempt("link of a name", lambda: os.link(code, b"out.txt"))
    attempt("link of a descriptor", lambda: call("linkat", AT, link, AT, b"out.txt", FOLLOW))
    attempt("link of nothing but a descriptor", lambda: call("linkat", held, b"", AT, b"out.txt", EMPTY_PATH))
    attempt("rename of a name", lambda: os.rename(code, b"out.txt"))
    attempt("exchange", lambda: call("renameat2", AT, code, AT, b"dist", EXCHANGE))
    attempt("exchange with a directory", lambda: call("renameat2", AT, b"lib", AT, b"dist", EXCHANGE))
    attempt("over a directory", lambda: os.rename("dist", "lib"))
    attempt("mounted over", lambda: os.rmdir("out"))


handed()
taken_for_a_name()
os.makedirs("dist", exist_ok=True)
races()
swapped_directory()
sys.stdout.write(json.dumps(told))
