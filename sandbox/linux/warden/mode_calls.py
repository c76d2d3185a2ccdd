"""EFFECT: changes of a mode that would set a set-ID bit, which the warden makes without it for the task.

A file with such a bit runs as whoever ran the task. The kernel itself drops a set-group-ID bit without a word where the
file's owner is not of its group (chmod(2)), so programs live with that.
"""

from __future__ import annotations

import _thread
import errno
import fcntl
import os
import struct
from typing import TYPE_CHECKING

from sandbox.linux.caller import reach_as_caller
from sandbox.linux.caller.caller_memory import Caller, UnreadableMemory
from sandbox.linux.caller.worker_threads import WorkerThreads
from sandbox.linux.kernel import kernel_calls, seccomp_notification
from sandbox.linux.kernel.observed_syscalls import AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW, signed
from sandbox.linux.kernel.seccomp_filter import CHANGES_MODE
from sandbox.linux.kernel.set_id_bits import SET_ID, without_set_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.linux.kernel.seccomp_notification import Notification
    from sandbox.linux.kernel.syscall_numbers import Architecture

_FLAGS = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW


class ModeCalls:
    """The calls of one task that would set such a bit.

    Args:
        own: gets the threads that work for the task; lookups of theirs in the mask are not the task's.
        missed: called with the error of a call that could not be read or made.
    """

    def __init__(self, architecture: Architecture, own: set[int], *, missed: Callable[[Exception], object]) -> None:
        self._own = own
        self._missed = missed
        numbers = architecture.numbers
        self._calls = {numbers[name]: name for name in CHANGES_MODE if name in numbers}
        self._threads = WorkerThreads(1, missed)
        self._listener = -1

    def open(self, listener: int) -> None:
        """Answer the calls that wait at `listener`."""
        self._listener = listener

    def takes(self, seen: Notification) -> bool:
        """Whether a notified call would set a set-ID bit."""
        name = self._calls.get(seen.number)
        return name is not None and bool(seen.args[CHANGES_MODE[name]] & SET_ID)

    def names_no_path(self, seen: Notification) -> bool:
        """Whether a notified call has a descriptor alone, which leads where the task was let already."""
        return self._calls.get(seen.number) == "fchmod"

    def serve(self, seen: Notification) -> None:
        """Make a call, in another thread: the file may be one that this thread serves."""
        try:
            self._threads.do(lambda: self._answer(seen))
        except RuntimeError as error:
            self._missed(error)
            self._tell(seccomp_notification.fail(seen.id, errno.EAGAIN))

    def settle(self, seconds: float) -> bool:
        """Wait until every call was answered; false where one was not within `seconds`."""
        return self._threads.settle(seconds)

    def _answer(self, seen: Notification) -> None:
        try:
            self._make(seen)
            answer = seccomp_notification.value(seen.id, 0)
        except OSError as error:
            answer = seccomp_notification.fail(seen.id, error.errno or errno.EIO)
        except Exception as error:  # noqa: BLE001  the caller must be answered in any case
            self._missed(error)
            answer = seccomp_notification.fail(seen.id, errno.EPERM)
        self._tell(answer)

    def _tell(self, answer: bytes) -> None:
        try:
            fcntl.ioctl(self._listener, seccomp_notification.SEND, bytearray(answer))
        except OSError as error:
            if error.errno != errno.ENOENT:  # ENOENT: the caller was killed
                raise

    def _make(self, seen: Notification) -> None:
        self._enter()
        name = self._calls[seen.number]
        if seen.pid == 0:
            raise UnreadableMemory("a notified call could not be attributed")
        # The kernel passes over every bit beside these (S_IALLUGO).
        mode = seen.args[CHANGES_MODE[name]] & 0o7777
        with Caller(seen.pid) as caller:
            descriptor = self._file(seen, caller, name)
            try:
                kind = os.fstat(descriptor).st_mode
                # this process's own link leads to the very file, whose mount counts as it does for the task
                place: int | str = descriptor if name == "fchmod" else f"/proc/self/fd/{descriptor}"
                os.chmod(place, without_set_id(mode, kind))
            finally:
                os.close(descriptor)

    def _enter(self) -> None:
        thread = _thread.get_native_id()
        if thread not in self._own:
            self._own.add(thread)
            # a mode is set by the rights that the task itself has over the file
            kernel_calls.drop_file_capabilities()

    def _file(self, seen: Notification, caller: Caller, name: str) -> int:
        """A descriptor of the file that a call names."""
        if name == "fchmod":
            descriptor = caller.descriptor(signed(seen.args[0]))
            self._still(seen)
            return descriptor
        directory = AT_FDCWD if name == "chmod" else signed(seen.args[0])
        path = caller.text(seen.args[0 if name == "chmod" else 1])
        flags = seen.args[3] & 0xFFFFFFFF if name == "fchmodat2" else 0
        if flags & ~_FLAGS:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if not path and not flags & AT_EMPTY_PATH:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        start = None if directory == AT_FDCWD or path.startswith(b"/") else caller.descriptor(directory)
        self._still(seen)
        if not path and start is not None:
            return start
        try:
            follows = not flags & AT_SYMLINK_NOFOLLOW
            return reach_as_caller.reach(seen.pid, path or b".", start=start, follows=follows)
        finally:
            if start is not None:
                os.close(start)

    def _still(self, seen: Notification) -> None:
        """Raise `OSError` unless the call still waits: its caller's number may be another's (seccomp_unotify(2))."""
        fcntl.ioctl(self._listener, seccomp_notification.ID_VALID, struct.pack("<Q", seen.id))
