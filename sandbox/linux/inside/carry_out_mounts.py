"""EFFECT: carries out the mounts of a plan in the namespaces of its task.

Invariants:
1. Every source is opened without following a link, from its own path down: a link planted after planning moves nothing.
2. Sources are taken from the host's own tree, never from below a mount of this plan.
3. A path that is not granted is read-only before the first writable grant is attached.
4. A mount that the host makes later does not arrive inside, where it would be as writable as on the host.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import stat
from typing import TYPE_CHECKING

from sandbox.linux.inside import warm_dcache
from sandbox.linux.kernel import kernel_calls
from sandbox.planning.operations import (
    Absent,
    Bind,
    Cover,
    Empty,
    Fresh,
    Link,
    Name,
    Names,
    Operation,
    Origin,
    Seal,
    Way,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# directories on the sandbox's own /dev: a mount there touches nothing of the host's
_NEST = "/dev/.vx"
_TOP = "/dev/.vx-root"
_NOWHERE = "/dev/.vx-nowhere"
_NOTHING = -1
_NEVER_READ_ONLY = ("/", "/dev")
# descriptors kept for other things than copies of mounts
_SPARE_DESCRIPTORS = 128


class Vanished(OSError):
    """A source that changed between planning and mounting; a second attempt may succeed."""


def carry_out(
    operations: tuple[Operation, ...], nest: Callable[[], int], *, sealed: Callable[[int], object] | None = None
) -> None:
    """Carry out the plan in the current mount namespace.

    Args:
        operations: parents before children.
        nest: called once the root is read-only; makes the detached file system that holds everything a cover shows,
            a mask or a tmpfs, under the plan's absolute paths.
        sealed: given where that is a tmpfs; called with a writable copy of its mount, before the mount becomes
            read-only.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    kernel_calls.set_mount_attributes(kernel_calls.AT_FDCWD, "/", propagation=kernel_calls.MS_PRIVATE)
    root = os.open("/", os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY)
    sources = _Sources(root)
    for op in operations:
        if isinstance(op, Cover) and op.path != "/":
            sources.keep(op.path)
    writable = {op.path: sources.clone(op) for op in operations if isinstance(op, Bind) and op.writable}
    kernel_calls.set_mount_attributes(kernel_calls.AT_FDCWD, "/", add=kernel_calls.MOUNT_ATTR_RDONLY)
    # /dev with /dev/shm, and /dev/pts, belong to the sandbox alone. Its devices are the host's, whose modes and times
    # stay as they are; one on a read-only mount can be written to all the same
    for own in ("/dev", "/dev/pts"):
        kernel_calls.set_mount_attributes(
            kernel_calls.AT_FDCWD, own, remove=kernel_calls.MOUNT_ATTR_RDONLY, recursive=False
        )
    if not os.statvfs("/").f_flag & os.ST_RDONLY:
        raise OSError("the root did not become read-only")
    # a cover of the root is a root of its own: it is finished below the old root, then takes its place
    top = _TOP if any(isinstance(op, Cover) and op.path == "/" for op in operations) else ""
    # process 1 has mounted a /proc of its own over the old one
    fresh = {
        op.path: kernel_calls.clone_tree(kernel_calls.AT_FDCWD, op.path) for op in operations if isinstance(op, Fresh)
    }
    os.mkdir(_NEST, 0o755)
    # mounts that need the mask come after these, so that its server gets ready meanwhile
    readable = _Readable(operations, sources, top)
    kernel_calls.attach_mount_at(nest(), _NEST)
    shown = os.open(_NEST, os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY)
    if sealed is not None:
        writable_copy = kernel_calls.clone_tree(shown)
        sealed(writable_copy)
        os.close(writable_copy)
        # every copy made from here on is read-only
        kernel_calls.set_mount_attributes(shown, "", add=kernel_calls.MOUNT_ATTR_RDONLY)
    if top:
        # the new root is a copy: a mount below the nest itself would be found by whatever is taken from the nest later
        os.mkdir(top, 0o755)
        _attach(kernel_calls.clone_tree(shown, "."), top)
    _place_all(operations, shown, sources, writable | fresh, readable)
    os.close(shown)
    sources.close()
    kernel_calls.detach(_NEST)
    os.rmdir(_NEST)
    if top:
        kernel_calls.become_root(top)
        os.rmdir(top)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def rehearse(*, idle: Callable[[], bool] = lambda: True) -> None:
    """Run the code of `carry_out` without making a mount, since the kernel takes time to take one away again.

    Args:
        idle: whether this process has nothing better to do yet.
    """
    origin = Origin(reason="rehearsed")
    file = Bind(path="/etc/passwd", origin=origin, directory=False)
    seals = (Seal(path="/one", origin=origin), Seal(path="/other", origin=origin))
    root = os.open("/", os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY)
    sources = _Sources(root)
    readable = _Readable((), sources, _NOWHERE)
    for motion in (
        lambda: warm_dcache.learn(seals, root),
        # this check fails here, since nothing is read-only yet
        lambda: readable.attach(file),
        lambda: kernel_calls.clone_name(_NOTHING, "name", recursive=True),
        lambda: kernel_calls.attach_mount_in(_NOTHING, root, "name"),
        lambda: kernel_calls.set_mount_attributes(_NOTHING, "", add=kernel_calls.MOUNT_ATTR_RDONLY),
        lambda: _lay_over(seals[0], _NOTHING, _NOWHERE),
    ):
        with contextlib.suppress(OSError):  # each has nothing to act on
            if idle():
                motion()
    readable.close()
    sources.close()


def _place_all(
    operations: tuple[Operation, ...], shown: int, sources: _Sources, taken: dict[str, int], readable: _Readable
) -> None:
    """Attach every mount of the plan.

    Args:
        operations: parents before children.
        shown: the mount whose tree covers show.
        sources: the host's tree, for read-only binds that were not copied before.
        taken: copies of mounts by path, made while they could be written.
        readable: the read-only binds, which it attaches below the new root.
    """
    warm_dcache.learn(operations, shown)
    top = readable.top
    # a copied directory brings its covers along: a cover that a bind hides whole would hide the bind instead
    whole = {op.path for op in operations if isinstance(op, Bind)}
    for op in operations:
        if isinstance(op, Cover) and op.path not in whole:
            if op.path != "/":
                _attach(kernel_calls.clone_tree(shown, op.path.lstrip("/")), top + op.path)
        elif isinstance(op, Fresh):
            _attach(taken[op.path], top + op.path)
        elif isinstance(op, Bind) and readable.holds(op):
            readable.attach(op)
        elif isinstance(op, Bind):
            tree = taken[op.path] if op.path in taken else _read_only(op, sources)
            if tree >= 0:
                _attach(tree, top + op.path)
        elif isinstance(op, (Empty, Seal, Absent)) and op.laid_over:
            _lay_over(op, shown, top)
    readable.close()


def _read_only(op: Bind, sources: _Sources) -> int:
    try:
        tree = sources.clone(op)
    except Vanished as error:
        _forgive(op, error)
        return -1
    kernel_calls.set_mount_attributes(tree, "", add=kernel_calls.MOUNT_ATTR_RDONLY)
    return tree


def _forgive(op: Bind, error: Vanished) -> None:
    """Leave the place of a vanished name empty, unless a grant names it: in a busy directory names come and go."""
    if op.origin.field:
        raise error


class _Readable:
    """The read-only binds of a plan.

    Files among them may be thousands, so work that files of a directory share is done once. A copy of a read-only
    mount is read-only, so none needs attributes of its own but those in /dev. Copies are made before anything is
    attached, for as many binds as there are descriptors.

    Args:
        operations: the plan.
        sources: the host's tree, in which everything is read-only but /dev.
        top: the path of the new root, empty for the present one.
    """

    def __init__(self, operations: tuple[Operation, ...], sources: _Sources, top: str) -> None:
        self._sources = sources
        self.top = top
        self._source = _Directory()
        self._target = _Directory()
        held = [op for op in operations if isinstance(op, Bind) and self.holds(op)]
        # beyond the descriptors only files can be copied late: a copied directory brings its covers along
        held.sort(key=lambda op: not op.directory)
        room = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _SPARE_DESCRIPTORS
        self._copies = {op.path: self._copy(op) for op in held[: max(0, room)]}

    @staticmethod
    def holds(op: Bind) -> bool:
        return not (op.writable or op.path in _NEVER_READ_ONLY or op.path.startswith("/dev/"))

    def attach(self, op: Bind) -> None:
        """Attach a bind.

        Raises:
            Vanished: its source is not as it was planned, and a grant names it.
        """
        tree = self._copies.pop(op.path) if op.path in self._copies else self._copy(op)
        if tree < 0:
            return
        directory, _, name = op.path.rpartition("/")
        try:
            if directory != self._target.path:
                path = self.top + directory + "/"
                self._target.enter(directory, os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
            kernel_calls.attach_mount_in(tree, self._target.fd, name)
        finally:
            os.close(tree)

    def _copy(self, op: Bind) -> int:
        try:
            return self._clone(op)
        except Vanished as error:
            _forgive(op, error)
            return -1

    def _clone(self, op: Bind) -> int:
        directory, _, name = op.path.rpartition("/")
        if directory != self._source.path:
            self._source.enter(directory, self._sources.open(directory or "/", os.O_PATH | os.O_DIRECTORY))
            if not os.fstatvfs(self._source.fd).f_flag & os.ST_RDONLY:
                raise OSError(f"{directory} is not read-only")
        try:
            tree = kernel_calls.clone_name(self._source.fd, name, recursive=op.directory)
        except OSError as error:
            raise Vanished(error.errno, error.strerror, op.path) from error
        mode = os.fstat(tree).st_mode
        if stat.S_ISDIR(mode) != op.directory or stat.S_ISLNK(mode):
            os.close(tree)
            raise Vanished(errno.EEXIST, "it became another thing while the sandbox was being built", op.path)
        return tree

    def close(self) -> None:
        self._source.close()
        self._target.close()


class _Directory:
    """The directory that was worked in last, held open."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.fd = -1

    def enter(self, path: str, fd: int) -> None:
        self.close()
        self.path, self.fd = path, fd

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.path, self.fd = None, -1


def _lay_over(op: Empty | Seal | Absent, shown: int, top: str) -> None:
    try:
        _attach(kernel_calls.clone_tree(shown, op.path.lstrip("/")), top + op.path)
    except FileNotFoundError as error:
        # a name that is gone meanwhile needs no cover
        if not isinstance(op, Absent):
            raise Vanished(error.errno, error.strerror, op.path) from error
    except NotADirectoryError as error:
        what = "it became another thing while the sandbox was being built"
        raise Vanished(error.errno, what, op.path) from error


def _attach(tree: int, path: str) -> None:
    try:
        kernel_calls.attach_mount_at(tree, path)
    finally:
        os.close(tree)


class _Sources:
    """The host's tree as it was before anything was mounted over it."""

    def __init__(self, root: int) -> None:
        self._roots: list[tuple[str, int]] = [("/", root)]

    def keep(self, directory: str) -> None:
        self._roots.append((directory.rstrip("/") + "/", self.open(directory, os.O_PATH | os.O_DIRECTORY)))
        self._roots.sort(key=lambda pair: -len(pair[0]))

    def clone(self, op: Bind) -> int:
        fd = self.open(op.path, os.O_PATH)
        try:
            is_directory = stat.S_ISDIR(os.fstat(fd).st_mode)
            if is_directory != op.directory:
                kind = "a directory" if is_directory else "not a directory"
                raise Vanished(20, f"it became {kind} while the sandbox was being built", op.path)
            return kernel_calls.clone_tree(fd)
        finally:
            os.close(fd)

    def open(self, path: str, flags: int) -> int:
        slashed = path.rstrip("/") + "/"
        for directory, fd in self._roots:
            if slashed.startswith(directory):
                try:
                    return kernel_calls.open_beneath(fd, path[len(directory) :], flags)
                except OSError as error:
                    raise Vanished(error.errno, error.strerror, path) from error
        raise OSError(f"{path} is not absolute")

    def close(self) -> None:
        for _, fd in self._roots:
            os.close(fd)


def plain_cover(operations: tuple[Operation, ...]) -> int:
    """A tmpfs that shows what the mask would show, but for granted names; nobody sees what is asked of it."""
    mount = kernel_calls.new_mount("tmpfs", {"mode": "0755", "size": "64m"})
    made: set[str] = {""}
    for op in operations:
        relative = op.path.strip("/")
        if isinstance(op, (Cover, Way, Empty)) or (isinstance(op, (Bind, Absent)) and op.directory):
            _directory(mount, relative, made)
        elif isinstance(op, (Bind, Seal, Link, Absent)):
            _directory(mount, os.path.dirname(relative), made)
            if relative in made:
                continue
            made.add(relative)
            if isinstance(op, Link):
                os.symlink(op.target, relative, dir_fd=mount)
            else:
                mode = 0o000 if isinstance(op, (Seal, Absent)) else 0o444
                os.close(os.open(relative, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode, dir_fd=mount))
        elif isinstance(op, (Name, Names)):
            _directory(mount, os.path.dirname(relative) if isinstance(op, Name) else relative, made)
    return mount


def _directory(mount: int, relative: str, made: set[str]) -> None:
    if relative in made:
        return
    _directory(mount, os.path.dirname(relative), made)
    os.mkdir(relative, 0o755, dir_fd=mount)
    made.add(relative)


def mask_mount(device: int) -> int:
    """A detached FUSE mount; the reader of `device`, an opened `/dev/fuse`, answers it."""
    return kernel_calls.new_mount(
        "fuse",
        {
            "fd": str(device),
            "rootmode": "40000",
            # ids are those of this user namespace
            "user_id": str(os.getuid()),
            "group_id": str(os.getgid()),
        },
    )
