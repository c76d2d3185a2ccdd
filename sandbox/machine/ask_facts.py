"""EFFECT: the facts of this machine that planning needs."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

from sandbox.base.host_facts import HostFacts, Kind
from sandbox.machine import walk_directories
from sandbox.proxy.io import library_path
from sandbox.request import credential_stores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.base.host_facts import Listing

_KINDS = {stat.S_IFDIR: Kind.DIRECTORY, stat.S_IFREG: Kind.FILE, stat.S_IFLNK: Kind.LINK}


class HostFiles:
    """The host's own file system (`sandbox.base.host_facts.Files`); a path nobody may look at is taken for missing."""

    def kind(self, path: str) -> Kind | None:
        """The kind of the name itself."""
        try:
            return _KINDS.get(stat.S_IFMT(os.lstat(path).st_mode), Kind.OTHER)
        except (OSError, ValueError):
            return None

    def readlink(self, path: str) -> str:
        """The text of a link."""
        return os.readlink(path)

    def entries(self, path: str) -> tuple[str, ...]:
        """Sorted names in a directory; empty when it cannot be listed."""
        try:
            return tuple(sorted(os.listdir(path)))
        except (OSError, ValueError):
            return ()

    def below(self, directory: str, enters: Callable[[str], bool]) -> Iterator[Listing]:
        """The listing of a directory and of every one below it that `enters` lets in."""
        return walk_directories.below(directory, enters)

    def read(self, path: str, limit: int) -> bytes:
        """The first bytes of a plain file."""
        try:
            # A pipe or a device must not make the caller wait.
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return b""
        try:
            return os.read(fd, limit) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
        except OSError:
            return b""
        finally:
            os.close(fd)


class Snapshot(HostFiles):
    """The host's files as they were when each was first asked for, however many grants lead through it."""

    def __init__(self) -> None:
        #: Results that `sandbox.base.host_facts.remembered` keeps.
        self.kept: dict[tuple[str | None, ...], object] = {}
        self._kinds: dict[str, Kind | None] = {}
        self._links: dict[str, str] = {}
        self._entries: dict[str, tuple[str, ...]] = {}
        self._texts: dict[tuple[str, int], bytes] = {}

    def kind(self, path: str) -> Kind | None:
        """The kind of the name itself."""
        try:
            return self._kinds[path]
        except KeyError:
            found = self._kinds[path] = super().kind(path)
            return found

    def readlink(self, path: str) -> str:
        """The text of a link."""
        if path not in self._links:
            self._links[path] = super().readlink(path)
        return self._links[path]

    def entries(self, path: str) -> tuple[str, ...]:
        """Sorted names in a directory; empty when it cannot be listed."""
        if path not in self._entries:
            self._entries[path] = self._list(path)
        return self._entries[path]

    def _list(self, path: str) -> tuple[str, ...]:
        """The entries of a directory; a listing tells their kinds as well."""
        names = []
        above = "" if path == "/" else path
        try:
            with os.scandir(path) as listing:
                for entry in listing:
                    names.append(entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        kind = Kind.DIRECTORY
                    elif entry.is_file(follow_symlinks=False):
                        kind = Kind.FILE
                    else:
                        continue
                    self._kinds.setdefault(f"{above}/{entry.name}", kind)
        except (OSError, ValueError):
            return ()
        return tuple(sorted(names))

    def read(self, path: str, limit: int) -> bytes:
        """The first bytes of a plain file."""
        if (path, limit) not in self._texts:
            self._texts[path, limit] = super().read(path, limit)
        return self._texts[path, limit]


def home_directory() -> str:
    """The user's home: `HOME`, else the password database's; canonical, `/` when there is none."""
    home = os.environ.get("HOME", "")
    if not os.path.isabs(home):
        import pwd

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            home = "/"
    return os.path.realpath(home)


#: The shells of users who never log in.
_NO_LOGIN = frozenset({"nologin", "false", "true", "sync", "halt", "shutdown"})


def other_homes(home: str) -> tuple[str, ...]:
    """The homes besides `home` whose credentials this user may read, canonical; `HostFacts.other_homes` says which."""
    import pwd

    me = os.getuid()
    if me == 0:
        users = [one for one in pwd.getpwall() if one.pw_uid == 0 or os.path.basename(one.pw_shell) not in _NO_LOGIN]
    else:
        try:
            users = [pwd.getpwuid(me)]
        except KeyError:
            users = []
    found = (os.path.realpath(one.pw_dir) for one in users if os.path.isabs(one.pw_dir))
    return tuple(path for path in dict.fromkeys(found) if path != home)


def temp_root() -> str:
    """The directory that holds every task's temporary directory; it may not exist yet.

    `$VX_TMPDIR`, else `$TMPDIR` (but on macOS), else `/tmp`, and below it one directory a user.
    """
    # `TMPDIR` of macOS is too long for the sockets that tasks make below it, whose paths have 103 bytes (unix(4)).
    for name in ("VX_TMPDIR",) if sys.platform == "darwin" else ("VX_TMPDIR", "TMPDIR"):
        value = os.environ.get(name, "")
        if value:
            break
    else:
        value = "/tmp"  # noqa: S108  the directory below it is made with care: see `sandbox.scratch.task_tmpdir`
    return os.path.join(os.path.realpath(value), f"vx-{os.getuid()}")


def _may_read(path: str) -> bool:
    """Whether this user may read a file, or anything in a directory: of one that may be entered, names are enough."""
    return os.access(path, os.R_OK) or (os.path.isdir(path) and os.access(path, os.X_OK))


def host_facts() -> HostFacts:
    """The facts planning depends on besides files."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    interpreter = {sys.prefix, sys.base_prefix, os.path.dirname(sys.executable) or sys.prefix}
    own = (os.path.join(package, "sandbox"), os.path.join(package, "vxconf"))
    protected = {os.path.realpath(path) for path in (*interpreter, *own, *library_path.protected())}
    home = home_directory()
    return HostFacts(
        platform="macos" if sys.platform == "darwin" else "linux",
        home=home,
        other_homes=other_homes(home),
        temp_root=temp_root(),
        protected=tuple(sorted(protected)),
        secrets=tuple(path for path in credential_stores.system(HostFiles()) if _may_read(path)),
    )
