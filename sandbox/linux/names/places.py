"""EFFECT: empty places in the file system that shows a plan's covers, and looks at what is to be mounted on them."""

from __future__ import annotations

import errno
import os
import stat

from sandbox.linux.kernel import kernel_calls

_EXCHANGE = 2
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def looked_at(holder: int, name: str) -> os.stat_result | None:
    """The status of a name, its own where it is a link; `None` where there is none."""
    if holder < 0:
        return None
    try:
        return os.stat(name, dir_fd=holder, follow_symlinks=False)
    except (OSError, ValueError):
        return None


def link(holder: int, name: str) -> str | None:
    """The text of the link at a name, `None` for anything else.

    Raises:
        OSError: nothing is there.
    """
    try:
        return os.readlink(name, dir_fd=holder)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise


def identity(found: os.stat_result) -> tuple[int, int]:
    """The numbers that tell a file from one that replaces it: a mount keeps an inode's from being given again."""
    if stat.S_ISLNK(found.st_mode):  # a link has no mount
        return found.st_ino, found.st_ctime_ns
    return found.st_dev, found.st_ino


def insist(fd: int, key: tuple[int, int]) -> None:
    """Insist that a descriptor is of the file with an identity.

    Raises:
        OSError: ESTALE, the host has replaced the file.
    """
    if identity(os.fstat(fd)) != key:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def names(fd: int) -> list[str]:
    """The names in a directory."""
    opened = os.open(".", _LIST, dir_fd=fd)
    try:
        return os.listdir(opened)
    finally:
        os.close(opened)


def make(cover: int, place: str, *, directory: bool) -> None:
    """Make an empty place to mount on."""
    if directory:
        os.mkdir(place, 0o755, dir_fd=cover)
    else:
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o000, dir_fd=cover))


def make_link(cover: int, place: str, text: str, found: os.stat_result) -> None:
    """Make a link with the times of the one on the host, for which it stands."""
    os.symlink(text, place, dir_fd=cover)
    os.utime(place, ns=(found.st_atime_ns, found.st_mtime_ns), dir_fd=cover, follow_symlinks=False)


def replace(cover: int, place: str, target: int, name: str) -> None:
    """Put a place at a name that another one has, which goes.

    A rename over a place takes its mount away before it is over, and whoever looks meanwhile would find the place.
    """
    kernel_calls.rename(cover, place, target, name, _EXCHANGE)
    remove(cover, place)


def remove(cover: int, place: str) -> None:
    """Take a place away, and with it what is mounted there."""
    for take in (os.unlink, os.rmdir):
        try:
            take(place, dir_fd=cover)
        except FileNotFoundError:
            return
        except OSError:
            continue
        return
