"""EFFECT: the paths that a call names, read from a caller that stands still inside it."""

from __future__ import annotations

import errno as errors
import os
from typing import TYPE_CHECKING, NamedTuple

from sandbox.linux.caller.resolve_path_as_caller import walk
from sandbox.linux.kernel import observed_syscalls, sockaddr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.contract.intents import Intent
    from sandbox.linux.kernel.syscall_numbers import Architecture

_PATH_MAX = 4096
_RESOLVE_IN_ROOT = 0x10


class NamedPath(NamedTuple):
    """A path that a call names.

    Attributes:
        asked: the path as spelled.
        spelled: the path made absolute, but not normalized.
        path: the path with no link left.
        intent: what the call means to do with it.
        follows: whether a link in the last place is followed.
        creates: whether the call is an open that makes a missing file.
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
    """Why a caller could not be read: `Gone`, else `PermissionError`: it forbids it, or no descriptor is left."""
    return Gone() if error.errno in (errors.ENOENT, errors.ESRCH) else PermissionError(error.errno, str(error))


def read(path: str, size: int) -> bytes:
    """At most `size` bytes of a file about a caller.

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
    """A caller's program name, empty when it cannot be read."""
    try:
        return read(f"/proc/{pid}/comm", 64).decode("utf-8", "replace").rstrip("\n")
    except (Gone, PermissionError):
        return ""


def in_memory(pid: int, requests: list[tuple[int, int]]) -> list[bytes]:
    """Bytes of the caller's memory for each address and size; fewer than asked for where a mapping ends."""
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
    architecture: Architecture,
    pid: int,
    call: observed_syscalls.Call,
    registers: tuple[int, ...],
    *,
    every: bool = False,
) -> Iterator[NamedPath]:
    """Each path of a call that names one.

    Args:
        architecture: whose calls are read.
        pid: the caller, as the host numbers it.
        call: the call it stands in.
        registers: the call's arguments.
        every: whether the second path of a rename or a link counts where the host has nothing at the first.

    Raises:
        Gone, PermissionError: see `unread`.
    """
    texts, how = _arguments(pid, call, registers)
    flags = observed_syscalls.flags_of(call, registers, how)
    for argument, text in zip(call.paths, texts, strict=True):
        rooted = how is not None and bool(how[2] & _RESOLVE_IN_ROOT)
        start = _start(pid, call, argument, registers, text, rooted=rooted)
        if start is None:
            continue
        base, root, spelled = start
        follows = observed_syscalls.follows(architecture, call, argument, flags)
        path = walk(pid, text, base=base, follows=follows, root=root)
        exists = os.path.lexists(path)
        opens = call.name in observed_syscalls.OPENS
        intent = observed_syscalls.open_intent(flags, exists=exists) if opens else argument.intent
        yield NamedPath(text, spelled, path, intent, follows, opens and bool(flags & observed_syscalls.O_CREAT))
        if len(call.paths) > 1 and not exists and not every:
            return  # a rename or a link of nothing changes nothing


def _arguments(
    pid: int, call: observed_syscalls.Call, registers: tuple[int, ...]
) -> tuple[list[str], tuple[int, int, int] | None]:
    """The texts of a call's paths, and its `struct open_how`, `None` where it has none that can be read."""
    wanted = [(registers[argument.path], _PATH_MAX) for argument in call.paths]
    if call.how >= 0:
        wanted.append((registers[call.how], observed_syscalls.OPEN_HOW_SIZE))
    memory = in_memory(pid, wanted)
    how = None
    if call.how >= 0:
        try:
            how = observed_syscalls.open_how(memory.pop())
        except observed_syscalls.UnreadableArgument:
            how = None
    raw = memory if call.size < 0 else [_socket_path(found, registers[call.size]) for found in memory]
    return [os.fsdecode(found.split(b"\0", 1)[0]) for found in raw], how


def _start(
    pid: int,
    call: observed_syscalls.Call,
    argument: observed_syscalls.PathArgument,
    registers: tuple[int, ...],
    text: str,
    *,
    rooted: bool,
) -> tuple[str, str, str] | None:
    """The directory a path starts from, its root and its absolute spelling; `None` where the call names no path."""
    if text.startswith("/") and not rooted:
        return "/", "/", text
    if not (text or call.empty or call.null):
        return None
    base = _base(pid, observed_syscalls.descriptor(argument, registers))
    if not base.startswith("/"):  # no such descriptor, or one that names no file
        return None
    return base, base if rooted else "/", os.path.join(base, text.lstrip("/")) if text else base


def _socket_path(raw: bytes, size: int) -> bytes:
    """The path of a `struct sockaddr`, empty for one of another kind."""
    try:
        address = sockaddr.parse(raw[: size & 0xFFFFFFFF])
    except sockaddr.MalformedAddress:
        return b""
    return address.path if isinstance(address, sockaddr.Path) else b""


def _base(pid: int, descriptor: int) -> str:
    """The directory a relative path starts from, as the caller sees it."""
    name = "cwd" if descriptor == observed_syscalls.AT_FDCWD else f"fd/{descriptor}"
    try:
        return os.readlink(f"/proc/{pid}/{name}").removesuffix(" (deleted)")
    except OSError as error:
        if name == "cwd" or error.errno not in (errors.ENOENT, errors.ESRCH):
            raise unread(error) from error
        return ""  # no such descriptor: the call fails with EBADF


def _normal(spelled: str) -> str:
    """The path without `.`, `..` and doubled separators, as if it held no link."""
    return "/" + os.path.normpath(spelled).lstrip("/")


def directories_passed(pid: int, spelled: str) -> list[str]:
    """The directories that a path enters and leaves again by `..`; the kernel looks each of them up."""
    if "/.." not in spelled:
        return []
    parts = spelled.split("/")
    return [
        walk(pid, "/".join(parts[:index]), follows=True)
        for index in range(1, len(parts))
        if parts[index] == ".." and parts[index - 1] not in ("", ".", "..")
    ]


def reaching(hidden: str, named: NamedPath) -> str:
    """The whole path that a call names where the way to it leads through `hidden`, else an empty string."""
    for path in (_normal(named.spelled), named.path):
        if path == hidden or path.startswith(hidden + "/"):
            return path
    return ""
