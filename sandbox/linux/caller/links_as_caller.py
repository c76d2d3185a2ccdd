"""EFFECT: the text of one link on a task's path, read by the kernel in the tree where the task finds it.

Links of `/proc` and `/dev` are read in the task's own, on descriptors, and no step passes another link. A link of
`/proc` to a file leads where it leads for whoever it belongs to, so a thread with a working directory or descriptors of
its own is read as such. `self` and `thread-self` depend on who asks, and are read as the caller's.

Every other link is read in the task's own root, too, unless a mask stands in it: a look at a hidden name there would
wait for this very process. The host's tree is read then, and a link the task does not see is none.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Self

from sandbox.linux.caller.caller_memory import path_of_descriptor
from sandbox.linux.caller.resolve_path_as_caller import Jump
from sandbox.linux.kernel import kernel_calls

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_TREE = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_LINK = os.O_PATH | os.O_NOFOLLOW
_DELETED = " (deleted)"
# the names under which the caller finds itself; `self` is beside what it leads to, so that ".." behind it leads the
# same way, and stays (proc(5))
_OWN = "self"
_THREAD = "thread-self"
_ALIASES = {_OWN: None, _THREAD: f"{_OWN}/task/{_THREAD}"}

# answers by which a file system tells that a path has no link in its last place, or that its reader may not go there
_NO_LINK = frozenset({errno.EINVAL, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EACCES, errno.ELOOP})
_NOTHING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ESRCH, errno.EINVAL, errno.ENAMETOOLONG, errno.EBADF})


class Unread(Exception):
    """A call whose path could not be read: it may not go on, and the trace has a hole.

    Attributes:
        errno: what the call is answered with.
    """

    def __init__(self, why: str, code: int = errno.EACCES) -> None:
        super().__init__(why)
        self.errno = code


class Gone(Unread):
    """The caller went away while it was being read."""


class CallFails(Exception):
    """A call that the kernel itself would fail: it is answered so, and nothing was missed.

    Attributes:
        errno: that error.
    """

    def __init__(self, code: int) -> None:
        super().__init__(os.strerror(code))
        self.errno = code


def unread(error: OSError, why: str) -> Unread:
    """The meaning of an error about a caller: it is gone, or it is there and cannot be read."""
    return Gone(why) if error.errno in (errno.ENOENT, errno.ESRCH) else Unread(f"{why}: {error.strerror}")


def file_at(text: str) -> str:
    """The path of a file by the text of a link in `/proc`, which tells of a removed file that it is (proc(5))."""
    path = text.removesuffix(_DELETED)
    # a file of a mask's that never had a name (O_TMPFILE) has none here either, and is not its directory
    removed = path != text and not path.endswith("/") and not os.path.lexists(text)
    return path if removed else text


class TaskTree:
    """The places in which the links of one task's paths are read.

    Every process of a task has the same root and the same user namespace: nothing in a sandbox changes them
    (`seccomp_filter.REFUSED`). So those of any of them are held from the first look on.

    Args:
        shows: whether the task sees what the host has at a path; asked only where a mask stands.
        late: whether callers are read when they may have ended, as a tracer reads them. A link that only they had then
            stays a part of the path.

    Attributes:
        masked: whether a mask stands in the task's root.
        refresh: has the task see at a path what it is to see there now; called before a link there is read.
        staged: the text of a link that the mask shows and the host does not have.
    """

    def __init__(self, shows: Callable[[str], bool] = lambda _path: True, *, late: bool = False) -> None:
        self.masked = False
        self.refresh: Callable[[str], object] = _as_it_is
        self.staged: Callable[[str], str | None] = lambda _path: None
        self._shows = shows
        self._late = late
        self._places: dict[str, int] = {}
        self._user_namespace = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for descriptor in self._places.values():
            os.close(descriptor)

    def hold(self, caller: int) -> None:
        """Hold the task's root, `/proc` and `/dev` while one of its processes is there."""
        for place in ("", "proc", "dev"):
            self._place(caller, place)

    def _place(self, caller: int, name: str) -> int:
        """One of the task's own directories: its root, `proc` or `dev`."""
        held = self._places.get(name, -1)
        if held >= 0:
            return held
        try:
            if name == "proc":
                self._user_namespace = os.stat(f"/proc/{caller}/ns/user").st_ino
            opened = os.open(f"/proc/{caller}/root/{name}", _TREE)
        except OSError as error:
            raise unread(error, f"the root of process {caller}") from error
        held = self._places.setdefault(name, opened)
        if held != opened:  # another thread was first
            os.close(opened)
        return held

    def link(self, caller: int, place: str) -> str | None:
        """The text of the link that the caller finds at a path whose parents hold none, a `Jump` for one to a file.

        `None` stands for anything else.

        Raises:
            Gone, Unread: there may be a link, and it cannot be read.
            CallFails: the link is closed to the caller.
        """
        if place.startswith("/proc/"):
            return self._of_proc(caller, place.removeprefix("/proc/"))
        if place.startswith("/dev/"):
            # the most common path by far
            return None if place == "/dev/null" else self._of_dev(caller, place.removeprefix("/dev/"))
        try:
            if self.masked:
                staged = self.staged(place)
                if staged is not None:
                    return staged
                text = os.readlink(place)
                return text if self._shows(place) else None
            self.refresh(place)
            root = self._places.get("", -1)
            return os.readlink(place[1:], dir_fd=root if root >= 0 else self._place(caller, ""))
        except OSError as error:
            if error.errno in _NO_LINK:
                return None
            raise Unread(f"{place}: {error.strerror}") from error

    def _of_dev(self, caller: int, name: str) -> str | None:
        try:
            return _text(self._place(caller, "dev"), name)
        except OSError as error:
            # ELOOP: a link came between the looks
            if error.errno in _NO_LINK - {errno.ELOOP}:
                return None
            raise Unread(f"/dev/{name}: {error.strerror}") from error

    # -- /proc -------------------------------------------------------------------------------------------------

    def _of_proc(self, caller: int, name: str) -> str | None:
        if name in _ALIASES:
            return _ALIASES[name]
        proc = self._place(caller, "proc")
        owner, _, rest = name.partition("/")
        try:
            text = self._text_of_proc(caller, proc, owner, rest)
        except OSError as error:
            if error.errno in _NOTHING:
                return None
            if error.errno not in (errno.EACCES, errno.EPERM):
                raise Unread(f"/proc/{name}: {error.strerror}") from error
            if self._late:
                return None
            # a right to look that this process lacks, whose user made the task, no other process of the task has
            if owner.isdecimal() and not self._is_own(caller, proc, owner):
                raise CallFails(errno.EACCES) from error
            raise Unread(f"/proc/{name}: {error.strerror}") from error
        if owner.isdecimal() and self._is_foreign(owner):
            if self._late:
                return None
            raise CallFails(errno.EACCES)
        if owner != _OWN and not owner.isdecimal():
            return text
        if not text.startswith("/"):  # a pipe, a socket, a namespace
            return None
        return Jump(file_at(text))

    def _text_of_proc(self, caller: int, proc: int, owner: str, rest: str) -> str:
        if owner != _OWN:
            return _text(proc, f"{owner}/{rest}" if rest else owner)
        task, _, below = rest.partition("/")
        thread, _, what = below.partition("/")
        if task != "task" or not thread:
            return self._own_text(_group(f"/proc/{caller}"), rest)
        if thread == _THREAD:
            return self._own_text(caller, what)
        # a thread is found beside the processes, too, by its number in the task's own pid namespace
        return _text(proc, f"{thread}/{what}" if what else thread)

    def _own_text(self, thread: int, name: str) -> str:
        if "host" not in self._places:
            self._places["host"] = os.open("/proc", _TREE)
        try:
            return _text(self._places["host"], f"{thread}/{name}")
        except PermissionError:  # the files of an undumpable process belong to root
            place, _, number = name.partition("/")
            if place != "fd" or not number.isdecimal():
                raise
            return path_of_descriptor(thread, int(number))

    def _is_own(self, caller: int, proc: int, owner: str) -> bool:
        """Whether a number may be that of the caller's process."""
        if os.fstat(proc).st_dev != os.stat("/proc").st_dev:
            return True  # a `/proc` of the task's own, whose numbers are others
        try:
            return _group(f"/proc/{owner}") == _group(f"/proc/{caller}")
        except OSError:
            return True

    def _is_foreign(self, process: str) -> bool:
        """Whether a process is outside the task; ptrace_may_access (ptrace(2)) closes its links to every caller."""
        try:
            return os.stat(f"{process}/ns/user", dir_fd=self._places["proc"]).st_ino != self._user_namespace
        except OSError:
            return True

    def is_closed(self, path: str) -> bool:
        """Whether a path left in `/proc` goes through a link of another process that is closed to the task, too."""
        proc, process = self._places.get("proc", -1), path.split("/")[2]
        if proc < 0 or not process.isdecimal():
            return False
        try:
            os.readlink(f"{process}/cwd", dir_fd=proc)
        except PermissionError:
            return True
        except OSError:
            return False
        return self._is_foreign(process)


def _as_it_is(_path: str) -> None:
    """Leave a path as it is."""


def _text(directory: int, name: str) -> str:
    """The text of a link below a directory, on the way to which the kernel follows none.

    Raises:
        OSError: there is none that can be read; ENOENT for a file that is no link (readlink(2), an empty path).
    """
    link = kernel_calls.open_beneath(directory, name, _LINK)
    try:
        return os.readlink("", dir_fd=link)
    finally:
        os.close(link)


def _group(process: str) -> int:
    """The number of the process that a thread belongs to."""
    with open(f"{process}/status", "rb") as file:
        return next((int(line.split()[1]) for line in file if line.startswith(b"Tgid:")), 0)
