"""Random operations on a tree and on a file, from a seed: prints what each came to and a picture of the end.

Run stand-alone, inside a sandbox and outside, with the directory to work in: equal seeds must print equal lines.
"""

# ruff: noqa: PLR0912, S311, T201  a stand-alone program that is one table of operations

from __future__ import annotations

import ctypes
import errno
import hashlib
import mmap
import os
import random
import stat
import sys

_NAMES = ("a", "b", "c", "d")
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.fallocate64.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
_SIZE = 1 << 18


def picture(base: str) -> list[str]:
    """Every name below a directory: kind, mode, links, content."""
    out = []
    first: dict[int, str] = {}
    for directory, directories, files in os.walk(base):
        directories.sort()
        for name in sorted((*directories, *files)):
            path = os.path.join(directory, name)
            found = os.lstat(path)
            links = found.st_nlink
            text = ""
            if stat.S_ISLNK(found.st_mode):
                text = os.readlink(path)
            elif stat.S_ISREG(found.st_mode):
                with open(path, "rb") as file:
                    text = hashlib.sha256(file.read()).hexdigest()[:8] + " " + first.setdefault(found.st_ino, path)
            out.append(f"{path} {found.st_mode:o} {links} {text}")
    return out


def somewhere(chance: random.Random) -> str:
    return "/".join(chance.choice(_NAMES) for _ in range(chance.choice((1, 1, 2, 2, 3))))


def tree_step(chance: random.Random) -> str:
    """One operation; what it came to."""
    what = chance.choice(
        ("create", "mkdir", "rename", "exchange", "link", "symlink", "unlink", "rmdir", "list", "append", "chmod")
    )
    one, two = somewhere(chance), somewhere(chance)
    number = chance.randrange(10_000)
    said: object = ""
    try:
        if what == "create":
            with open(one, "wb") as file:
                file.write(b"%d" % number)
        elif what == "append":
            fd = os.open(one, os.O_WRONLY | os.O_APPEND)
            said = os.write(fd, b"+%d" % number)
            os.close(fd)
        elif what == "mkdir":
            os.mkdir(one)
        elif what == "rename":
            os.rename(one, two)
        elif what == "exchange":
            if _LIBC.renameat2(-100, one.encode(), -100, two.encode(), chance.choice((1, 2))):
                said = errno.errorcode[ctypes.get_errno()]
        elif what == "link":
            os.link(one, two, follow_symlinks=False)
        elif what == "symlink":
            os.symlink(os.path.basename(one), two)
        elif what == "unlink":
            os.unlink(one)
        elif what == "rmdir":
            os.rmdir(one)
        elif what == "chmod":
            os.chmod(one, 0o700 | number % 64)
        else:
            said = (sorted(os.listdir(one)), os.stat(one).st_nlink)
    except OSError as error:
        said = errno.errorcode[error.errno or 0]
    return f"{what} {one} {two} {said}"


def file_step(chance: random.Random, fd: int) -> str:
    """One operation on an open file; what it came to."""
    what = chance.choice(
        ("write", "read", "truncate", "map", "punch", "zero", "reserve", "reopen", "hole", "read", "write")
    )
    at, length = chance.randrange(_SIZE), chance.randrange(1, 20_000)
    size = os.fstat(fd).st_size
    said: object = ""
    if what == "write":
        said = os.pwrite(fd, bytes([chance.randrange(256)]) * length, at)
    elif what == "read":
        said = hashlib.sha256(os.pread(fd, length, at)).hexdigest()[:8]
    elif what == "truncate":
        os.ftruncate(fd, at)
    elif what == "map" and size:
        with mmap.mmap(fd, size) as pages:
            said = hashlib.sha256(pages[at : at + length]).hexdigest()[:8]
            where = at % size
            upto = min(size, where + length)
            pages[where:upto] = bytes([chance.randrange(256)]) * (upto - where)
            if chance.random() < 0.3:
                pages.flush()
    elif what in ("punch", "zero", "reserve"):
        said = _LIBC.fallocate64(fd, {"punch": 3, "zero": 16, "reserve": 1}[what], at, length)
    elif what == "reopen":
        with open("file", "rb") as file:
            said = hashlib.sha256(file.read()).hexdigest()[:8]
    elif what == "hole":
        try:
            os.lseek(fd, at, os.SEEK_DATA)
        except OSError as error:
            said = error.errno if at < size else "past the end"
            said = "" if said == errno.ENXIO else said
    return f"{what} {at} {length} {said} {os.fstat(fd).st_size}"


def main() -> None:
    base, kind, seed, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    os.umask(0o022)
    os.makedirs(base)
    os.chdir(base)
    chance = random.Random(seed)
    if kind == "tree":
        for _ in range(steps):
            print(tree_step(chance))
    else:
        fd = os.open("file", os.O_RDWR | os.O_CREAT, 0o644)
        for _ in range(steps):
            print(file_step(chance, fd))
        os.close(fd)
    print("\n".join(picture(".")))


if __name__ == "__main__":
    main()
