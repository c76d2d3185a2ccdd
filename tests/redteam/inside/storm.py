"""Renames, links, makes and removes granted names, staged ones and a hidden one, from several threads, for a while."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
NAMES = ("dist", "f", ".one", ".two", "secret.txt", "dist/a", "dist/b", "../shop/.one")
end = time.monotonic() + float(sys.argv[2])
done = [0] * 4


def write(path: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write("task")


def storm(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  a choice that can be repeated
    while time.monotonic() < end:
        one, other = chance.choice(NAMES), chance.choice(NAMES)
        done[seed] += 1
        with contextlib.suppress(OSError):
            match chance.randrange(9):
                case 0 | 1 | 2:
                    LIBC.renameat2(-100, one.encode(), -100, other.encode(), chance.choice((0, 1, 2)))
                case 3:
                    os.link(one, other)
                case 4:
                    write(one)
                case 5:
                    os.mkdir(one)
                case 6:
                    os.symlink(other, one)
                case 7:
                    os.rmdir(one)
                case _:
                    os.unlink(one)


sys.stdout.write("begun\n")
sys.stdout.flush()
threads = [threading.Thread(target=storm, args=(seed,)) for seed in range(len(done))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.stdout.write(str(sum(done)))
