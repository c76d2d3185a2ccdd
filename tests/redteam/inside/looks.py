"""Looks at what is hidden in every way there is; prints what it could read (nothing) by name."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import signal
import struct
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.insert(0, sys.argv[1])
from sandbox.linux.kernel.syscall_numbers import ARCHITECTURES

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = ARCHITECTURES[platform.machine()].numbers
HERE = os.getcwd()
told: dict[str, str] = {}


def raw(number: int, *arguments: object) -> int:
    result = int(
        LIBC.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    )
    if result < 0:
        raise OSError(ctypes.get_errno(), "call")
    return result


def attempt(label: str, what: Callable[[], object]) -> None:
    for _ in range(500):
        try:
            what()
            told[label] = "done"
        except OSError as error:
            told[label] = errno.errorcode.get(error.errno or 0, str(error.errno))
        # before the warden has taken a notified call, a handler without SA_RESTART ends it
        if told[label] != "EINTR":
            return


def read(path: str, directory: int | None = None) -> None:
    os.close(os.open(path, os.O_RDONLY, dir_fd=directory))


def spellings() -> None:
    lib = os.open("lib", os.O_RDONLY)
    attempt("spelled dirfd", lambda: read("../secret.txt", lib))
    attempt("spelled cwd link", lambda: read("/proc/self/cwd/secret.txt"))
    attempt("spelled root link", lambda: read(f"/proc/self/root{HERE}/secret.txt"))
    attempt("spelled descriptor", lambda: read(f"/proc/self/fd/{lib}/../secret.txt"))
    attempt("spelled slashes", lambda: read(f"//{HERE}///./secret.txt"))
    os.symlink(f"{HERE}/secret.txt", "out/link")
    attempt("spelled link", lambda: read("out/link"))
    attempt("hard link", lambda: os.link("secret.txt", "out/hard"))
    attempt("exchange", lambda: raw(NUMBERS["renameat2"], -100, b"secret.txt", -100, b"out/old", 2))
    attempt("rename of a grant", lambda: os.rename("lib", "lib2"))
    attempt("rename of a write grant", lambda: os.rename("out", "out/x"))
    attempt("rename of the way", lambda: os.rename(HERE, HERE + "2"))
    attempt("removal of a write grant", lambda: os.rmdir("out"))
    for resolve in (0, 1, 2, 4, 8, 0x10, 0x20):
        how = struct.pack("<QQQ", 0, 0, resolve)
        attempt(f"openat2 {resolve}", lambda how=how: raw(437, -100, b"secret.txt", how, 24))  # type: ignore[misc]
    attempt("statx", lambda: raw(NUMBERS["statx"], -100, b"secret.txt", 0, 0xFFF, bytes(256)))
    attempt("inotify", lambda: raw(NUMBERS["inotify_add_watch"], LIBC.inotify_init(), b"secret.txt", 1))
    attempt("execveat", lambda: raw(NUMBERS["execveat"], -100, b"secret.txt", 0, 0, 0))
    attempt("chdir", lambda: os.chdir("conf"))
    attempt("truncate", lambda: os.truncate("secret.txt", 0))
    attempt(
        "handle",
        lambda: raw(
            NUMBERS["name_to_handle_at"], -100, b"secret.txt", struct.pack("<Ii", 128, 0) + bytes(128), bytes(8), 0
        ),
    )
    os.close(lib)


def callers() -> None:
    """The same look from callers that are hard to read."""
    for label, prepare in (
        ("undumpable", lambda: LIBC.prctl(4, 0, 0, 0, 0)),
        ("another session", os.setsid),
        ("another directory", lambda: os.chdir("lib")),
    ):
        pid = os.fork()
        if pid == 0:
            prepare()
            try:
                read(f"{HERE}/from {label}")
            except OSError:
                os._exit(0)
            os._exit(7)
        told[label] = "done" if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) else "ENOENT"


def threads() -> None:
    def look(number: int) -> None:
        for turn in range(20):
            attempt(f"thread {number}", lambda turn=turn: read(f"thread {number} {turn}"))  # type: ignore[misc]

    running = [threading.Thread(target=look, args=(number,)) for number in range(32)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def race() -> None:
    """Another thread writes the path anew while the look waits."""
    buffer = ctypes.create_string_buffer(b"secret.txt\0", 64)
    stop = False

    def rewrite() -> None:
        while not stop:
            ctypes.memmove(buffer, b"lib/cart.py\0", 12)
            ctypes.memmove(buffer, b"secret.txt\0\0", 12)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        for _ in range(150):
            fd = int(LIBC.open(buffer, os.O_RDONLY))
            if fd >= 0:
                if os.read(fd, 64) != b"cart\n":
                    told["race"] = "done"
                os.close(fd)
            fd = int(LIBC.open(buffer, os.O_WRONLY))
            if fd >= 0:
                told["race for writing"] = "done"
    finally:
        stop = True
        writer.join()


def storm() -> None:
    """A signal every millisecond, as Go's scheduler sends them."""
    signal.signal(signal.SIGURG, lambda *_: None)
    LIBC.ualarm.argtypes = [ctypes.c_uint, ctypes.c_uint]
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    for turn in range(60):
        attempt("storm", lambda turn=turn: read(f"storm {turn}"))  # type: ignore[misc]
        attempt("storm making", lambda turn=turn: os.mkdir(f"lib/storm {turn}"))  # type: ignore[misc]
    signal.setitimer(signal.ITIMER_REAL, 0)


def killed() -> None:
    for _ in range(30):
        pid = os.fork()
        if pid == 0:
            while True:
                for turn in range(1000):
                    try:
                        read(f"killed {turn % 50}")
                    except OSError:
                        continue
        os.sched_yield()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def odd() -> None:
    for label, path in (("long", b"n" * 255), ("too long", b"n" * 256), ("newline", b"a\nb"), ("bytes", b"\xff\xfe")):
        attempt(f"odd {label}", lambda path=path: os.close(os.open(path, os.O_RDONLY)))  # type: ignore[misc]


spellings()
callers()
threads()
race()
storm()
killed()
odd()
sys.stdout.write(json.dumps(told))
