"""EFFECT: a call as it was read from its caller, once, and the answers there are to it."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, NamedTuple

from sandbox.linux.caller.caller_memory import UnreadableMemory
from sandbox.linux.kernel import kernel_calls
from sandbox.linux.mask.served.inodes import magic_link

if TYPE_CHECKING:
    from sandbox.linux.caller.call_paths import NamedPath
    from sandbox.linux.kernel.observed_syscalls import Call

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_OPENED_ANEW = ~(os.O_CREAT | os.O_EXCL | os.O_TRUNC | os.O_NOFOLLOW | os.O_DIRECTORY)
_UMASK = re.compile(r"^Umask:\s*([0-7]+)", re.MULTILINE)


class HandedDescriptor(NamedTuple):
    """The answer that hands the caller a descriptor.

    Attributes:
        fd: closed by who takes the answer.
        flags: O_CLOEXEC, or 0.
    """

    fd: int
    flags: int


class ReadCall(NamedTuple):
    """A call as it was read, once.

    Attributes:
        thread: the caller, as the host numbers it.
        registers: the call's arguments.
        named: its paths.
    """

    thread: int
    call: Call
    registers: tuple[int, ...]
    named: tuple[NamedPath, ...]

    def leaves_nothing(self) -> bool:
        """Whether a path enters and leaves again a directory that is not there, so that the kernel fails the call."""
        passed = {directory for named in self.named for directory in named.passed}
        return not all(self.sees(directory, _DIRECTORY) for directory in passed)

    def sees(self, path: str, flags: int = os.O_PATH | os.O_NOFOLLOW) -> bool:
        """Whether the caller finds something at a path with no link left; `flags` may ask for a directory."""
        root = os.open(f"/proc/{self.thread}/root", _DIRECTORY)
        try:
            os.close(kernel_calls.open_beneath(root, path.strip("/"), flags))
        except OSError:
            return False
        finally:
            os.close(root)
        return True


#: The answer to a call: a descriptor, 0 for a call that was made, `None` for one that goes on.
Answer = HandedDescriptor | int | None


def plain_end(named: NamedPath) -> bool:
    """Whether a path ends in a name."""
    return named.asked.rstrip("/").rpartition("/")[2] not in ("", ".", "..")


def slash(named: NamedPath) -> str:
    """The slash behind a name, by which only a directory is meant."""
    return "/" if named.asked.endswith("/") else ""


def opened_anew(shown: int, made: int, flags: int) -> int:
    """A descriptor of a file that was just made, as its maker asked for it: its mode does not bind that open."""
    wanted = (flags & _OPENED_ANEW) | os.O_CLOEXEC | os.O_NOCTTY
    try:
        return os.open(magic_link(shown), wanted)
    except PermissionError:
        mode = stat.S_IMODE(os.fstat(made).st_mode)
        os.fchmod(made, mode | 0o600)
        try:
            return os.open(magic_link(shown), wanted)
        finally:
            os.fchmod(made, mode)


def umask(thread: int) -> int:
    """The bits of a mode that a caller wants cleared.

    Raises:
        OSError: the caller is gone.
    """
    with open(f"/proc/{thread}/status", encoding="utf-8", errors="replace") as file:
        found = _UMASK.search(file.read())
    if found is None:
        raise UnreadableMemory("a caller's umask cannot be read")
    return int(found[1], 8)
