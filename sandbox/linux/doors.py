"""EFFECT: the two descriptors a task knocks at, the mask's and the listener's, each request answered."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import time
from typing import TYPE_CHECKING

from sandbox.linux import fuse, notification
from sandbox.linux.masktree import MaskTree, Seen

if TYPE_CHECKING:
    from sandbox.linux.observe import Recorder
    from sandbox.plan.ops import Operation

# the largest write the mask announces, its header, and what the kernel insists on
_READ_SIZE = (1 << 20) + 4096 + 8192
# served in one go before the other doors are looked at
_BURST = 64


class Doors:
    """Answers looks and notified calls, and hands each to the recorder.

    Args:
        operations: the plan, for what the mask shows.
        boundary: directories in which every look at a hidden name must arrive; elsewhere the kernel may remember.
    """

    def __init__(self, operations: tuple[Operation, ...], boundary: tuple[str, ...], recorder: Recorder) -> None:
        slashed = tuple(directory.rstrip("/") + "/" for directory in boundary)
        self._tree = MaskTree(operations, remember_missing=lambda path: not (path + "/").startswith(slashed))
        self._recorder = recorder
        self._mask = -1
        self._listener = -1
        self._owner = (0, 0)
        self._time = time.time_ns()

    def open_mask(self, device: int, uid: int, gid: int) -> int:
        """Serve the mask from `device`; everything in it belongs to `uid` and `gid`."""
        # a request can be withdrawn between poll and read, and a blocking read would then hang every other door
        os.set_blocking(device, False)
        self._mask, self._owner = device, (uid, gid)
        return device

    def open_listener(self, listener: int) -> int:
        """Serve the filter's notifications."""
        with contextlib.suppress(OSError):  # Linux before 6.6: slower, no other difference
            fcntl.ioctl(listener, notification.SET_FLAGS, notification.SYNC_WAKE_UP)
        self._listener = listener
        return listener

    def serve(self, descriptor: int, event: int) -> bool:
        """Answer what waits at a door; false once it is closed for good."""
        if descriptor == self._mask:
            return self._serve_mask()
        if event & select.POLLIN:
            self._serve_listener()
            return True
        return False

    def _serve_mask(self) -> bool:
        for _ in range(_BURST):
            try:
                raw = os.read(self._mask, _READ_SIZE)
            except BlockingIOError:
                return True
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT):  # withdrawn
                    continue
                if error.errno == errno.ENODEV:  # unmounted
                    return False
                raise
            self._answer(raw)
        return True

    def _answer(self, raw: bytes) -> None:
        try:
            request = fuse.parse(raw)
        except fuse.Malformed as error:
            self._missed(error)
            # the header alone is enough to answer
            if len(raw) >= fuse.HEADER_SIZE:
                self._reply(fuse.error(int.from_bytes(raw[8:16], "little"), errno.EIO))
            return
        answer: bytes | Seen | None
        try:
            answer = self._tree.answer(request, now=self._time, owner=self._owner)
            if isinstance(answer, Seen):
                # recorded before the answer: until then the caller stands still
                self._recorder.looked(request.pid, answer.path)
                answer = answer.reply
        except Exception as error:  # noqa: BLE001  whatever it is, the caller must be answered
            self._missed(error)
            answer = fuse.error(request.unique, errno.EIO)
        if answer is not None:
            self._reply(answer)

    def _reply(self, answer: bytes) -> None:
        try:
            os.write(self._mask, answer)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):  # the asker is gone
                raise

    def _serve_listener(self) -> None:
        raw = bytearray(notification.SIZE)
        try:
            fcntl.ioctl(self._listener, notification.RECV, raw)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):  # withdrawn: its caller was killed
                return
            raise
        seen = notification.parse(raw)
        try:
            self._recorder.notified(seen)
        except Exception as error:  # noqa: BLE001  whatever it is, the caller must be answered
            self._missed(error)
        try:
            fcntl.ioctl(self._listener, notification.SEND, bytearray(notification.go_on(seen.id)))
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise

    def _missed(self, error: Exception) -> None:
        self._recorder.incomplete = self._recorder.incomplete or f"a call could not be read ({error})"
