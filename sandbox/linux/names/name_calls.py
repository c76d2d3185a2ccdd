"""EFFECT: calls of a task that make, move or remove granted names, made by the warden on descriptors of its own.

The directory in which such a name stands is read-only for the task, so a call that the warden does not make fails. What
the warden makes it makes at a path that it read once, and only where that very path is granted. So what a task changes
in its memory meanwhile, and what it says in a call, decides about nothing but which granted name it means.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from typing import TYPE_CHECKING, NoReturn

from sandbox.linux.caller.caller_memory import Caller
from sandbox.linux.kernel import kernel_calls, observed_syscalls
from sandbox.linux.mask.served.inodes import magic_link
from sandbox.linux.names.read_call import Answer, HandedDescriptor, ReadCall, opened_anew, plain_end, slash, umask
from sandbox.linux.names.spots import Mixed, NameKind, NameSpot
from sandbox.request.protected_names import carries

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.linux.caller.call_paths import NamedPath
    from sandbox.linux.names.shown_names import ShownNames

_EXCHANGE, _WHITEOUT = 2, 4
_NOREPLACE = 1
_REMOVEDIR = 0x200
# a program that another user set to run as itself, or as its group, is nothing a task may make
_MODE = 0o1777
_ACCESS = frozenset({"access", "faccessat", "faccessat2"})


class NameCalls:
    """Makes the calls of one task that need to change directories in which granted names may stand."""

    def __init__(self, names: ShownNames) -> None:
        self.names = names
        self._handlers: dict[str, Callable[[ReadCall], Answer]] = {
            **dict.fromkeys(observed_syscalls.OPENS, self._open),
            **dict.fromkeys(("mkdir", "mkdirat"), self._mkdir),
            **dict.fromkeys(("mknod", "mknodat"), self._mknod),
            **dict.fromkeys(("symlink", "symlinkat"), self._symlink),
            **dict.fromkeys(("link", "linkat"), self._link),
            **dict.fromkeys(("rename", "renameat", "renameat2"), self._rename),
            **dict.fromkeys(("unlink", "unlinkat", "rmdir"), self._remove),
            **dict.fromkeys(_ACCESS, self._access),
            "bind": self._bind,
            "utimensat": self._change_times,
            **dict.fromkeys(("lchown", "fchownat"), self._change_owner),
        }

    def answer(self, asked: ReadCall) -> Answer:
        """Make a call, if it is one for the warden; 0 where it was made.

        Raises:
            OSError: the call fails with that.
        """
        try:
            handler = self._handlers.get(asked.call.name, self._look)
            return self._look(asked) if asked.leaves_nothing() else handler(asked)
        finally:
            self.names.end_call()

    def _look(self, asked: ReadCall) -> Answer:
        """Have a name shown as it is now, before the kernel looks it up."""
        for named in asked.named:
            self.names.spot(named.path)
        return None

    def _access(self, asked: ReadCall) -> Answer:
        """Say of a directory that names may be made in it, which the read-only mount denies."""
        self._look(asked)
        wanted = asked.registers[1 if asked.call.name == "access" else 2]
        mixed = self.names.mixed(asked.named[0].path) if asked.named else None
        if mixed is None or not wanted & os.W_OK or not self.names.granted.stages(mixed.path):
            return None
        return 0

    # -- new names -----------------------------------------------------------------------------------------------

    def _new(self, named: NamedPath) -> NameSpot | None:
        """Where a new name is to be made; `None` where it exists, or nothing may be made, as the kernel will say.

        Raises:
            OSError: EROFS, other programs execute what has that name.
        """
        spot = self.names.spot(named.path)
        if spot is None or spot.mixed is None or spot.exists or not plain_end(named):
            return None
        self._spare_protected(spot.mixed, named.path, moved=True)
        return self.names.new_spot(spot)

    def _spare_protected(self, mixed: Mixed, path: str, *, moved: bool, brings: bool = False) -> None:
        """Refuse what other programs execute, as the mask does for a name at which it would stand.

        Args:
            mixed: the directory in which the name is made or changed.
            path: the name.
            moved: whether an existing file becomes the name, or something other than a directory is made.
            brings: whether that file is a directory.

        Raises:
            OSError: EROFS.
        """
        executed = self.names.executed
        if executed and (executed.reserves(path, mixed.path) or (moved and carries(path, brings=brings))):
            _fails(errno.EROFS)

    def _open(self, asked: ReadCall) -> Answer:
        if not asked.named or asked.named[0].flags & os.O_PATH:
            return self._look(asked)
        named, flags = asked.named[0], asked.named[0].flags
        mixed = self.names.mixed(named.path)
        if mixed is not None:
            if flags & observed_syscalls.O_TMPFILE_BIT:
                return self._tmpfile(asked, mixed)
            self.names.refresh_all(mixed)
            return None
        if not flags & os.O_CREAT or flags & os.O_DIRECTORY or named.asked.endswith("/"):
            return self._look(asked)
        new = self._new(named)
        if new is None:
            return None
        mode = self._mode(asked)
        made = os.open(new.name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, mode, dir_fd=new.fd)
        try:
            shown = self.names.show_new(new, made)
            try:
                opened = opened_anew(shown, made, flags)
            finally:
                os.close(shown)
        finally:
            os.close(made)
        return HandedDescriptor(opened, flags & os.O_CLOEXEC)

    def _tmpfile(self, asked: ReadCall, mixed: Mixed) -> Answer:
        """Make a file without a name in the staging area, from where it can be linked into place."""
        names = self.names
        if not names.staging or not names.granted.stages(mixed.path):
            return None
        flags = (asked.named[0].flags & (os.O_ACCMODE | os.O_EXCL | os.O_APPEND)) | os.O_TMPFILE | os.O_CLOEXEC
        area = names.staging.area(mixed.path, make=True)
        return HandedDescriptor(
            os.open(".", flags, self._mode(asked), dir_fd=area), asked.named[0].flags & os.O_CLOEXEC
        )

    def _mode(self, asked: ReadCall) -> int:
        return asked.named[0].mode & _MODE & ~umask(asked.thread)

    def _mkdir(self, asked: ReadCall) -> Answer:
        if not asked.named:
            return None
        named, names = asked.named[0], self.names
        mode = asked.registers[1 if asked.call.name == "mkdir" else 2] & _MODE & ~umask(asked.thread)
        spot = names.spot(named.path)
        if spot is None or spot.mixed is None or spot.exists or not plain_end(named):
            return None
        self._spare_protected(spot.mixed, named.path, moved=False)
        host = names.host(spot.mixed.path)
        if spot.kind is NameKind.NOTHING and names.granted.leads(spot.path) and host >= 0:
            try:
                names.ways.make(host, spot.name, mode)
            except FileExistsError:
                pass  # a hidden file stays hidden, and the new directory is staged in its place
            else:
                names.refresh(spot.mixed, spot.name)
                return 0
        new = names.new_spot(spot)
        if new is None:
            return None
        os.mkdir(new.name, mode, dir_fd=new.fd)
        names.refresh(spot.mixed, spot.name)
        return 0

    def _mknod(self, asked: ReadCall) -> Answer:
        new = self._new(asked.named[0]) if asked.named else None
        if new is None:
            return None
        mode = asked.registers[1 if asked.call.name == "mknod" else 2] & 0xFFFF
        kind = stat.S_IFMT(mode) or stat.S_IFREG
        if kind not in (stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK):
            _fails(errno.EPERM)
        os.mknod(new.name, kind | (mode & _MODE & ~umask(asked.thread)), dir_fd=new.fd)
        return self._shown(new)

    def _symlink(self, asked: ReadCall) -> Answer:
        new = self._new(asked.named[0]) if asked.named else None
        if new is None:
            return None
        with Caller(asked.thread) as caller:
            text = caller.text(asked.registers[0])
        os.symlink(text, os.fsencode(new.name), dir_fd=new.fd)
        return self._shown(new)

    def _bind(self, asked: ReadCall) -> Answer:
        new = self._new(asked.named[0]) if asked.named else None
        if new is None:
            return None
        with Caller(asked.thread) as caller, caller.socket(observed_syscalls.signed(asked.registers[0])) as copy:
            # a socket's address has room for 108 bytes, which a whole path may exceed
            os.umask(umask(asked.thread))
            os.fchdir(new.fd)
            try:
                copy.bind(new.name)
            finally:
                os.chdir("/")
                os.umask(0)
        return self._shown(new)

    def _shown(self, new: NameSpot) -> int:
        if new.mixed is not None:
            self.names.refresh(new.mixed, new.name)
        return 0

    # -- attributes of links: the links in the read-only directory stand for those of the host -----------------------

    def _link_at(self, asked: ReadCall) -> NameSpot | None:
        """The spot of a link whose own attributes a call changes; `None` for anything else, which is a mount."""
        if not asked.named or asked.named[0].follows or not plain_end(asked.named[0]):
            self._look(asked)
            return None
        spot = self.names.spot(asked.named[0].path)
        if spot is None or spot.mixed is None or spot.kind not in (NameKind.HOST, NameKind.STAGED) or not spot.exists:
            return None
        mode = os.stat(spot.name, dir_fd=spot.fd, follow_symlinks=False).st_mode
        return spot if stat.S_ISLNK(mode) else None

    def _change_times(self, asked: ReadCall) -> Answer:
        spot = self._link_at(asked)
        if spot is None:
            return None
        now = (0, kernel_calls.UTIME_NOW)
        times = (now, now)
        if asked.registers[2]:
            with Caller(asked.thread) as caller:
                a, b, c, d = struct.unpack("@4l", caller.read(asked.registers[2], struct.calcsize("@4l")))
            times = ((a, b), (c, d))
        link = os.open(spot.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.fd)
        try:
            kernel_calls.set_times(link, *times)
        finally:
            os.close(link)
        return self._shown(spot)

    def _change_owner(self, asked: ReadCall) -> Answer:
        spot = self._link_at(asked)
        if spot is None:
            return None
        first = 1 if asked.call.name == "lchown" else 2
        user, group = map(observed_syscalls.signed, asked.registers[first : first + 2])
        os.chown(spot.name, user, group, dir_fd=spot.fd, follow_symlinks=False)
        return self._shown(spot)

    # -- names that exist ----------------------------------------------------------------------------------------

    def _remove(self, asked: ReadCall) -> Answer:
        if not asked.named or not plain_end(asked.named[0]):
            return self._look(asked)
        named, names = asked.named[0], self.names
        spot = names.spot(named.path)
        if spot is None or spot.mixed is None or spot.kind is NameKind.PLACED:
            return None
        _insist_on(spot)
        directory = asked.call.name == "rmdir" or (asked.call.name == "unlinkat" and asked.registers[2] & _REMOVEDIR)
        if spot.kind is NameKind.WAY:
            return self._remove_way(spot) if directory else _fails(errno.EISDIR)
        name = spot.name + slash(named)
        (os.rmdir if directory else os.unlink)(name, dir_fd=spot.fd)
        names.refresh(spot.mixed, spot.name)
        return 0

    def _remove_way(self, spot: NameSpot) -> Answer:
        """Remove a directory that leads to matches: from the host where it is empty, else from the task's sight."""
        way = self.names.mixed(spot.path)
        if way is None or spot.mixed is None:
            return None
        self.names.refresh_all(way)
        if way.names or way.placed:
            _fails(errno.ENOTEMPTY)
        found = os.stat(spot.name, dir_fd=spot.fd, follow_symlinks=False)
        self.names.ways.remove(spot.fd, spot.name, (found.st_dev, found.st_ino))
        self.names.refresh(spot.mixed, spot.name)
        return 0

    def _link(self, asked: ReadCall) -> Answer:
        if len(asked.named) < len(asked.call.paths):
            return self._look(asked)
        old, named, *_ = asked.named
        number = observed_syscalls.named_descriptor(old.asked)
        if number is not None:
            number = observed_syscalls.signed(asked.registers[0]) if number < 0 else number
            return self._link_nameless(asked, number, named)
        source, target = self.names.spot(old.path), self._target(named)
        if target is None or (source is None and not asked.sees(old.path)):
            return None
        if source is None:
            _fails(errno.EXDEV)  # as of any other mount, and a program copies the file then
        _insist_on(source)
        if source.kind not in (NameKind.HOST, NameKind.STAGED):
            _fails(errno.EXDEV)
        if _one_mount(source, target):
            return None
        os.link(source.name, target.name, src_dir_fd=source.fd, dst_dir_fd=target.fd, follow_symlinks=False)
        return self._shown(target)

    def _link_nameless(self, asked: ReadCall, number: int, named: NamedPath) -> Answer:
        """Give a file without a name one; any other descriptor may be of a file that is only read."""
        new = self._new(named)
        if new is None:
            return None
        with Caller(asked.thread) as caller:
            file = caller.descriptor(number)
        try:
            # the kernel links a file that has no name only if it never had one (O_TMPFILE in open(2))
            if os.fstat(file).st_nlink:
                _fails(errno.EXDEV)
            os.link(magic_link(file), new.name, dst_dir_fd=new.fd, follow_symlinks=True)
        finally:
            os.close(file)
        return self._shown(new)

    def _target(self, named: NamedPath) -> NameSpot | None:
        """The spot of a link's new name."""
        spot = self.names.spot(named.path)
        if spot is None or spot.exists or not plain_end(named):
            return None
        if spot.mixed is None:
            return spot
        self._spare_protected(spot.mixed, named.path, moved=True)
        return self.names.new_spot(spot)

    def _rename(self, asked: ReadCall) -> Answer:
        if len(asked.named) < len(asked.call.paths) or not all(map(plain_end, asked.named)):
            return self._look(asked)
        flags = asked.registers[4] & 0xFFFFFFFF if asked.call.name == "renameat2" else 0
        old, named, *_ = asked.named
        source, target = self.names.spot(old.path), self.names.spot(named.path)
        if source is None or target is None or _one_mount(source, target):
            return None
        _insist_on(source)
        if flags & _WHITEOUT or flags & (_NOREPLACE | _EXCHANGE) == _NOREPLACE | _EXCHANGE:
            return _fails(errno.EINVAL)
        if flags & _NOREPLACE and target.exists:
            return _fails(errno.EEXIST)
        if flags & _EXCHANGE:
            _insist_on(target)
        if NameKind.PLACED in (source.kind, target.kind):
            return None
        found = os.stat(source.name, dir_fd=source.fd, follow_symlinks=False)
        self._judge_rename(source, target, exchange=bool(flags & _EXCHANGE), directory=stat.S_ISDIR(found.st_mode))
        new = target if target.exists or target.mixed is None else self.names.new_spot(target)
        if new is None:
            return None
        ends = (source.name + slash(old), new.name + slash(named))
        kernel_calls.rename(source.fd, ends[0], new.fd, ends[1], flags)
        self.names.moved(source, new, flags)
        return 0

    def _judge_rename(self, source: NameSpot, target: NameSpot, *, exchange: bool, directory: bool) -> None:
        """Refuse a rename that moves what must stay.

        Raises:
            OSError: EXDEV has the program copy a directory that leads to matches, which the task sees in part.
        """
        names = self.names
        if target.kind is NameKind.WAY and not directory:
            _fails(errno.EISDIR)
        new_way = target.kind is NameKind.NOTHING and directory and names.granted.leads(target.path)
        if NameKind.WAY in (source.kind, target.kind) or new_way:
            _fails(errno.EXDEV)
        # a kept name is a mount below the name's own, and goes where that goes
        ends_below = source.mixed is None or target.mixed is None
        if ends_below and (names.holds_kept(source.path) or names.holds_kept(target.path)):
            _fails(errno.EBUSY)
        if target.mixed is not None:
            self._spare_protected(target.mixed, target.path, moved=True, brings=directory)
        if source.mixed is not None:
            self._spare_protected(source.mixed, source.path, moved=exchange, brings=exchange)


def _fails(code: int) -> NoReturn:
    raise OSError(code, os.strerror(code))


def _insist_on(spot: NameSpot) -> None:
    """Have a call fail as everywhere on a name that is not there: a read-only mount would say EROFS of it."""
    if not spot.exists:
        _fails(errno.ENOENT)


def _one_mount(source: NameSpot, target: NameSpot) -> bool:
    """Whether two names lie below one granted or staged directory, where the kernel does what is asked."""
    return bool(source.top) and source.top == target.top
