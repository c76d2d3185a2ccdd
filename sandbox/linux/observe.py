"""EFFECT: reads a caller that stands still inside its call, and says what it meant to do.

A caller stands still while its look waits in the mask, or its call waits at the listener. What is read here is for the
report alone: another thread may change the memory a moment later, so no wall rests on it.
"""

from __future__ import annotations

import errno as errors
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from sandbox.contract import Access, Intent
from sandbox.executed import Executed
from sandbox.linux import sockaddr, syscalls
from sandbox.linux.walking import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.linux.holding import Holding
    from sandbox.linux.notification import Notification
    from sandbox.linux.numbers import Architecture

#: Distinct calls remembered of one run; a task that makes more has a partial trace.
DISTINCT_LIMIT = 100_000
#: Characters of their paths remembered of one run; likewise.
TEXT_LIMIT = 32 << 20

_PATH_MAX = 4096
_RESOLVE_IN_ROOT = 0x10
# a caller that is being signalled, read again after so many seconds
_TRIES, _PAUSE = 50, 0.0001


class _Named(NamedTuple):
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


class Recorder:
    """Collects each distinct access once.

    Args:
        served: whether anything may be done with a path: notified calls on it are not collected.
        executed: names no call may make or change.
        holding: answers for held directories, where there are any.

    Attributes:
        architecture: whose calls it reads.
        incomplete: why something was missed, empty while nothing was.
    """

    def __init__(
        self,
        architecture: Architecture,
        *,
        served: Callable[[str], bool] = lambda _path: False,
        executed: Executed | None = None,
        holding: Holding | None = None,
    ) -> None:
        self.architecture = architecture
        self._served = served
        self._executed = executed or Executed()
        self._holding = holding
        self._known: set[tuple[str, Intent, str, str, bool]] = set()
        self._new: list[Access] = []
        self._text = 0
        self.incomplete = ""

    @property
    def waiting(self) -> bool:
        """Whether there is something new since the last call of `drain`."""
        return bool(self._new)

    def drain(self) -> tuple[Access, ...]:
        """What is new since the last call; another thread may be adding."""
        count = len(self._new)
        new = tuple(self._new[:count])
        del self._new[:count]
        return new

    def notified(self, notification: Notification) -> int:
        """A call that waits at the listener; the errno it is to be refused with, 0 to let it go on."""
        call = syscalls.by_number(self.architecture, notification.number)
        if call is None or notification.pid == 0:
            why = f"a notified call could not be attributed (number {notification.number})"
            self.incomplete = self.incomplete or why
            return 0
        answer, brings = 0, False
        going: list[tuple[Intent, str]] = []
        try:
            for named in _paths(self.architecture, notification.pid, call, notification.args):
                for place in _left_again(notification.pid, named.spelled):
                    self._add(notification.pid, call.name, Intent.PROBE, named.asked, place, follows=True)
                barred = self._bars(call.name, named, brings=brings)
                brings = named.intent is Intent.REMOVE and os.path.isdir(named.path)
                held = 0 if self._holding is None else self._holding.answer(call.name, named.intent, named.path)
                refusal = errors.EROFS if barred else held
                answer = answer or refusal
                going.append((named.intent, named.path))
                if refusal or not self._served(named.path):
                    self._add(
                        notification.pid,
                        call.name,
                        named.intent,
                        named.asked,
                        named.path,
                        follows=named.follows,
                        creates=named.creates,
                        errno=errors.errorcode.get(refusal, ""),
                        refused=barred,
                    )
            if self._holding is not None and not answer:
                self._holding.note(going)
        except Gone:
            return answer
        except Exception as error:  # noqa: BLE001  it forbade being read, or whatever: what it names could be anything
            self.incomplete = self.incomplete or f"a call could not be read ({error})"
            watched = bool(self._executed) or self._holding is not None
            return errors.EROFS if watched and syscalls.may_write(call, notification.args) else 0
        return answer

    def _bars(self, call: str, named: _Named, *, brings: bool) -> bool:
        if not self._executed:
            return False
        exists = os.path.lexists(named.path)
        return self._executed.refuses(call, named.intent, named.path, exists=exists, brings=brings)

    def looked(self, thread: int, hidden: str) -> None:
        """A look at a hidden name in the mask.

        Args:
            thread: the caller, as the host numbers it.
            hidden: absolute path of the first hidden name on the way.
        """
        try:
            name, paths = self._standing(thread)
        except Gone:
            name, paths = "lookup", []
        except PermissionError:
            # it forbade being read: the look is all there is, and it counts as the more serious kind
            self._add(thread, "lookup", Intent.OPEN, hidden, hidden, follows=True)
            return
        for named in paths:
            path = _reaching(hidden, named)
            passed = [p for p in _left_again(thread, named.spelled) if p == hidden or p.startswith(hidden + "/")]
            for place in passed:
                self._add(thread, name, Intent.PROBE, named.asked, place, follows=True)
            if path or passed:
                target, follows = path or named.path, named.follows
                self._add(thread, name, named.intent, named.asked, target, follows=follows, creates=named.creates)
                return
        # another name than its arguments': a script's hidden interpreter, a call that is not in the tables
        intent = Intent.EXEC if name in ("execve", "execveat") else Intent.PROBE
        self._add(thread, name, intent, hidden, hidden, follows=True)

    def dialled(
        self,
        thread: int,
        operation: str,
        asked: str,
        *,
        path: str = "",
        errno: str = "",
        reason: str = "",
    ) -> None:
        """A connection that the sandbox refused.

        Args:
            thread: the caller, as the host numbers it.
            operation: the call's name, or `network-outbound`.
            asked: the path as spelled, or `host:port`.
            path: of the socket on the host, empty for a host and a port.
            errno: what the caller was answered.
            reason: why it was refused.
        """
        self._add(
            thread,
            operation,
            Intent.CONNECT,
            asked,
            path,
            follows=True,
            errno=errno,
            refused=True,
            reason=reason,
        )

    def traced(self, access: Access) -> None:
        """A call that a tracer saw, with the kernel's answer."""
        self._add(
            access.pid,
            access.operation,
            access.intent,
            access.asked,
            access.path,
            follows=access.follows,
            errno=access.errno,
            # as it was at the call: by now it may be what the call made
            exists=access.exists,
        )

    def _standing(self, thread: int) -> tuple[str, list[_Named]]:
        for _ in range(_TRIES):
            text = _read(f"/proc/{thread}/syscall", 512).decode("ascii", "replace")
            try:
                standing = syscalls.parse_syscall_line(text)
            except syscalls.Unreadable as error:
                raise Gone from error
            if standing is not None:
                break
            if text.startswith("-1"):  # in no call any more: it is being killed
                raise Gone
            time.sleep(_PAUSE)  # a signal wakes it for a moment, and its call goes on waiting
        else:
            raise PermissionError("it never stands still")
        number, registers = standing
        call = syscalls.by_number(self.architecture, number)
        if call is None:
            return f"syscall {number}", []
        # what a call moves may be kept apart from the host, which then has nothing of that name
        return call.name, list(_paths(self.architecture, thread, call, registers, every=True))

    def _add(
        self,
        pid: int,
        operation: str,
        intent: Intent,
        asked: str,
        path: str,
        *,
        follows: bool,
        creates: bool = False,
        errno: str = "",
        refused: bool = False,
        reason: str = "",
        exists: bool | None = None,
    ) -> None:
        if exists is None:
            exists = os.path.lexists(path)
        key = (operation, intent, asked, path, exists)
        if key in self._known:
            return
        self._text += len(asked) + len(path)
        if len(self._known) >= DISTINCT_LIMIT or self._text > TEXT_LIMIT:
            self.incomplete = self.incomplete or f"more than {len(self._known)} distinct calls"
            return
        self._known.add(key)
        self._new.append(
            Access(
                pid=pid,
                process=_process(pid),
                operation=operation,
                intent=intent,
                asked=asked,
                path=path,
                exists=exists,
                errno=errno,
                follows=follows,
                creates=creates,
                refused=refused,
                reason=reason,
            )
        )


def _unread(error: OSError) -> Exception:
    """What it means that a caller could not be read: it may be gone, or forbid it, or nothing is left to read with."""
    return Gone() if error.errno in (errors.ENOENT, errors.ESRCH) else PermissionError(error.errno, str(error))


def _read(path: str, size: int) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _unread(error) from error
    try:
        return os.read(fd, size)
    except OSError as error:
        raise _unread(error) from error
    finally:
        os.close(fd)


def _process(pid: int) -> str:
    try:
        return _read(f"/proc/{pid}/comm", 64).decode("utf-8", "replace").rstrip("\n")
    except (Gone, PermissionError):
        return ""


def _memory(pid: int, requests: list[tuple[int, int]]) -> list[bytes]:
    """Bytes of the caller's memory; fewer than asked for where a mapping ends."""
    try:
        fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _unread(error) from error
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


def _paths(
    architecture: Architecture, pid: int, call: syscalls.Call, registers: tuple[int, ...], *, every: bool = False
) -> Iterator[_Named]:
    """Each path of a call that names one; but for `every`, only those that matter as far as the host knows."""
    wanted = [(registers[argument.path], _PATH_MAX) for argument in call.paths]
    if call.how >= 0:
        wanted.append((registers[call.how], syscalls.OPEN_HOW_SIZE))
    memory = _memory(pid, wanted)
    how = None
    if call.how >= 0:
        try:
            how = syscalls.open_how(memory.pop())
        except syscalls.Unreadable:
            how = None
    flags = syscalls.flags_of(call, registers, how)
    for argument, found in zip(call.paths, memory, strict=True):
        raw = found if call.size < 0 else _socket_path(found, registers[call.size])
        asked = os.fsdecode(raw.split(b"\0", 1)[0])
        follows = syscalls.follows(architecture, call, argument, flags)
        rooted = how is not None and bool(how[2] & _RESOLVE_IN_ROOT)
        base = root = "/"
        if asked.startswith("/") and not rooted:
            spelled = asked
        elif asked or call.empty or call.null:
            base = _base(pid, syscalls.descriptor(argument, registers))
            if not base.startswith("/"):  # no such descriptor, or one that names no file
                continue
            root = base if rooted else "/"
            spelled = os.path.join(base, asked.lstrip("/")) if asked else base
        else:
            continue
        path = walk(pid, asked, base=base, follows=follows, root=root)
        exists = os.path.lexists(path)
        intent, creates = argument.intent, False
        if call.name in syscalls.OPENS:
            intent = syscalls.open_intent(flags, exists=exists)
            creates = bool(flags & syscalls.O_CREAT)
        yield _Named(asked, spelled, path, intent, follows, creates)
        if len(call.paths) > 1 and not exists and not every:
            return  # a rename or a link of nothing changes nothing


def _socket_path(raw: bytes, size: int) -> bytes:
    """The path of a `struct sockaddr`, empty for one of another kind."""
    try:
        address = sockaddr.parse(raw[: size & 0xFFFFFFFF])
    except sockaddr.Malformed:
        return b""
    return address.path if isinstance(address, sockaddr.Path) else b""


def _base(pid: int, descriptor: int) -> str:
    """The directory a relative path starts from, as the caller sees it."""
    name = "cwd" if descriptor == syscalls.AT_FDCWD else f"fd/{descriptor}"
    try:
        return os.readlink(f"/proc/{pid}/{name}").removesuffix(" (deleted)")
    except OSError as error:
        if name == "cwd" or error.errno not in (errors.ENOENT, errors.ESRCH):
            raise _unread(error) from error
        return ""  # no such descriptor: the call fails with EBADF


def _normal(spelled: str) -> str:
    """Without `.`, `..` and doubled separators, no link looked at."""
    return "/" + os.path.normpath(spelled).lstrip("/")


def _left_again(pid: int, spelled: str) -> list[str]:
    """The directories a path goes into and leaves by `..`: each has to be there, so each is looked at."""
    if "/.." not in spelled:
        return []
    parts = spelled.split("/")
    return [
        walk(pid, "/".join(parts[:index]), follows=True)
        for index in range(1, len(parts))
        if parts[index] == ".." and parts[index - 1] not in ("", ".", "..")
    ]


def _reaching(hidden: str, named: _Named) -> str:
    """The whole path asked for when the way to it leads through `hidden`, else an empty string."""
    for path in (_normal(named.spelled), named.path):
        if path == hidden or path.startswith(hidden + "/"):
            return path
    return ""
