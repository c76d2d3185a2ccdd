"""What a task finds at each of many paths: run by a bare interpreter inside a sandbox, JSON in, JSON out.

In: a list of paths. Out: for each an object of what was tried; a string is an errno's name, anything else is success.
What is tried leaves everything as it was.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_BESIDE = ".probe-beside"


def _kind(path: str) -> list[Any]:
    mode = os.stat(path).st_mode
    return [stat.S_IFMT(mode), stat.S_IMODE(mode) == 0]


def _lkind(path: str) -> list[Any]:
    mode = os.lstat(path).st_mode
    return [stat.S_IFMT(mode), os.readlink(path) if stat.S_ISLNK(mode) else ""]


def _read(path: str) -> list[Any]:
    # neither a pipe nor a terminal is expected, but neither may hang a test
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return [True if stat.S_ISDIR(os.fstat(fd).st_mode) else os.read(fd, 4096).decode("latin-1")]
    finally:
        os.close(fd)


def _list(path: str) -> list[Any]:
    return sorted(os.listdir(path))


def _write(path: str) -> list[Any]:
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    return [True]


def _create_in(path: str) -> list[Any]:
    name = os.path.join(path, _BESIDE)
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    os.unlink(name)
    return [True]


def _mkdir_in(path: str) -> list[Any]:
    name = os.path.join(path, _BESIDE)
    os.mkdir(name)
    os.rmdir(name)
    return [True]


def _create(path: str) -> list[Any]:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    os.unlink(path)
    return [True]


def _held(act: Callable[[str], list[Any]]) -> Callable[[str], list[Any]]:
    """The act on the last name alone, from its directory: on the way to it may be the very link it takes away."""

    def held(path: str) -> list[Any]:
        back = os.open(".", os.O_PATH)
        try:
            os.chdir(os.path.dirname(path))
            return act(os.path.basename(path))
        finally:
            os.fchdir(back)
            os.close(back)

    return held


def _rename(path: str) -> list[Any]:
    os.rename(path, path + _BESIDE)
    os.rename(path + _BESIDE, path)
    return [True]


def _unlink(path: str) -> list[Any]:
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        target = os.readlink(path)
        os.unlink(path)
        os.symlink(target, path)
    elif stat.S_ISDIR(mode):
        os.rmdir(path)
        os.mkdir(path)
    else:
        text = _read(path)[0].encode("latin-1")
        os.unlink(path)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(fd, text)
        os.close(fd)
    return [True]


#: Reading first: what writing would break is then reported as what it was.
_TRIED: dict[str, Callable[[str], list[Any]]] = {
    "stat": _kind,
    "lstat": _lkind,
    "read": _read,
    "list": _list,
    "write": _write,
    "create in": _create_in,
    "mkdir in": _mkdir_in,
    "create": _create,
    "rename": _held(_rename),
    "unlink": _held(_unlink),
}

READS = ("stat", "lstat", "read", "list")


def found_at(path: str, tried: tuple[str, ...] = tuple(_TRIED)) -> dict[str, Any]:
    """What was found, by what was tried."""
    found: dict[str, Any] = {}
    for name in tried:
        try:
            found[name] = _TRIED[name](path)
        except OSError as error:
            found[name] = errno.errorcode.get(error.errno or 0, str(error.errno))
        except ValueError:  # a NUL
            found[name] = "EINVAL"
    return found


def main() -> None:
    """Read the paths, try everything, and say what was found."""
    json.dump([found_at(path) for path in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
