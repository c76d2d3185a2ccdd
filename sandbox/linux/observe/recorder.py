"""EFFECT: reads a caller that stands still inside its call, and says what it meant to do.

A caller stands still while its look waits in the mask, or its call waits at the listener. What is read here is for the
report alone: another thread may change the memory a moment later, so no wall rests on it.
"""

from __future__ import annotations

import errno as errors
import os
import time
from typing import TYPE_CHECKING

from sandbox.contract.intents import Intent
from sandbox.contract.results import Access
from sandbox.linux.caller import call_paths
from sandbox.linux.kernel import syscall_table
from sandbox.request.protected_names import ProtectedNames

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.linux.kernel.seccomp_notification import Notification
    from sandbox.linux.kernel.syscall_numbers import Architecture
    from sandbox.linux.observe.held_calls import HeldDirectories

#: Distinct calls remembered of one run; a task that makes more has a partial trace.
DISTINCT_LIMIT = 100_000
#: Characters of their paths remembered of one run; likewise.
TEXT_LIMIT = 32 << 20

# a caller that is being signalled, read again after so many seconds
_TRIES, _PAUSE = 50, 0.0001


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
        executed: ProtectedNames | None = None,
        holding: HeldDirectories | None = None,
    ) -> None:
        self.architecture = architecture
        self._served = served
        self._executed = executed or ProtectedNames()
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
        call = syscall_table.by_number(self.architecture, notification.number)
        if call is None or notification.pid == 0:
            why = f"a notified call could not be attributed (number {notification.number})"
            self.incomplete = self.incomplete or why
            return 0
        answer, brings = 0, False
        going: list[tuple[Intent, str]] = []
        try:
            for named in call_paths.named(self.architecture, notification.pid, call, notification.args):
                for place in call_paths.left_again(notification.pid, named.spelled):
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
        except call_paths.Gone:
            return answer
        except Exception as error:  # noqa: BLE001  it forbade being read, or whatever: what it names could be anything
            self.incomplete = self.incomplete or f"a call could not be read ({error})"
            watched = bool(self._executed) or self._holding is not None
            return errors.EROFS if watched and syscall_table.may_write(call, notification.args) else 0
        return answer

    def _bars(self, call: str, named: call_paths.NamedPath, *, brings: bool) -> bool:
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
        except call_paths.Gone:
            name, paths = "lookup", []
        except PermissionError:
            # it forbade being read: the look is all there is, and it counts as the more serious kind
            self._add(thread, "lookup", Intent.OPEN, hidden, hidden, follows=True)
            return
        for named in paths:
            path = call_paths.reaching(hidden, named)
            passed = [
                p for p in call_paths.left_again(thread, named.spelled) if p == hidden or p.startswith(hidden + "/")
            ]
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
        refused: bool = True,
    ) -> None:
        """A connection that the sandbox refused.

        Args:
            thread: the caller, as the host numbers it.
            operation: the call's name, or `network-outbound`.
            asked: the path as spelled, or `host:port`.
            path: of the socket on the host, empty for a host and a port.
            errno: what the caller was answered.
            reason: why it was refused.
            refused: false for one that counts for nothing, and of which a failed task is told.
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
        """A call that a tracer saw, with the kernel's answer."""
        self._add(
            access.pid,
            access.operation,
            access.intent,
            access.asked,
            access.path,
            follows=access.follows,
            errno=access.errno,
            refused=access.refused,
            # as it was at the call: by now it may be what the call made
            exists=access.exists,
        )

    def _standing(self, thread: int) -> tuple[str, list[call_paths.NamedPath]]:
        for _ in range(_TRIES):
            text = call_paths.read(f"/proc/{thread}/syscall", 512).decode("ascii", "replace")
            try:
                standing = syscall_table.parse_syscall_line(text)
            except syscall_table.UnreadableArgument as error:
                raise call_paths.Gone from error
            if standing is not None:
                break
            if text.startswith("-1"):  # in no call any more: it is being killed
                raise call_paths.Gone
            time.sleep(_PAUSE)  # a signal wakes it for a moment, and its call goes on waiting
        else:
            raise PermissionError("it never stands still")
        number, registers = standing
        call = syscall_table.by_number(self.architecture, number)
        if call is None:
            return f"syscall {number}", []
        # what a call moves may be kept apart from the host, which then has nothing of that name
        return call.name, list(call_paths.named(self.architecture, thread, call, registers, every=True))

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
