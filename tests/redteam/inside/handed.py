"""Takes descriptors from a server, and tries to change what they name; prints what came of each."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

told: dict[str, str] = {}


def attempt(label: str, what: Callable[[], object]) -> None:
    try:
        what()
        told[label] = "done"
    except OSError as error:
        told[label] = errno.errorcode.get(error.errno or 0, "")


with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[2])
    file, directory = socket.recv_fds(server, 9, 2)[1]
with open("out/own", "w", encoding="utf-8") as mine:
    mine.write("from the task\n")
attempt("a file again", lambda: os.open(f"/proc/self/fd/{file}", os.O_WRONLY))
attempt("a file emptied", lambda: os.truncate(f"/proc/self/fd/{file}", 0))
attempt("a new file", lambda: os.open("new", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=directory))
attempt("a file by name", lambda: os.open("given", os.O_WRONLY, dir_fd=directory))
attempt("a new directory", lambda: os.mkdir("made", dir_fd=directory))
attempt("a new link", lambda: os.symlink("x", "link", dir_fd=directory))
attempt("a new pipe", lambda: os.mkfifo("fifo", dir_fd=directory))
attempt("a link in", lambda: os.link("given", "out/given", src_dir_fd=directory))
attempt("a renaming", lambda: os.rename("given", "moved", src_dir_fd=directory, dst_dir_fd=directory))
attempt("a removal", lambda: os.unlink("moved" if told["a renaming"] == "done" else "given", dir_fd=directory))
attempt("a move out", lambda: os.rename("out/own", "own", dst_dir_fd=directory))
attempt("a link out", lambda: os.link("out/own", "own", dst_dir_fd=directory))
sys.stdout.write(json.dumps(told))
