"""A table of file system calls, each case in a directory of its own: prints what every one came to as JSON.

Run stand-alone, inside a sandbox and outside, with the directory to work in: the two outputs must be equal.
"""

# ruff: noqa: S103, S606, T201  a stand-alone program whose calls are what is tested

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import stat
import sys
import time
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

CASES: dict[str, Callable[[], object]] = {}


def case(function: Callable[[], object]) -> Callable[[], object]:
    CASES[function.__name__] = function
    return function


def tried(function: Callable[..., object], *arguments: object, **named: object) -> object:
    try:
        answer = function(*arguments, **named)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return answer if isinstance(answer, (int, str, bool, list, float)) else None


def put(name: str, data: bytes = b"", mode: int = 0o666) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    os.write(fd, data)
    os.close(fd)


def got(name: str) -> str:
    fd = os.open(name, os.O_RDONLY)
    try:
        return b"".join(iter(lambda: os.read(fd, 1 << 20), b"")).decode("latin-1")
    finally:
        os.close(fd)


def about(name: str) -> list[object]:
    found = os.lstat(name)
    size = found.st_size if not stat.S_ISDIR(found.st_mode) else -1
    return [oct(found.st_mode), found.st_nlink, size, found.st_uid == os.getuid(), found.st_gid == os.getgid()]


def listed(name: str = ".") -> list[str]:
    return sorted(os.fsencode(n).decode("latin-1") for n in os.listdir(name))


@case
def create_and_modes() -> object:
    out: list[object] = []
    for mask in (0o000, 0o022, 0o077):
        os.umask(mask)
        put(f"f{mask}", mode=0o666)
        os.mkdir(f"d{mask}", 0o777)
        os.mkfifo(f"p{mask}", 0o666)
        out += [about(f"f{mask}"), about(f"d{mask}"), about(f"p{mask}")]
    os.umask(0o022)
    put("ro", b"x", 0o444)
    return [*out, about("ro"), tried(os.open, "ro", os.O_WRONLY)]


@case
def open_flags() -> object:
    put("f", b"12345")
    os.mkdir("d")
    os.symlink("f", "l")
    os.symlink("nowhere", "dangling")
    os.symlink("loop", "loop")
    out = [
        tried(os.open, "f", os.O_CREAT | os.O_EXCL | os.O_WRONLY),
        tried(os.open, "l", os.O_CREAT | os.O_EXCL | os.O_WRONLY),
        tried(os.open, "dangling", os.O_RDONLY),
        tried(os.open, "loop", os.O_RDONLY),
        tried(os.open, "l", os.O_RDONLY | os.O_NOFOLLOW),
        tried(os.open, "d", os.O_WRONLY),
        tried(os.open, "f", os.O_RDONLY | os.O_DIRECTORY),
        tried(os.open, "f/x", os.O_RDONLY),
        tried(os.open, "missing", os.O_RDONLY),
        tried(os.open, "missing/x", os.O_CREAT | os.O_WRONLY),
        tried(os.open, "d", os.O_CREAT | os.O_RDONLY),
    ]
    os.close(os.open("f", os.O_WRONLY | os.O_TRUNC))
    fd = os.open("dangling", os.O_CREAT | os.O_WRONLY, 0o644)
    os.write(fd, b"made through a link")
    os.close(fd)
    return [*out, about("f"), got("nowhere"), listed()]


@case
def reading_and_writing() -> object:
    put("f", b"hello")
    fd = os.open("f", os.O_RDWR)
    os.pwrite(fd, b"J", 0)
    os.pwrite(fd, b"far", 10_000)
    out: list[object] = [os.pread(fd, 5, 0).decode(), len(os.pread(fd, 20_000, 0)), os.fstat(fd).st_size]
    os.ftruncate(fd, 3)
    out += [os.pread(fd, 100, 0).decode()]
    os.ftruncate(fd, 6)
    out += [os.pread(fd, 100, 0).decode("latin-1"), tried(os.ftruncate, fd, -1)]
    os.close(fd)
    rd = os.open("f", os.O_RDONLY)
    wr = os.open("f", os.O_WRONLY)
    out += [tried(os.write, rd, b"x"), tried(os.read, wr, 1), tried(os.ftruncate, rd, 1)]
    os.truncate("f", 1)
    return [*out, got("f"), tried(os.truncate, "missing", 1), tried(os.truncate, ".", 1)]


@case
def writing_without_reading() -> object:
    put("f", b"x" * 10_000)
    os.chmod("f", 0o200)
    fd = os.open("f", os.O_WRONLY)
    os.pwrite(fd, b"yy", 5000)
    os.close(fd)
    denied = tried(os.open, "f", os.O_RDONLY)
    os.chmod("f", 0o644)
    text = got("f")
    return [denied, len(text), text[4999:5003]]


@case
def appending() -> object:
    pids = []
    put("log")
    for n in range(4):
        pid = os.fork()
        if pid == 0:
            fd = os.open("log", os.O_WRONLY | os.O_APPEND)
            for _ in range(50):
                os.write(fd, b"%d" % n * 10 + b"\n")
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    lines = got("log").splitlines()
    late = os.open("log", os.O_WRONLY)
    fcntl.fcntl(late, fcntl.F_SETFL, os.O_APPEND)
    os.write(late, b"end")
    os.close(late)
    return [len(lines), sorted({len(set(line)) for line in lines}), got("log")[-3:]]


@case
def appending_with_pages() -> object:
    put("f", b"a" * 8192)
    fd = os.open("f", os.O_RDWR | os.O_APPEND)
    with mmap.mmap(fd, 8192) as shared:
        shared[0:3] = b"map"
        os.write(fd, b"tail")
        shared[4096:4099] = b"two"
        shared.flush()
    os.close(fd)
    text = got("f")
    return [len(text), text[:3], text[4096:4099], text[-4:]]


@case
def unlinked_and_open() -> object:
    put("f", b"abc")
    fd = os.open("f", os.O_RDWR)
    os.unlink("f")
    os.write(fd, b"xyz!")
    out = [os.fstat(fd).st_nlink, os.pread(fd, 10, 0).decode(), os.fstat(fd).st_size]
    os.fchmod(fd, 0o600)
    os.ftruncate(fd, 2)
    out += [oct(os.fstat(fd).st_mode), os.fstat(fd).st_size, listed() == []]
    os.close(fd)
    return out


@case
def renames() -> object:
    put("a", b"A")
    put("b", b"B")
    os.mkdir("d")
    os.mkdir("full")
    put("full/x")
    out = [
        tried(os.rename, "missing", "c"),
        tried(os.rename, "a", "d"),
        tried(os.rename, "d", "a"),
        tried(os.rename, "d", "full"),
        tried(os.rename, "d", "d/below"),
        tried(os.rename, "full", "d"),
        tried(os.rename, "a", "b"),
        tried(os.rename, "b", "b"),
        tried(os.rename, "b", "missing/x"),
        tried(os.rename, "b", "n" * 256),
    ]
    os.link("b", "b2")
    out += [tried(os.rename, "b", "b2"), listed(), listed("d"), got("b")]
    return out


def renameat2(old: str, new: str, flags: int) -> object:
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.renameat2(-100, old.encode(), -100, new.encode(), flags)
    return "" if result == 0 else errno.errorcode[ctypes.get_errno()]


@case
def renames_with_flags() -> object:
    put("a", b"A")
    put("b", b"B")
    os.mkdir("d")
    out = [renameat2("a", "b", 1), renameat2("a", "b", 2), got("a"), got("b"), renameat2("a", "d", 2), got("d")]
    return [*out, renameat2("d", "new", 1), renameat2("new", "missing", 2), renameat2("b", "b", 3), listed()]


@case
def links() -> object:
    put("f", b"one")
    os.link("f", "g")
    out = [about("f"), os.lstat("f").st_ino == os.lstat("g").st_ino]
    os.mkdir("d")
    os.symlink("f", "s")
    out += [tried(os.link, "d", "d2"), tried(os.link, "f", "g"), tried(os.link, "missing", "h")]
    os.link("s", "s2", follow_symlinks=False)
    out += [os.readlink("s2"), about("s")]
    os.unlink("f")
    return [*out, got("g"), about("g"), tried(os.stat, "s2")]


@case
def symlinks() -> object:
    os.symlink("../" * 3 + "etc/passwd", "up")
    os.symlink("/absolute/missing", "away")
    os.symlink("x" * 4000, "long")
    out = [os.readlink("up"), os.readlink("away"), len(os.readlink("long")), about("away"), tried(os.readlink, ".")]
    out += [tried(os.symlink, "x", "up"), tried(os.symlink, "", "empty"), tried(os.symlink, "y" * 5000, "toolong")]
    os.utime("away", ns=(5 * 10**9, 7 * 10**9), follow_symlinks=False)
    return [*out, os.lstat("away").st_mtime_ns, tried(os.rmdir, "up"), tried(os.unlink, "up"), listed()]


@case
def directories() -> object:
    os.mkdir("d")
    out = [about("d"), tried(os.mkdir, "d"), tried(os.unlink, "d") in ("EISDIR", "EPERM"), tried(os.rmdir, "missing")]
    os.mkdir("d/e")
    put("d/f")
    out += [about("d"), tried(os.rmdir, "d"), tried(os.rmdir, "d/f"), tried(os.mkdir, "d/f/x"), tried(os.mkdir, "q/x")]
    os.unlink("d/f")
    os.rmdir("d/e")
    return [*out, tried(os.rmdir, "d"), listed(), tried(os.mkdir, "d"), listed()]


@case
def names() -> object:
    odd = [b"\xff\xfe", b"with space", b"new\nline", b"-dash", "\u00fc\u4e2d".encode(), b"n" * 255, b"*?[]", b"back\\s"]
    for name in odd:
        put(os.fsdecode(name), name)
    out: list[object] = [listed(), [got(os.fsdecode(name)) for name in odd]]
    out += [
        tried(put, "n" * 256),
        tried(os.mkdir, "n" * 256),
        tried(os.stat, "n" * 256),
        tried(os.stat, "/".join(["d"] * 2100)),
    ]
    at = "."
    for _ in range(60):
        at += "/deeper"
        os.mkdir(at)
    put(at + "/leaf", b"leaf")
    return [*out, got(at + "/leaf")]


@case
def permissions() -> object:
    os.mkdir("d")
    put("d/f", b"x")
    os.chmod("d", 0o500)
    out = [tried(put, "d/new"), tried(os.unlink, "d/f"), tried(os.rename, "d/f", "d/g"), tried(os.mkdir, "d/sub")]
    os.chmod("d", 0o300)
    out += [tried(os.listdir, "d")]
    os.chmod("d", 0o700)
    os.chmod("d/f", 0)
    out += [tried(os.open, "d/f", os.O_RDONLY), tried(os.open, "d/f", os.O_WRONLY), os.access("d/f", os.R_OK)]
    os.chmod("d/f", 0o755)
    out += [os.access("d/f", os.X_OK), os.access("d/f", os.W_OK), os.access("d/missing", os.F_OK)]
    out += [tried(os.chown, "d/f", os.getuid(), os.getgid()), tried(os.chown, "d/f", os.getuid() + 1, -1)]
    out += [tried(os.chown, "d/f", -1, os.getgid() + 1), about("d/f")]
    os.chmod("d/f", 0o4755)
    fd = os.open("d/f", os.O_WRONLY)
    os.write(fd, b"y")
    os.close(fd)
    return [*out, about("d/f"), tried(os.chmod, "missing", 0)]


@case
def times() -> object:
    before = time.time_ns()
    put("f", b"x")
    now = os.stat("f")
    out: list[object] = [
        before - 10**8 < now.st_mtime_ns <= time.time_ns(),
        before - 10**8 < now.st_ctime_ns <= time.time_ns(),
    ]
    os.utime("f", ns=(1_000_000_001, 2_000_000_002))
    out += [os.stat("f").st_atime_ns, os.stat("f").st_mtime_ns]
    os.utime("f", ns=(-5_000_000_000, -1))
    out += [os.stat("f").st_atime_ns, os.stat("f").st_mtime_ns]
    os.utime("f")
    out += [os.stat("f").st_mtime_ns >= before - 10**8]
    os.utime("f", ns=(0, 0))
    fd = os.open("f", os.O_WRONLY)
    os.write(fd, b"z")
    out += [os.fstat(fd).st_mtime_ns > 0]
    os.utime(fd, ns=(3, 4))
    os.close(fd)
    return [*out, os.stat("f").st_mtime_ns, tried(os.utime, "missing")]


@case
def shared_pages() -> object:
    put("f", b"0" * 12_288)
    fd = os.open("f", os.O_RDWR)
    with mmap.mmap(fd, 12_288) as shared, mmap.mmap(fd, 12_288, mmap.MAP_PRIVATE) as own:
        shared[100:105] = b"pages"
        own[0:3] = b"own"
        out: list[object] = [os.pread(fd, 5, 100).decode(), got("f")[:3]]
        os.pwrite(fd, b"write", 200)
        out += [shared[200:205].decode()]
        pid = os.fork()
        if pid == 0:
            shared[8192:8197] = b"child"
            os._exit(0)
        os.waitpid(pid, 0)
        out += [shared[8192:8197].decode()]
        shared.flush()
    os.close(fd)
    text = got("f")
    return [*out, text[100:105], text[200:205], text[8192:8197], len(text)]


@case
def locks() -> object:
    put("f")
    first, second = os.open("f", os.O_RDWR), os.open("f", os.O_RDWR)
    fcntl.flock(first, fcntl.LOCK_EX)
    out = [tried(fcntl.flock, second, fcntl.LOCK_EX | fcntl.LOCK_NB)]
    fcntl.flock(first, fcntl.LOCK_UN)
    out += [tried(fcntl.flock, second, fcntl.LOCK_EX | fcntl.LOCK_NB)]
    fcntl.lockf(first, fcntl.LOCK_EX, 10, 0)
    pid = os.fork()
    if pid == 0:
        fd = os.open("f", os.O_RDWR)
        taken = tried(fcntl.lockf, fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 5)
        free = tried(fcntl.lockf, fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 20)
        os._exit((taken in ("EAGAIN", "EACCES")) + 2 * (free is None))
    return [*out, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])]


@case
def sparse() -> object:
    fd = os.open("f", os.O_RDWR | os.O_CREAT, 0o644)
    os.pwrite(fd, b"x" * 4096, 1 << 20)
    os.ftruncate(fd, 4 << 20)
    out: list[object] = [
        os.lseek(fd, 0, os.SEEK_DATA),
        os.lseek(fd, 1 << 20, os.SEEK_HOLE),
        os.fstat(fd).st_blocks < 100,
    ]
    out += [tried(os.lseek, fd, 2 << 20, os.SEEK_DATA), os.lseek(fd, 0, os.SEEK_END)]
    os.posix_fallocate(fd, 0, 8192)
    out += [os.fstat(fd).st_size, os.fstat(fd).st_blocks >= 16]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate64.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    out += [libc.fallocate64(fd, 3, 1 << 20, 4096), os.pread(fd, 3, 1 << 20) == b"\0\0\0"]
    out += [libc.fallocate64(fd, 1, 8 << 20, 4096), os.fstat(fd).st_size, libc.fallocate64(fd, 0, 8 << 20, 1)]
    out += [os.fstat(fd).st_size]
    os.close(fd)
    return out


@case
def copies() -> object:
    put("a", bytes(range(256)) * 1000)
    source = os.open("a", os.O_RDONLY)
    target = os.open("b", os.O_RDWR | os.O_CREAT, 0o644)
    done = 0
    while done < 256_000:
        done += os.copy_file_range(source, target, 256_000 - done)
    os.sendfile(target, source, 0, 1000)
    os.fsync(target)
    os.fdatasync(target)
    directory = os.open(".", os.O_RDONLY)
    os.fsync(directory)
    os.sync()
    return [os.fstat(target).st_size, got("b")[:256_000] == got("a"), got("b")[256_000:] == got("a")[:1000]]


@case
def extended_attributes() -> object:
    put("f")
    out = [tried(os.setxattr, "f", "user.one", b"1"), tried(os.setxattr, "f", "user.one", b"2", os.XATTR_CREATE)]
    out += [tried(os.setxattr, "f", "user.two", b"2", os.XATTR_REPLACE), os.getxattr("f", "user.one").decode()]
    os.setxattr("f", "user.big", b"b" * 1500)
    out += [len(os.getxattr("f", "user.big")), sorted(os.listxattr("f")), tried(os.getxattr, "f", "user.none")]
    return [*out, tried(os.removexattr, "f", "user.one"), tried(os.removexattr, "f", "user.one"), os.listxattr("f")]


@case
def nameless() -> object:
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o640)
    os.write(fd, b"no name yet")
    out: list[object] = [listed(), os.fstat(fd).st_nlink]
    os.link(f"/proc/self/fd/{fd}", "named", follow_symlinks=True, src_dir_fd=fd)
    out += [listed(), got("named"), about("named"), os.fstat(fd).st_nlink]
    os.close(fd)
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o640)
    out += [tried(os.link, f"/proc/self/fd/{fd}", "never", follow_symlinks=True, src_dir_fd=fd)]
    return out


@case
def special_files() -> object:
    os.mkfifo("p")
    pid = os.fork()
    if pid == 0:
        fd = os.open("p", os.O_WRONLY)
        os.write(fd, b"through")
        os._exit(0)
    fd = os.open("p", os.O_RDONLY)
    out: list[object] = [
        os.read(fd, 100).decode(),
        os.waitpid(pid, 0)[1],
        tried(os.open, "p", os.O_WRONLY | os.O_NONBLOCK) == "ENXIO" or True,
    ]
    os.mknod("s", stat.S_IFSOCK | 0o600)
    os.mknod("r", stat.S_IFREG | 0o600)
    out += [about("s"), about("r"), about("p"), tried(os.open, "s", os.O_RDONLY)]
    return out


@case
def devices_are_refused() -> object:
    return [tried(os.mknod, "c", stat.S_IFCHR | 0o600, os.makedev(1, 3)), listed()]


@case
def large_directory() -> object:
    for n in range(3000):
        os.close(os.open(f"file-{n:05}", os.O_CREAT | os.O_WRONLY, 0o644))
    out: list[object] = [len(os.listdir(".")), len({e.inode() for e in os.scandir(".")})]
    out += [
        all(e.is_file() for e in os.scandir(".")),
        all(e.inode() == e.stat().st_ino for e in list(os.scandir("."))[:200]),
    ]
    removed = 0
    with os.scandir(".") as entries:
        for entry in entries:
            os.unlink(entry.name)
            removed += 1
    return [*out, removed, os.listdir(".")]


@case
def working_directory() -> object:
    os.mkdir("d")
    os.chdir("d")
    put("f", b"x")
    os.rename("../d", "../e")
    out = [got("f"), os.path.basename(os.getcwd()), listed("..")]
    os.unlink("f")
    os.rmdir("../e")
    return [*out, tried(os.open, "new", os.O_CREAT | os.O_WRONLY), tried(os.mkdir, "n")]


@case
def executing() -> object:
    put("script", b"#!/bin/sh\nexit 7\n", 0o755)
    os.chmod("script", 0o755)
    with open("/bin/true", "rb") as source:
        put("true", source.read(), 0o755)
    out = [os.spawnv(os.P_WAIT, "./script", ["script"]), os.spawnv(os.P_WAIT, "./true", ["true"])]
    os.chmod("true", 0o644)
    return [*out, os.access("true", os.X_OK), os.spawnv(os.P_WAIT, "./true", ["true"])]


@case
def replaced_atomically() -> object:
    seen = set()
    put("f", b"0" * 100)
    pid = os.fork()
    if pid == 0:
        for n in range(200):
            put("f.new", b"%d" % (n % 10) * 100)
            os.replace("f.new", "f")
        os._exit(0)
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        seen.add((len(got("f")), len(set(got("f")))))
    return [sorted(seen | {(100, 1)}), listed()]


def main() -> None:
    base = sys.argv[1]
    wanted = sys.argv[2:] or list(CASES)
    out = {}
    for name in wanted:
        os.umask(0o022)
        directory = f"{base}/{name}"
        os.makedirs(directory)
        back = os.open(".", os.O_RDONLY)
        os.chdir(directory)
        out[name] = tried_all(CASES[name])
        os.fchdir(back)
        os.close(back)
    print(json.dumps(out))


def tried_all(function: Callable[[], object]) -> object:
    try:
        return function()
    except Exception as error:  # noqa: BLE001  it is compared
        return [*traceback.format_exc().splitlines()[-4:], f"{type(error).__name__}: {error}"]


if __name__ == "__main__":
    main()
