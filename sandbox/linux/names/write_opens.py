"""EFFECT: opens for writing beneath directories of granted names, which the warden makes on what the kernel found.

Landlock knows places and all beneath them, and a file that is yet to be made is no place. So it withholds the right to
write from the whole directory a granted name stands in: a FIFO beside the name would be written to otherwise. What may
be written there the warden opens, and hands in. It opens what lies on a mount that can be written to, and nothing else.
What it lets go on meets Landlock, whatever the task changed after the look.
"""

from __future__ import annotations

import _thread
import errno
import fcntl
import os
import stat
import struct
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.linux.caller import reach_as_caller
from sandbox.linux.caller.caller_memory import Caller
from sandbox.linux.caller.worker_threads import WorkerThreads
from sandbox.linux.kernel import kernel_calls, seccomp_notification
from sandbox.linux.kernel.observed_syscalls import AT_FDCWD, O_TMPFILE_BIT, OPENS, by_number, descriptor
from sandbox.linux.kernel.set_id_bits import without_set_id
from sandbox.linux.mask.served.inodes import magic_link
from sandbox.linux.names.handed_in import handed_in
from sandbox.linux.names.read_call import HandedDescriptor, umask
from sandbox.linux.names.waiting_pipes import WaitingPipe, WaitingPipes, open_now
from sandbox.planning.writable_places import writable_places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sandbox.linux.caller.call_paths import NamedPath
    from sandbox.linux.kernel.seccomp_notification import Notification
    from sandbox.linux.kernel.syscall_numbers import Architecture
    from sandbox.planning.operations import Operation

#: The most opens at once; one may wait for whoever holds a lease of the file (F_SETLEASE in fcntl(2)).
_THREADS = 64
#: In a descriptor's place: the call is answered later.
_LATER = -1
_LINKS = 40
_EXCLUSIVE = os.O_CREAT | os.O_EXCL
_NOT_AGAIN = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_DIRECTORY


class WriteOpens:
    """The opens of one task that the warden makes.

    Args:
        operations: the plan.
        own: gets the threads that work for the task; lookups of theirs in the mask are not the task's.
        missed: called with the error of a call that could not be made.
    """

    def __init__(
        self,
        operations: Iterable[Operation],
        architecture: Architecture,
        own: set[int],
        *,
        missed: Callable[[Exception], object],
    ) -> None:
        places = writable_places(operations, masked=True, answered=True)
        self._names = tuple(place.path for place in places if place.changes == "names")
        self._rest = tuple(place.path for place in places if place.changes != "names")
        self._architecture = architecture
        self._numbers = frozenset(architecture.numbers[name] for name in OPENS if name in architecture.numbers)
        self._own = own
        self._missed = missed
        self._threads = WorkerThreads(_THREADS, missed)
        self._pipes = WaitingPipes(enter=self._enter, is_there=self._is_there, answer=self._answer, missed=missed)
        self._listener = -1

    def open(self, listener: int) -> None:
        """Answer the calls that wait at `listener`."""
        self._listener = listener

    def takes(self, seen: Notification, named: tuple[NamedPath, ...]) -> bool:
        """Whether a notified call opens for writing where Landlock lets nothing be written."""
        if seen.number not in self._numbers or not named or named[0].asked.endswith("/"):
            return False
        flags, path = named[0].flags, named[0].path
        if flags & os.O_PATH or not flags & os.O_ACCMODE:
            return False
        return _in(path, self._names) and not _in(path, self._rest)

    def serve(self, seen: Notification, named: NamedPath) -> None:
        """Make a call, in another thread: the file may be one that this thread serves."""
        try:
            self._threads.do(lambda: self._make(seen, named))
        except RuntimeError as error:
            self._missed(error)
            self._answer(seen, BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)))

    def settle(self, seconds: float) -> bool:
        """Wait until every call was answered; false where one was not within `seconds`."""
        return self._threads.settle(seconds) and self._pipes.settle(seconds)

    def _make(self, seen: Notification, named: NamedPath) -> None:
        answer: HandedDescriptor | OSError | None
        try:
            opened = self._opened(seen, named)
            if opened == _LATER:
                return
            answer = None if opened is None else HandedDescriptor(opened, named.flags & os.O_CLOEXEC)
        except OSError as error:
            answer = error
        except Exception as error:  # noqa: BLE001  the caller must be answered in any case
            self._missed(error)
            answer = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        self._answer(seen, answer)

    def _answer(self, seen: Notification, answer: HandedDescriptor | OSError | None) -> None:
        """End a call with a descriptor or an error; `None` lets it go on."""
        if answer is None:
            record = seccomp_notification.go_on(seen.id)
        elif isinstance(answer, OSError):
            record = seccomp_notification.fail(seen.id, answer.errno or errno.EIO)
        else:
            record = handed_in(self._listener, seen.id, answer)
        try:
            fcntl.ioctl(self._listener, seccomp_notification.SEND, bytearray(record))
        except OSError as error:
            if error.errno != errno.ENOENT:  # ENOENT: the caller was killed
                raise

    def _opened(self, seen: Notification, named: NamedPath) -> int | None:
        """The file of a call, opened; `None` where the call goes on, `_LATER` where it waits for a reader."""
        self._enter()
        flags, path = named.flags, os.fsencode(named.asked)
        with Caller(seen.pid) as caller:
            start = self._start(seen, caller, path)
            try:
                mode = without_set_id(named.mode, 0) & ~umask(seen.pid)
                self._still(seen)
                follows = not flags & os.O_NOFOLLOW and flags & _EXCLUSIVE != _EXCLUSIVE
                try:
                    place = reach_as_caller.reach(seen.pid, path, start=start, follows=follows)
                except FileNotFoundError:
                    return _made(seen.pid, path, start, flags, mode)
                except OSError:  # the kernel says itself what is wrong with the path
                    return None
                try:
                    return self._of_place(seen, place, flags, mode)
                finally:
                    os.close(place)
            finally:
                if start is not None:
                    os.close(start)

    def _start(self, seen: Notification, caller: Caller, path: bytes) -> int | None:
        """A copy of the descriptor that a relative path starts from, `None` where it starts from none."""
        call = by_number(self._architecture, seen.number)
        number = AT_FDCWD if call is None else descriptor(call.paths[0], seen.args)
        return None if number == AT_FDCWD or path.startswith(b"/") else caller.descriptor(number)

    def _of_place(self, seen: Notification, place: int, flags: int, mode: int) -> int | None:
        kind = os.fstat(place).st_mode
        if not _writable(place) or flags & _EXCLUSIVE == _EXCLUSIVE:
            return None
        wanted = flags | os.O_CLOEXEC | os.O_NOCTTY
        if flags & O_TMPFILE_BIT:
            return os.open(magic_link(place), wanted, mode) if stat.S_ISDIR(kind) else None
        wanted &= ~_NOT_AGAIN
        if stat.S_ISFIFO(kind):
            return self._pipe(seen, place, wanted)
        return os.open(magic_link(place), wanted) if stat.S_ISREG(kind) else None

    def _pipe(self, seen: Notification, place: int, wanted: int) -> int:
        """Open a FIFO, as soon as somebody reads from it (fifo(7))."""
        try:
            return open_now(place, wanted)
        except OSError as error:
            if error.errno != errno.ENXIO or wanted & os.O_NONBLOCK:
                raise
        held = os.dup(place)
        try:
            self._pipes.add(WaitingPipe(seen, held, wanted))
        except OSError:
            os.close(held)
            raise
        return _LATER

    def _enter(self) -> None:
        thread = _thread.get_native_id()
        if thread not in self._own:
            self._own.add(thread)
            # a file is opened by the rights that the task itself has
            kernel_calls.drop_file_capabilities()

    def _is_there(self, seen: Notification) -> bool:
        try:
            self._still(seen)
        except OSError:
            return False
        return True

    def _still(self, seen: Notification) -> None:
        """Raise `OSError` unless the call still waits: its caller's number may be another's (seccomp_unotify(2))."""
        fcntl.ioctl(self._listener, seccomp_notification.ID_VALID, struct.pack("<Q", seen.id))


def _made(thread: int, path: bytes, start: int | None, flags: int, mode: int) -> int | None:
    """A file made for a call that asks for that; `None` where the kernel says itself what is wrong with the path."""
    if not flags & os.O_CREAT or flags & os.O_DIRECTORY:
        return None
    held: list[int] = []
    try:
        for _ in range(_LINKS):
            directory, _, name = path.rpartition(b"/")
            above = b"/" if path.startswith(b"/") and not directory else directory or b"."
            held.append(reach_as_caller.reach(thread, above, start=held[-1] if held else start))
            try:
                # a link that leads nowhere has the file made where it leads
                path = os.readlink(name, dir_fd=held[-1])
            except OSError:
                return _made_in(held[-1], name, flags, mode) if _writable(held[-1]) else None
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
            raise
    finally:
        for fd in held:
            os.close(fd)
    return None


def _made_in(holder: int, name: bytes, flags: int, mode: int) -> int | None:
    wanted = flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
    opened = os.open(name, wanted, mode, dir_fd=holder)
    if not stat.S_ISREG(os.fstat(opened).st_mode):  # somebody else put another thing there meanwhile
        os.close(opened)
        return None
    os.set_blocking(opened, not flags & os.O_NONBLOCK)
    return opened


def _writable(place: int) -> bool:
    """Whether a file lies on a mount that the task may write to."""
    return not os.fstatvfs(place).f_flag & os.ST_RDONLY


def _in(path: str, places: tuple[str, ...]) -> bool:
    return any(paths.at_or_under(path, place) for place in places)
