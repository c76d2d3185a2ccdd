"""EFFECT: the paths that a call names, read from a caller that stands still inside it."""

from __future__ import annotations

import errno
import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sandbox.contract.intents import Intent
from sandbox.linux.caller.caller_memory import path_of_descriptor
from sandbox.linux.caller.links_as_caller import CallFails, Unread, file_at, unread
from sandbox.linux.caller.readable_memory import CallerMemory
from sandbox.linux.caller.resolve_path_as_caller import walk
from sandbox.linux.kernel import observed_syscalls, sockaddr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.linux.caller.links_as_caller import TaskTree
    from sandbox.linux.kernel.syscall_numbers import Architecture

_PATH_MAX = 4096
_RENAME_EXCHANGE = 2


class NamedPath(NamedTuple):
    """A path that a call names.

    Attributes:
        asked: the path as spelled.
        spelled: the path made absolute, but not normalized.
        path: the path with no link left.
        passed: the directories that the way to it enters and leaves again by `..`.
        intent: what the call means to do with it.
        follows: whether a link in the last place is followed.
        creates: whether the call is an open that makes a missing file.
        vain: whether the host has no name at the first path of a rename or a link, of which this is the second. A name
            that only the task has may be there. A descriptor is no such path: its file may have no name (`O_TMPFILE`).
        flags: the call's flags, 0 when it has none.
        mode: of an open, the mode of the file it would make.
    """

    asked: str
    spelled: str
    path: str
    passed: tuple[str, ...]
    intent: Intent
    follows: bool
    creates: bool = False
    vain: bool = False
    flags: int = 0
    mode: int = 0


def read(path: str, size: int) -> bytes:
    """At most `size` bytes of a file about a caller.

    Raises:
        Gone, Unread: see `links_as_caller`.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise unread(error, path) from error
    try:
        return os.read(fd, size)
    except OSError as error:
        raise unread(error, path) from error
    finally:
        os.close(fd)


def process(pid: int) -> str:
    """A caller's program name, empty when it cannot be read."""
    try:
        return read(f"/proc/{pid}/comm", 64).decode("utf-8", "replace").rstrip("\n")
    except Unread:
        return ""


def named(
    tree: TaskTree,
    architecture: Architecture,
    pid: int,
    call: observed_syscalls.Call,
    registers: tuple[int, ...],
    *,
    exists: Callable[[str], bool] = os.path.lexists,
) -> Iterator[NamedPath]:
    """Each path of a call that names one.

    Args:
        tree: where links are read.
        architecture: whose calls are read.
        pid: the caller, as the host numbers it.
        call: the call it stands in.
        registers: the call's arguments.
        exists: whether the caller finds something at a path.

    Raises:
        Gone, Unread, CallFails: see `links_as_caller`.
    """
    texts = _arguments(pid, call, registers)
    flags = observed_syscalls.flags_of(call, registers)
    vain = False
    for argument, text in (*zip(call.paths, texts, strict=True), *_exchanged(call, registers, texts)):
        start = _start(pid, call, argument, registers, text)
        if start is None:
            continue
        base, spelled = start
        follows = observed_syscalls.follows(architecture, call, argument, flags)
        path, passed = walk(partial(tree.link, pid), text, base=base, follows=follows)
        there = exists(path)
        opens = call.name in observed_syscalls.OPENS
        intent = observed_syscalls.open_intent(flags, exists=there) if opens else argument.intent
        creates = opens and bool(flags & observed_syscalls.O_CREAT)
        mode = observed_syscalls.mode_of(call, registers) if opens else 0
        yield NamedPath(text, spelled, path, passed, intent, follows, creates, vain, flags, mode)
        vain = len(call.paths) > 1 and not there and observed_syscalls.named_descriptor(text) is None


def _exchanged(
    call: observed_syscalls.Call, registers: tuple[int, ...], texts: list[str]
) -> Iterator[tuple[observed_syscalls.PathArgument, str]]:
    """The first path of an exchange (renameat2(2)) once more: what was at the second becomes it."""
    if call.name == "renameat2" and registers[4] & _RENAME_EXCHANGE:
        yield call.paths[0]._replace(intent=Intent.RENAME), texts[0]


def _arguments(pid: int, call: observed_syscalls.Call, registers: tuple[int, ...]) -> list[str]:
    """The texts of a call's paths."""
    memory = CallerMemory(pid)
    if call.size >= 0:
        raw = [_socket_path(memory, registers[one.path], registers[call.size]) for one in call.paths]
    else:
        flags = observed_syscalls.flags_of(call, registers)
        null = call.null or (call.empty and bool(flags & observed_syscalls.AT_EMPTY_PATH))
        raw = [
            b"" if null and not registers[one.path] else memory.text(registers[one.path], _PATH_MAX)
            for one in call.paths
        ]
    return [os.fsdecode(found) for found in raw]


def _start(
    pid: int,
    call: observed_syscalls.Call,
    argument: observed_syscalls.PathArgument,
    registers: tuple[int, ...],
    text: str,
) -> tuple[str, str] | None:
    """The directory a path starts from, and its absolute spelling; `None` where the call names no path."""
    if text.startswith("/"):
        return "/", text
    if not (text or call.empty or call.null):
        return None
    base = _base(pid, observed_syscalls.descriptor(argument, registers))
    if not base.startswith("/"):  # a pipe, a socket
        if text:
            raise CallFails(errno.ENOTDIR)
        return None
    return base, os.path.join(base, text) if text else base


def _socket_path(memory: CallerMemory, at: int, size: int) -> bytes:
    """The path of a `struct sockaddr`, empty for one of another kind."""
    size &= 0xFFFFFFFF
    if size > sockaddr.STORAGE:
        raise CallFails(errno.EINVAL)
    try:
        address = sockaddr.parse(memory.exactly(at, size))
    except sockaddr.MalformedAddress:
        return b""
    return address.path.split(b"\0", 1)[0] if isinstance(address, sockaddr.Path) else b""


def _base(pid: int, descriptor: int) -> str:
    """The directory a relative path starts from, as the caller sees it."""
    if descriptor == observed_syscalls.AT_FDCWD:
        try:
            return file_at(os.readlink(f"/proc/{pid}/cwd"))
        except OSError as error:
            raise unread(error, f"the working directory of process {pid}") from error
    try:
        try:
            return file_at(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
        except PermissionError:  # the files of an undumpable process belong to root
            return file_at(path_of_descriptor(pid, descriptor))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ESRCH, errno.EBADF):
            raise CallFails(errno.EBADF) from error
        raise unread(error, f"descriptor {descriptor} of process {pid}") from error


def _normal(spelled: str) -> str:
    """The path without `.`, `..` and doubled separators, as if it held no link."""
    return "/" + os.path.normpath(spelled).lstrip("/")


def reaching(hidden: str, named: NamedPath) -> str:
    """The whole path that a call names where the way to it leads through `hidden`, else an empty string."""
    for path in (_normal(named.spelled), named.path):
        if path == hidden or path.startswith(hidden + "/"):
            return path
    return ""
