"""EFFECT: records what callers meant to do, each read while it stands still inside its call.

A caller stands still while its lookup waits in the mask, or its call waits at the listener. The record is for the
report alone: another thread may change the caller's memory a moment later, so no wall rests on what was read.
"""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from sandbox.contract.intents import WRITE_INTENTS, Intent
from sandbox.contract.results import Access
from sandbox.linux.caller import call_paths
from sandbox.linux.caller.links_as_caller import CallFails, Gone, TaskTree, Unread
from sandbox.linux.kernel import observed_syscalls
from sandbox.request.protected_names import ProtectedNames

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.linux.kernel.seccomp_notification import Notification
    from sandbox.linux.kernel.syscall_numbers import Architecture

#: The most distinct calls recorded of one run; a task that makes more has a partial trace.
DISTINCT_LIMIT = 100_000
#: The most characters in the paths of those calls; likewise.
TEXT_LIMIT = 32 << 20

# a caller whose call a signal interrupted, or that has not gone to sleep in it for want of a processor, is read again
# after each of these; 0.3 seconds together
_PAUSES = tuple(0.0001 * 1.1**count for count in range(60))


class CallAnswer(NamedTuple):
    """The answer to a call that waits.

    Attributes:
        errno: what the call is refused with, 0 to let it go on.
        unread: what could not be read of it, empty where all was; a hole in the trace if its caller is there to be
            answered.
        paths: what it names, read once; empty for a call that is refused.
    """

    errno: int
    unread: str = ""
    paths: tuple[call_paths.NamedPath, ...] = ()


class Recorder:
    """Collects each distinct access of a task once.

    Args:
        architecture: whose calls are read.
        served: whether the task may do anything with a path: notified calls on it are not collected.
        executed: names that other programs execute, which no call may make or change.
        tree: where the links of the task's paths are read.

    Attributes:
        architecture: whose calls are read.
        incomplete: why something was missed, empty while nothing was.
    """

    def __init__(
        self,
        architecture: Architecture,
        *,
        served: Callable[[str], bool] = lambda _path: False,
        executed: ProtectedNames | None = None,
        tree: TaskTree | None = None,
    ) -> None:
        self.architecture = architecture
        self.tree = tree or TaskTree()
        self._served = served
        self._executed = executed or ProtectedNames()
        self._made: Callable[[str], bool] = lambda _path: False
        self._seen: Callable[[str], bool] = os.path.lexists
        self._way: Callable[[str], bool] = lambda _path: False
        self._known: set[tuple[str, Intent, str, str, bool]] = set()
        self._new: list[Access] = []
        self._text = 0
        self.incomplete = ""

    def missed(self, why: str) -> None:
        """Say why not everything was seen; the first reason counts."""
        self.incomplete = self.incomplete or why

    @property
    def waiting(self) -> bool:
        """Whether an access was recorded since the last call of `drain`."""
        return bool(self._new)

    def drain(self) -> tuple[Access, ...]:
        """The accesses recorded since the last call, while another thread may record more."""
        count = len(self._new)
        new = tuple(self._new[:count])
        del self._new[:count]
        return new

    def learn_names(self, made: Callable[[str], bool], seen: Callable[[str], bool], way: Callable[[str], bool]) -> None:
        """Learn of what a task sees beside granted names, where no mask serves them.

        Args:
            made: whether a path is a name that the task made apart from the host, or below one.
            seen: whether the task sees something at such a path.
            way: whether a directory is shown since it leads to granted names.
        """
        self._made, self._seen, self._way = made, seen, way

    def _exists(self, path: str) -> bool:
        return self._seen(path) if self._made(path) else os.path.lexists(path)

    def notified(self, notification: Notification) -> CallAnswer:
        """Record a call that waits at the listener, and say how it is to be answered."""
        pid = notification.pid
        call = observed_syscalls.by_number(self.architecture, notification.number)
        if call is None or pid == 0:
            return CallAnswer(errno.EACCES, f"a notified call could not be attributed (number {notification.number})")
        answer, brings = 0, False
        paths: list[call_paths.NamedPath] = []
        try:
            for named in call_paths.named(
                self.tree, self.architecture, pid, call, notification.args, exists=self._exists
            ):
                refusal = self._notified_path(pid, call.name, named, brings=brings)
                brings = named.intent in {Intent.REMOVE, Intent.RENAME} and os.path.isdir(named.path)
                answer = answer or refusal
                paths.append(named)
        except CallFails as error:
            return CallAnswer(answer or error.errno)
        except Unread as error:
            return CallAnswer(
                answer or error.errno, f"a call could not be read, and was refused ({call.name}: {error})"
            )
        return CallAnswer(answer, paths=() if answer else tuple(paths))

    def _notified_path(self, pid: int, call: str, named: call_paths.NamedPath, *, brings: bool) -> int:
        """Record one path of a notified call; the errno to refuse the call with, 0 for none."""
        for directory in named.passed:
            self._add(pid, call, Intent.PROBE, named.asked, directory, follows=True)
        protected = self._protects(call, named, brings=brings)
        refusal = errno.EROFS if protected else 0
        seen = self._made(named.path) or (named.intent not in WRITE_INTENTS and self._way(named.path))
        # A rename or a link from nowhere makes nothing, unless it comes from where only the task can look.
        if refusal or not (named.vain or seen or self._served(named.path)):
            self._add(
                pid,
                call,
                named.intent,
                named.asked,
                named.path,
                follows=named.follows,
                creates=named.creates,
                errno=errno.errorcode.get(refusal, ""),
                refused=protected,
            )
        return refusal

    def _protects(self, call: str, named: call_paths.NamedPath, *, brings: bool) -> bool:
        if not self._executed:
            return False
        exists = self._exists(named.path)
        return self._executed.refuses(call, named.intent, named.path, exists=exists, brings=brings)

    def hidden_lookup(self, thread: int, hidden: str) -> None:
        """Record a lookup of a hidden name in the mask.

        Args:
            thread: the caller, as the host numbers it.
            hidden: absolute path of the first hidden name on the way.
        """
        try:
            name, named_paths = self._standing(thread)
        except Gone:
            name, named_paths = "lookup", []
        except (Unread, CallFails):
            # a caller that may not be read counts as one that opens, the more serious kind
            self._add(thread, "lookup", Intent.OPEN, hidden, hidden, follows=True)
            return
        for named in named_paths:
            path = call_paths.reaching(hidden, named)
            passed = [one for one in named.passed if one == hidden or one.startswith(hidden + "/")]
            for directory in passed:
                self._add(thread, name, Intent.PROBE, named.asked, directory, follows=True)
            if path or passed:
                target, follows = path or named.path, named.follows
                self._add(thread, name, named.intent, named.asked, target, follows=follows, creates=named.creates)
                return
        # the kernel also looks up names that no argument holds: a script's interpreter, those of unlisted calls
        # or, for an open, what the caller wrote over its path meanwhile
        opens = Intent.OPEN if name in observed_syscalls.OPENS else Intent.PROBE
        intent = Intent.EXEC if name in ("execve", "execveat") else opens
        self._add(thread, name, intent, hidden, hidden, follows=True)

    def closed_listing(self, thread: int, directory: str) -> None:
        """Record that a directory whose content is closed was listed; the call names a descriptor alone."""
        self._add(thread, "getdents64", Intent.OPEN, directory, directory, follows=True)

    def connection(
        self,
        thread: int,
        operation: str,
        asked: str,
        *,
        path: str = "",
        errno: str = "",
        reason: str = "",
        refused: bool = True,
    ) -> None:
        """Record a connection that the sandbox refused.

        Args:
            thread: the caller, as the host numbers it.
            operation: the call's name, or `network-outbound`.
            asked: the path as spelled, or `host:port`.
            path: the socket's path on the host, empty for a host and a port.
            errno: the name of the errno that the caller got.
            reason: why the connection was refused.
            refused: false for a connection that counts for nothing, which is told where the task fails.
        """
        self._add(
            thread,
            operation,
            Intent.CONNECT,
            asked,
            path,
            follows=True,
            errno=errno,
            refused=refused,
            reason=reason,
        )

    def traced(self, access: Access) -> None:
        """Record a call that a tracer saw, with the kernel's answer."""
        self._add(
            access.pid,
            access.operation,
            access.intent,
            access.asked,
            access.path,
            follows=access.follows,
            errno=access.errno,
            refused=access.refused,
            # existence at the time of the call: by now the call may have made it
            exists=access.exists,
        )

    def _standing(self, thread: int) -> tuple[str, list[call_paths.NamedPath]]:
        for pause in _PAUSES:
            text = call_paths.read(f"/proc/{thread}/syscall", 512).decode("ascii", "replace")
            try:
                standing = observed_syscalls.parse_syscall_line(text)
            except observed_syscalls.UnreadableArgument as error:
                raise Gone("it stands in no call") from error
            if standing is not None:
                break
            if text.startswith("-1"):  # outside any call: the caller is being killed
                raise Gone("it stands in no call")
            time.sleep(pause)  # a signal wakes the caller for a moment, and its call goes on waiting
        else:
            raise Unread("the caller never stands still")
        number, registers = standing
        call = observed_syscalls.by_number(self.architecture, number)
        if call is None:
            return f"syscall {number}", []
        return call.name, list(call_paths.named(self.tree, self.architecture, thread, call, registers))

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
            self.missed(f"more than {len(self._known)} distinct calls")
            return
        self._known.add(key)
        self._new.append(
            Access(
                pid=pid,
                process=call_paths.process(pid),
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
