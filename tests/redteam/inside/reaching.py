"""Reaches for the host from granted names: what lies beside them, links, special files; prints what it found."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LIBC = ctypes.CDLL(None, use_errno=True)
told: dict[str, object] = {}


def attempt(label: str, what: Callable[[], object]) -> None:
    try:
        told[label] = what()
    except OSError as error:
        told[label] = errno.errorcode.get(error.errno or 0, str(error.errno))


def rename(one: str, other: str, flags: int) -> str:
    if LIBC.renameat2(-100, one.encode(), -100, other.encode(), flags):
        raise OSError(ctypes.get_errno(), "renameat2")
    return "done"


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(path)


def opened(path: str, flags: int) -> int:
    fd = os.open(path, flags, 0o600)
    try:
        return os.fstat(fd).st_size
    finally:
        os.close(fd)


attempt("exchange with hidden", lambda: rename("f", "secret.txt", 2))
attempt("hidden moved away", lambda: rename("secret.txt", "f", 0))
attempt("hidden linked", lambda: os.link("secret.txt", "out2"))
attempt("size of what is made over hidden", lambda: opened("secret.txt", os.O_RDWR | os.O_CREAT | os.O_EXCL))
attempt("read of what is made over hidden", lambda: read("secret.txt"))
attempt("no replacing what is made over hidden", lambda: rename("f", "secret.txt", 1))
attempt("linked to staging", lambda: os.link("f", ".more"))
attempt("linked back", lambda: os.link(".more", "out2"))
attempt("directory made over a hidden file", lambda: os.mkdir("gen/file"))
attempt("directory made over a hidden one", lambda: os.mkdir("gen/dark"))
attempt("what is in it", lambda: os.listdir("gen/dark"))
attempt("removed again", lambda: os.rmdir("gen/dark"))
attempt("beside", lambda: sorted(os.listdir("dist/..")))
for name, target in (("up", "../../.."), ("there", "../conf/real.json"), ("home", sys.argv[2] + "/.ssh/id")):
    os.symlink(target, f"dist/{name}")
attempt("link up", lambda: sorted(os.listdir("dist/up")))
attempt("link to hidden", lambda: read("dist/there"))
attempt("link home", lambda: read("dist/home"))
attempt("staging area", lambda: os.listdir("../../.vx"))
attempt("staging areas", lambda: str(os.stat("../../.vx/tmp")))
attempt("pipe", lambda: opened("pipe", os.O_WRONLY | os.O_NONBLOCK))
attempt("device", lambda: opened("device", os.O_RDONLY))
attempt("socket", lambda: connect("socket"))
attempt("device made", lambda: os.mknod("out2x", 0o020666, os.makedev(1, 5)))
attempt("handle", lambda: LIBC.open_by_handle_at(3, None, 0))
attempt("wall by a pattern", lambda: os.mkdir("gen/nested"))
attempt("in a wall by a pattern", lambda: opened("gen/nested/x.py", os.O_WRONLY | os.O_CREAT))
sys.stdout.write(json.dumps(told))
