"""Tries to plant what other programs execute in one directory, by every way round its name; prints what was done."""

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

LIBC = ctypes.CDLL(None, use_errno=True)
where, staged, seconds = sys.argv[2], sys.argv[3], float(sys.argv[4])
told: dict[str, str] = {}


def attempt(label: str, what: Callable[[], object]) -> None:
    try:
        what()
        told[label] = "done"
    except OSError as error:
        told[label] = errno.errorcode.get(error.errno or 0, str(error.errno))


def put(path: str, *, dir_fd: int | None = None) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o755, dir_fd=dir_fd))


def exchange(one: str, other: str) -> None:
    if LIBC.renameat2(-100, one.encode(), -100, other.encode(), 2):
        raise OSError(ctypes.get_errno(), "renameat2")


def link_unnamed(path: str) -> None:
    fd = os.open(where, os.O_TMPFILE | os.O_RDWR)
    os.link(f"/proc/self/fd/{fd}", path, follow_symlinks=True)


def tree(path: str, *names: str) -> str:
    os.makedirs(path, exist_ok=True)
    for name in names:
        (os.mkdir if name.endswith("/") else put)(f"{path}/{name}")
    return path


def race(call: Callable[[bytes], int], harmless: str, meant: str) -> None:
    """Change the words of a call while it waits."""
    first, second = (text.encode().ljust(128, b"\0") for text in (harmless, meant))
    words = ctypes.create_string_buffer(first, 128)
    end = time.monotonic() + seconds

    def flip() -> None:
        while time.monotonic() < end:
            words[:] = second  # type: ignore[call-overload]
            words[:] = first  # type: ignore[call-overload]

    flipping = threading.Thread(target=flip)
    flipping.start()
    while time.monotonic() < end:
        call(words)  # type: ignore[arg-type]
        with contextlib.suppress(OSError):
            (os.rmdir if os.path.isdir(harmless) else os.unlink)(harmless)
    flipping.join()


def touched(words: bytes) -> int:
    fd = int(LIBC.open(words, os.O_WRONLY | os.O_CREAT, 0o755))
    return int(LIBC.close(fd))


os.mkdir(f"{where}/deep")
git = f"{where}/deep/.git"
os.mkdir(git)
here = os.open(where, os.O_PATH | os.O_DIRECTORY)
os.symlink("deep/.git", f"{where}/through")
tree(f"{where}/other", "hooks/", "config", "real.vscode/", "tasks.json")
tree(f"{where}/linked", "index")

for name in (".Bashrc", "./.bashrc", "deep/../.ZSHRC", ".ba\u017fhrc", ".git\u200bmodules", ".mcp.json"):
    attempt(f"create {name}", lambda name=name: put(f"{where}/{name}"))  # type: ignore[misc]
attempt("create by descriptor", lambda: put(".profile", dir_fd=here))
attempt("device node", lambda: os.mknod(f"{where}/.profile", 0o100644))
attempt("fifo", lambda: os.mkfifo(f"{where}/.profile"))
for name in ("hooks", "HOOKS/", "hoo\u212as", "./hooks", "../.git//hooks"):
    attempt(f"mkdir {name}", lambda name=name: os.mkdir(f"{git}/{name}"))  # type: ignore[misc]
attempt("mkdir through a link", lambda: os.mkdir(f"{where}/through/hooks"))
attempt("config through a link", lambda: put(f"{where}/through/config"))
attempt("commondir", lambda: put(f"{git}/commondir"))
attempt("rename hooks into it", lambda: os.rename(f"{where}/other/hooks", f"{git}/hooks"))
attempt("rename config into it", lambda: os.rename(f"{where}/other/config", f"{git}/config.worktree"))
attempt("link config into it", lambda: os.link(f"{where}/other/config", f"{git}/config"))
attempt("symlink", lambda: os.symlink("../other/hooks", f"{git}/hooks"))
attempt("rename over an empty one", lambda: os.rename(f"{where}/other", git))
attempt("exchange", lambda: exchange(f"{where}/other", git))
attempt("exchange back", lambda: exchange(git, f"{where}/other"))
attempt("a file that points", lambda: put(f"{where}/linked/.git"))
attempt("a link that points", lambda: os.symlink("../other", f"{where}/linked/.git"))
attempt("rename into modules", lambda: os.rename(f"{where}/other", f"{tree(git + '/modules')}/sub"))
attempt("rename modules", lambda: os.rename(f"{where}/other", f"{git}/worktrees"))
attempt("rename to .vscode", lambda: os.rename(f"{where}/other", f"{where}/.VScode"))
attempt("rename commands", lambda: os.rename(f"{where}/other", f"{tree(where + '/.claude')}/commands"))
attempt("unnamed file", lambda: link_unnamed(f"{where}/.bashrc"))
if staged != "-":
    attempt("staged tree", lambda: tree(f"{staged}/.git", "hooks/"))
    attempt("staged file", lambda: put(f"{staged}/.bashrc"))
    tree(f"{staged}x", "hooks/")
    attempt("staged rename", lambda: os.rename(f"{staged}x", f"{where}/linked/.git"))
    attempt("staged inner rename", lambda: os.rename(f"{staged}x", f"{staged}/.claude"))
    os.symlink(git, f"{staged}l")
    attempt("mkdir through a staged link", lambda: os.mkdir(f"{staged}l/hooks"))
    attempt("moved into place", lambda: os.rename(staged, f"{where}/placed"))
    os.unlink(f"{staged}l")
    os.rmdir(f"{staged}x/hooks")
    os.rmdir(f"{staged}x")
if seconds:
    race(lambda words: int(LIBC.mkdir(words, 0o755)), f"{git}/hookz", f"{git}/hooks")
    race(touched, f"{where}/abashrc", f"{where}/.bashrc")
sys.stdout.write(json.dumps(told))
