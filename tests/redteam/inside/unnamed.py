"""Makes protected names from files without one, by exchanges, after failed removals; prints what was answered."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
where, deep, seconds = sys.argv[2], sys.argv[3], float(sys.argv[4])
told: dict[str, str] = {}
EXCHANGE, FOLLOW, EMPTY_PATH = 2, 0x400, 0x1000


def answered(label: str, result: int) -> None:
    told[label] = "done" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")


def unnamed() -> int:
    fd = os.open(where, os.O_TMPFILE | os.O_RDWR, 0o644)
    os.write(fd, b"planted\n")
    return fd


def race(harmless: str, meant: str) -> None:
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
        LIBC.mkdir(words, 0o755)
        with contextlib.suppress(OSError):
            os.rmdir(harmless)
    flipping.join()


inner = f"{where}/{deep}".rstrip("/")
os.makedirs(inner, exist_ok=True)
with contextlib.suppress(OSError):
    for name in ("plain", ".bashrc", ".mcp.json", "vx.toml"):
        spelled = f"/proc/self/fd/{unnamed()}".encode()
        answered(f"linked {name}", LIBC.linkat(-100, spelled, -100, f"{inner}/{name}".encode(), FOLLOW))
        answered(f"linked by number {name}", LIBC.linkat(unnamed(), b"", -100, f"{inner}/{name}2".encode(), EMPTY_PATH))
    answered("linked by number", LIBC.linkat(unnamed(), b"", -100, f"{inner}/.profile".encode(), EMPTY_PATH))

os.makedirs(f"{inner}/a/.git/modules/sub")
os.makedirs(f"{inner}/b/hooks")
for one, other in ((f"{inner}/a/.git/modules/sub", f"{inner}/b"), (f"{inner}/b", f"{inner}/a/.git/modules/sub")):
    answered(f"exchanged {one[-1]}", LIBC.renameat2(-100, one.encode(), -100, other.encode(), EXCHANGE))

for failing in ("rmdir", "rename"):
    os.makedirs(f"{inner}/{failing}/full/x")
    os.makedirs(f"{inner}/{failing}/empty")
    held = os.open(f"{inner}/{failing}/full", os.O_RDONLY | os.O_DIRECTORY)
    with contextlib.suppress(OSError):
        if failing == "rmdir":
            os.rmdir(f"{inner}/rmdir/full")
        else:
            os.rename(f"{inner}/rename/empty", f"{inner}/rename/full")
    for made in (".vscode", ".zshrc"):
        answered(f"{failing} {made}", LIBC.mkdirat(held, made.encode(), 0o755))
    if seconds:
        race(f"{inner}/{failing}/full/.vscodf", f"{inner}/{failing}/full/.vscode")
sys.stdout.write(json.dumps(told))
