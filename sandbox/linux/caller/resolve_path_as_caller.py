"""EFFECT: a walk along a path as the kernel takes it for the caller that spelled it, links and `..` in order.

The walk reads the host's own tree, which the sandbox's equals but for what is hidden. A walk in the sandbox's tree
would ask the mask, and the mask waits for this very process. The caller's own `/proc` and `/dev` are read instead of
the host's. They hold no mask, and their links lead out: a write through `/proc/self/cwd` is a write to the directory.
"""

from __future__ import annotations

import errno
import os
import re

from sandbox.linux.kernel import kernel_calls

_HOPS = 40
_TREE = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
# magic links to a directory or a file (proc(5)); each task of a process has the same ones
_MAGIC = re.compile(r"/proc/(self|thread-self|\d+)(?:/task/\d+)?/(cwd|root|exe|fd/\d+)")


def walk(caller: int, path: str, *, base: str = "/", follows: bool, root: str = "/", devices: int | None = None) -> str:
    """The absolute path, with no link left, that `path` leads to.

    Args:
        caller: a process or a thread, as the host numbers it.
        path: the path as spelled.
        base: the directory a relative path starts from, with no link left.
        follows: whether a link in the last place is followed.
        root: where absolute paths and links start, and above which `..` does not lead.
        devices: a descriptor of the caller's `/dev`, for a caller that may have ended.
    """
    here, hops = root if path.startswith("/") else base, 0
    todo = path.split("/")[::-1]
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            here = here if here == root else os.path.dirname(here)
            continue
        place = os.path.join(here, part)
        # a slash or a dot behind the last name has a link there followed (path_resolution(7))
        text = _link(caller, place, devices) if todo or follows else None
        if text is None:
            here = place
            continue
        hops += 1
        if hops > _HOPS:  # ELOOP: the call fails
            return place
        if text.startswith("/"):
            here = root
        todo.extend(text.split("/")[::-1])
    return here


def _link(caller: int, place: str, devices: int | None) -> str | None:
    """The text of the link that the caller finds at a path whose parents hold none; `None` for anything else."""
    if place.startswith("/proc/"):
        return _magic(caller, place)
    if place.startswith("/dev/"):
        return _device(caller, place, devices)
    try:
        return os.readlink(place)
    except (OSError, ValueError):
        return None


def _magic(caller: int, place: str) -> str | None:
    match = _MAGIC.fullmatch(place)
    if match is None:
        return None
    process, what = match.groups()
    # the number of another process is one of the caller's own pid namespace
    base = f"/proc/{caller}/root/proc/{process}" if process.isdecimal() else f"/proc/{caller}"
    try:
        # a task without a /proc of its own sees links of processes outside, which ptrace_may_access (ptrace(2)) closes
        if process.isdecimal() and _user_namespace(base) != _user_namespace(f"/proc/{caller}"):
            return None
        text = os.readlink(f"{base}/{what}")
    except OSError:
        return None
    return text.removesuffix(" (deleted)") if text.startswith("/") else None


def is_closed_link(caller: int, path: str) -> bool:
    """Whether a path left in `/proc` goes through a link of another process that is closed to the caller, too."""
    match = _MAGIC.match(path)
    if match is None or not match.group(1).isdecimal():
        return False
    try:
        mine = _user_namespace(f"/proc/{caller}")
    except OSError:
        return False
    process = f"/proc/{caller}/root/proc/{match.group(1)}"
    try:
        if _user_namespace(process) != mine:
            return True
        os.readlink(f"{process}/cwd")
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _user_namespace(process: str) -> int:
    return os.stat(f"{process}/ns/user").st_ino


def _device(caller: int, place: str, devices: int | None) -> str | None:
    if place == "/dev/null":  # the most common path by far
        return None
    try:
        devices = (
            os.open(".", _TREE, dir_fd=devices) if devices is not None else os.open(f"/proc/{caller}/root/dev", _TREE)
        )
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise PermissionError(error.errno, str(error)) from error
        return None
    try:
        # a link on the way may lead into the mask, which would hang this process
        link = kernel_calls.open_beneath(devices, place.removeprefix("/dev/"), os.O_PATH | os.O_NOFOLLOW)
        try:
            return os.readlink("", dir_fd=link)
        finally:
            os.close(link)
    except OSError:
        return None
    finally:
        os.close(devices)
