"""EFFECT: the paths a call names, read of a caller that stands still inside it."""

from __future__ import annotations

import errno as errors
import os
from typing import TYPE_CHECKING, NamedTuple

from sandbox.linux.caller.path_walk import walk
from sandbox.linux.kernel import sockaddr, syscall_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.contract.intents import Intent
    from sandbox.linux.kernel.syscall_numbers import Architecture

_PATH_MAX = 4096
_RESOLVE_IN_ROOT = 0x10


class NamedPath(NamedTuple):
    """One path of a call.

    Attributes:
        asked: as spelled.
        spelled: made absolute, but not normalized.
        path: with no link left.
        follows: whether a link in the last place is followed.
        creates: whether it is an open that makes what is not there.
    """

    asked: str
    spelled: str
    path: str
    intent: Intent
    follows: bool
    creates: bool = False


class Gone(Exception):
    """The caller went away while it was being read."""


def unread(error: OSError) -> Exception:
    """What it means that a caller could not be read: it may be gone, or forbid it, or nothing is left to read with."""
    return Gone() if error.errno in (errors.ENOENT, errors.ESRCH) else PermissionError(error.errno, str(error))


def read(path: str, size: int) -> bytes:
    """At most so many bytes of a file about a caller.

    Raises:
        Gone, PermissionError: see `unread`.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise unread(error) from error
    try:
        return os.read(fd, size)
    except OSError as error:
        raise unread(error) from error
    finally:
        os.close(fd)


def process(pid: int) -> str:
    """A caller's name, empty when it cannot be told."""
    try:
        return read(f"/proc/{pid}/comm", 64).decode("utf-8", "replace").rstrip("\n")
    except (Gone, PermissionError):
        return ""


def in_memory(pid: int, requests: list[tuple[int, int]]) -> list[bytes]:
    """Bytes of the caller's memory; fewer than asked for where a mapping ends."""
    try:
        fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise unread(error) from error
    try:
        found = []
        for address, size in requests:
            try:
                found.append(os.pread(fd, size, address) if address else b"")
            except (OSError, OverflowError):  # EIO: no such page; the call itself will fail with EFAULT
                found.append(b"")
        return found
    finally:
        os.close(fd)


def named(
    architecture: Architecture, pid: int, call: syscall_table.Call, registers: tuple[int, ...], *, every: bool = False
) -> Iterator[NamedPath]:
    """Each path of a call that names one; but for `every`, only those that matter as far as the host knows."""
    wanted = [(registers[argument.path], _PATH_MAX) for argument in call.paths]
    if call.how >= 0:
        wanted.append((registers[call.how], syscall_table.OPEN_HOW_SIZE))
    memory = in_memory(pid, wanted)
    how = None
    if call.how >= 0:
        try:
            how = syscall_table.open_how(memory.pop())
        except syscall_table.UnreadableArgument:
            how = None
    flags = syscall_table.flags_of(call, registers, how)
    for argument, found in zip(call.paths, memory, strict=True):
        raw = found if call.size < 0 else _socket_path(found, registers[call.size])
        asked = os.fsdecode(raw.split(b"\0", 1)[0])
        follows = syscall_table.follows(architecture, call, argument, flags)
        rooted = how is not None and bool(how[2] & _RESOLVE_IN_ROOT)
        base = root = "/"
        if asked.startswith("/") and not rooted:
            spelled = asked
        elif asked or call.empty or call.null:
            base = _base(pid, syscall_table.descriptor(argument, registers))
            if not base.startswith("/"):  # no such descriptor, or one that names no file
                continue
            root = base if rooted else "/"
            spelled = os.path.join(base, asked.lstrip("/")) if asked else base
        else:
            continue
        path = walk(pid, asked, base=base, follows=follows, root=root)
        exists = os.path.lexists(path)
        intent, creates = argument.intent, False
        if call.name in syscall_table.OPENS:
            intent = syscall_table.open_intent(flags, exists=exists)
            creates = bool(flags & syscall_table.O_CREAT)
        yield NamedPath(asked, spelled, path, intent, follows, creates)
        if len(call.paths) > 1 and not exists and not every:
            return  # a rename or a link of nothing changes nothing


def _socket_path(raw: bytes, size: int) -> bytes:
    """The path of a `struct sockaddr`, empty for one of another kind."""
    try:
        address = sockaddr.parse(raw[: size & 0xFFFFFFFF])
    except sockaddr.MalformedAddress:
        return b""
    return address.path if isinstance(address, sockaddr.Path) else b""


def _base(pid: int, descriptor: int) -> str:
    """The directory a relative path starts from, as the caller sees it."""
    name = "cwd" if descriptor == syscall_table.AT_FDCWD else f"fd/{descriptor}"
    try:
        return os.readlink(f"/proc/{pid}/{name}").removesuffix(" (deleted)")
    except OSError as error:
        if name == "cwd" or error.errno not in (errors.ENOENT, errors.ESRCH):
            raise unread(error) from error
        return ""  # no such descriptor: the call fails with EBADF


def _normal(spelled: str) -> str:
    """Without `.`, `..` and doubled separators, no link looked at."""
    return "/" + os.path.normpath(spelled).lstrip("/")


def left_again(pid: int, spelled: str) -> list[str]:
    """The directories a path goes into and leaves by `..`: each has to be there, so each is looked at."""
    if "/.." not in spelled:
        return []
    parts = spelled.split("/")
    return [
        walk(pid, "/".join(parts[:index]), follows=True)
        for index in range(1, len(parts))
        if parts[index] == ".." and parts[index - 1] not in ("", ".", "..")
    ]


def reaching(hidden: str, named: NamedPath) -> str:
    """The whole path asked for when the way to it leads through `hidden`, else an empty string."""
    for path in (_normal(named.spelled), named.path):
        if path == hidden or path.startswith(hidden + "/"):
            return path
    return ""
