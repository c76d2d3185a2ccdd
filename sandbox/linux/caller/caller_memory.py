"""EFFECT: the memory and the descriptors of a thread that stands in a call, and calls made on its sockets.

Bytes that a caller named are read once, and the copy is used from then on: the caller may change them meanwhile. Each
call raises `OSError` with the number that the caller is to be answered.
"""

from __future__ import annotations

import _socket
import ctypes
import errno
import os
import re
import socket
from typing import TYPE_CHECKING, Any, Self

from sandbox.linux.kernel import sockaddr

if TYPE_CHECKING:
    from types import TracebackType

_libc = ctypes.CDLL(None, use_errno=True)

_SYS_OPENAT2 = 437
_SYS_PIDFD_GETFD = 438
_PIDFD_THREAD = os.O_EXCL  # pidfd_open(2), Linux 6.9; before it, a pidfd names a process, of one table of descriptors

PAGE = 4096

RESOLVE_NO_MAGICLINKS = 2
RESOLVE_BENEATH = 8
RESOLVE_IN_ROOT = 0x10

# errors of this process's own attempt to read, which are no answer to the caller
_OURS = (errno.EPERM, errno.EACCES, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class SocketCopy(socket.socket):
    """A copy of a caller's socket; `family` and `type` are bare numbers, since an enum is slow to make."""

    family: Any = _socket.socket.family
    type: Any = _socket.socket.type


class UnreadableMemory(Exception):
    """A caller that may not be read, or no descriptor is left to read it with."""


class _Part(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


_TwoParts = _Part * 2


class _Message(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_uint),
        ("parts", ctypes.c_void_p),
        ("part_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_size", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


def _checked(result: int, what: str = "") -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what or None)
    return result


_PATH_MAX = 4096


class Caller:
    """A thread that is held by a descriptor while its call waits.

    Raises:
        OSError: the thread is gone.
        UnreadableMemory: the thread is there, and cannot be read.
    """

    def __init__(self, thread: int) -> None:
        self.thread = thread
        try:
            self._process = _opened(thread)
        except OSError as error:
            raise _meant(error) from error
        try:
            self._memory = os.open(f"/proc/{thread}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            os.close(self._process)
            raise _meant(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._memory)
        os.close(self._process)

    def descriptor(self, number: int) -> int:
        """A copy of one of the thread's descriptors, which the taker closes (pidfd_getfd(2))."""
        arguments = (ctypes.c_long(_SYS_PIDFD_GETFD), self._process, ctypes.c_int(number), ctypes.c_uint(0))
        try:
            return _checked(int(_libc.syscall(*arguments)))
        except OSError as error:
            raise _meant(error) from error

    def socket(self, number: int) -> socket.socket:
        """A copy of one of the thread's sockets; ENOTSOCK for anything else."""
        descriptor = self.descriptor(number)
        try:
            return SocketCopy(fileno=descriptor)
        except OSError:
            os.close(descriptor)
            raise

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the thread's memory; EFAULT where there are fewer."""
        if size == 0:
            return b""
        try:
            data = os.pread(self._memory, size, address)
        except (OSError, OverflowError) as error:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT)) from error
        if len(data) != size:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        return data

    def text(self, address: int) -> bytes:
        """A path in the thread's memory, without its end; EFAULT or ENAMETOOLONG where it has none (getname_flags)."""
        try:
            data = os.pread(self._memory, _PATH_MAX, address)
        except (OSError, OverflowError) as error:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT)) from error
        path, end, _ = data.partition(b"\0")
        if not end:
            code = errno.ENAMETOOLONG if len(data) == _PATH_MAX else errno.EFAULT
            raise OSError(code, os.strerror(code))
        return path

    def write(self, address: int, data: bytes) -> None:
        """Put bytes into the thread's memory, where it may write itself (process_vm_writev(2))."""
        buffer = ctypes.create_string_buffer(data, len(data))
        here = _Part(ctypes.addressof(buffer), len(data))
        there = _Part(address, len(data))
        arguments = (ctypes.c_int(self.thread), ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        if _checked(int(_libc.process_vm_writev(*arguments))) != len(data):
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))

    def address(self, at: int, size: int) -> bytes:
        """A copy of a socket address, as the kernel takes it; EINVAL for an impossible size (`move_addr_to_kernel`)."""
        if size & 0x80000000 or size & 0xFFFFFFFF > sockaddr.STORAGE:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return self.read(at, size & 0xFFFFFFFF)


def is_interrupted(thread: int) -> bool:
    """Whether a signal waits that a thread handles: a blocked call would end with EINTR (signal(7))."""
    try:
        with open(f"/proc/{thread}/status", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return True
    pending, shared, blocked, caught = (
        int(found[1], 16) if (found := re.search(rf"^{name}:\s*([0-9a-f]+)", text, re.MULTILINE)) else 0
        for name in ("SigPnd", "ShdPnd", "SigBlk", "SigCgt")
    )
    return bool((pending | shared) & ~blocked & caught)


def read_at(thread: int, address: int, size: int) -> bytes:
    """Bytes of a thread's memory, fewer where they end (process_vm_readv(2)); at most `PAGE` of them.

    It reads the memory of an undumpable process, too, whose files in `/proc` belong to root (PR_SET_DUMPABLE).
    """
    buffer = ctypes.create_string_buffer(size)
    here = _Part(ctypes.addressof(buffer), size)
    # the kernel stops at the end of a part that it cannot read whole, so each is in one page
    first = min(size, PAGE - address % PAGE)
    there = _TwoParts(_Part(address, first), _Part(address + first, size - first))
    count = 2 if size > first else 1
    arguments = (ctypes.c_int(thread), ctypes.byref(here), 1, ctypes.byref(there), count, 0)
    read = _checked(int(_libc.process_vm_readv(*arguments)))
    return buffer.raw[:read]


def path_of_descriptor(thread: int, number: int) -> str:
    """The text of a link in `/proc` to a file of a thread's, told by a copy of its descriptor (Linux 6.9)."""
    process = os.pidfd_open(thread, _PIDFD_THREAD)
    try:
        arguments = (ctypes.c_long(_SYS_PIDFD_GETFD), process, ctypes.c_int(number), ctypes.c_uint(0))
        copy = _checked(int(_libc.syscall(*arguments)))
        try:
            return os.readlink(f"/proc/self/fd/{copy}")
        finally:
            os.close(copy)
    finally:
        os.close(process)


def _meant(error: OSError) -> Exception:
    return UnreadableMemory(str(error)) if error.errno in _OURS else error


def _opened(thread: int) -> int:
    try:
        return os.pidfd_open(thread, _PIDFD_THREAD)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.pidfd_open(_leader(thread))


def _leader(thread: int) -> int:
    with open(f"/proc/{thread}/status", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("Tgid:"):
                return int(line.split()[1])
    raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))


def open_at(directory: int, path: bytes, flags: int, resolve: int) -> int:
    """Open a path below a directory (openat2(2)); a descriptor."""
    how = flags.to_bytes(8, "little") + bytes(8) + resolve.to_bytes(8, "little")
    arguments = (ctypes.c_long(_SYS_OPENAT2), directory, path, how, ctypes.c_size_t(len(how)))
    return _checked(int(_libc.syscall(*arguments)), os.fsdecode(path))


def connect(descriptor: int, address: bytes) -> None:
    """Connect once, until a signal of this process's ends it (connect(2))."""
    _checked(int(_libc.connect(descriptor, address, len(address))))


def send(descriptor: int, data: memoryview, *, name: bytes, control: bytes, flags: int) -> int:
    """Send once (sendmsg(2)); the number of bytes taken."""
    buffer = ctypes.create_string_buffer(bytes(data), len(data)) if data else None
    part = _Part(ctypes.addressof(buffer) if buffer else None, len(data))
    to = ctypes.create_string_buffer(name, len(name)) if name else None
    beside = ctypes.create_string_buffer(control, len(control)) if control else None
    message = _Message(
        ctypes.addressof(to) if to else None,
        len(name),
        ctypes.addressof(part),
        1,
        ctypes.addressof(beside) if beside else None,
        len(control),
        0,
    )
    return _checked(int(_libc.sendmsg(descriptor, ctypes.byref(message), ctypes.c_int(flags))))


def raise_signal(thread: int, number: int) -> None:
    """Send a signal to one thread alone, as the kernel does for a call of that thread's (tgkill(2))."""
    _checked(int(_libc.tgkill(_leader(thread), thread, number)))
