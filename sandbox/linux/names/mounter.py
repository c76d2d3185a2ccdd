"""EFFECT: the process that mounts granted names where a task sees them.

It takes a copy of a mount in a mount namespace of its own, which is the host's as it was, and attaches the copy in the
task's. Its pid namespace is the host's, out of the task's sight. It ends with the warden.
"""

from __future__ import annotations

import errno
import os
import pickle
import signal
import socket
import stat
from typing import NamedTuple, NoReturn

from sandbox.linux.kernel import kernel_calls

_WORD = 1 << 16
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Showing(NamedTuple):
    """One mount to make.

    Attributes:
        source: the directory on the host that holds the name, absolute, with no link on the way.
        name: the file or the directory in it.
        target: the directory in which the task is to see it.
        place: the empty file or directory in that one to mount on.
        kept: paths below the name, relative to it, that stay read-only.
    """

    source: str
    name: str
    target: str
    place: str
    kept: tuple[str, ...] = ()


class Mounter:
    """The process, as the warden asks it.

    Args:
        mounts: a descriptor of the task's mount namespace.

    Raises:
        OSError: the process cannot be started, or cannot enter the namespaces.
    """

    def __init__(self, mounts: int) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            try:
                signal.set_wakeup_fd(-1)
                ours.close()
                _serve(mounts, theirs)
            finally:
                os._exit(1)
        theirs.close()
        self._link = ours
        word = ours.recv(_WORD)
        if word != b"ready":
            raise OSError(f"what mounts granted names cannot start: {word.decode(errors='replace') or 'it ended'}")

    def show(self, showing: Showing) -> int:
        """Make a mount; an O_PATH descriptor of the file or the directory in it.

        Raises:
            OSError: it cannot be made; ESTALE, what is there cannot be mounted.
        """
        self._link.send(pickle.dumps(tuple(showing)))
        word, fds, _, _ = socket.recv_fds(self._link, _WORD, 1)
        if not fds:
            code = int(word or errno.EPIPE)
            raise OSError(code, os.strerror(code), showing.name)
        os.set_inheritable(fds[0], False)
        return fds[0]

    def close(self) -> None:
        """End the process."""
        self._link.close()


def _serve(mounts: int, link: socket.socket) -> NoReturn:
    try:
        owner = kernel_calls.owning_user_namespace(mounts)
        kernel_calls.setns(owner, "user")
        os.close(owner)
        kernel_calls.unshare("mnt")
        # a mount that the host makes later does not arrive
        kernel_calls.set_mount_attributes(kernel_calls.AT_FDCWD, "/", propagation=kernel_calls.MS_PRIVATE)
        own = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        # the death signal is set last: a process that gains capabilities loses it (PR_SET_PDEATHSIG in prctl(2))
        kernel_calls.die_with_parent(signal.SIGKILL)
    except OSError as error:
        link.send(str(error).encode())
        os._exit(1)
    link.send(b"ready")
    while word := link.recv(_WORD):
        showing = Showing(*pickle.loads(word))  # noqa: S301  the warden is of this program
        try:
            tree = _shown(showing, own, mounts)
        except OSError as error:
            link.send(b"%d" % (error.errno or errno.EIO))
            continue
        socket.send_fds(link, [b"shown"], [tree])
        os.close(tree)
    os._exit(0)


def _shown(showing: Showing, own: int, mounts: int) -> int:
    tree = _copy(showing, own)
    try:
        kernel_calls.setns(mounts, "mnt")
        holder = _directory(showing.target)
        try:
            kernel_calls.attach_mount_in(tree, holder, showing.place)
        finally:
            os.close(holder)
        passed: set[str] = set()
        for relative in showing.kept:
            _keep(tree, relative, passed)
    except BaseException:
        os.close(tree)
        raise
    return tree


def _copy(showing: Showing, own: int) -> int:
    """A detached copy of the mount at a name of the host's."""
    kernel_calls.setns(own, "mnt")
    holder = _directory(showing.source)
    try:
        found = os.stat(showing.name, dir_fd=holder, follow_symlinks=False)
        tree = kernel_calls.clone_name(holder, showing.name, recursive=stat.S_ISDIR(found.st_mode))
    finally:
        os.close(holder)
    try:
        _insist_on_no_link(tree)
        added = kernel_calls.MOUNT_ATTR_NOSUID | kernel_calls.MOUNT_ATTR_NODEV
        kernel_calls.set_mount_attributes(tree, "", add=added)
    except BaseException:
        os.close(tree)
        raise
    return tree


def _insist_on_no_link(tree: int) -> None:
    if stat.S_ISLNK(os.fstat(tree).st_mode):  # the host put a link there meanwhile
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def _keep(tree: int, relative: str, passed: set[str]) -> None:
    """Make a path below a mount read-only, and each directory above it a mount, so that none is renamed away.

    Args:
        tree: the mount.
        relative: the path.
        passed: paths that are mounts already.
    """
    parts = relative.split("/")
    try:
        file = kernel_calls.open_beneath(tree, relative, os.O_PATH | os.O_NOFOLLOW)
    except OSError:  # the host has taken it away, or a link is on the way
        return
    kind = os.fstat(file).st_mode
    os.close(file)
    if stat.S_ISLNK(kind):  # a link cannot be mounted on
        return
    for depth in range(1, len(parts) + 1):
        here = "/".join(parts[:depth])
        if here in passed:
            continue
        passed.add(here)
        holder = kernel_calls.open_beneath(tree, "/".join(parts[: depth - 1]), _DIRECTORY)
        try:
            copy = kernel_calls.clone_name(holder, parts[depth - 1], recursive=True)
            try:
                _insist_on_no_link(copy)
                if depth == len(parts):
                    kernel_calls.set_mount_attributes(copy, "", add=kernel_calls.MOUNT_ATTR_RDONLY)
                kernel_calls.attach_mount_in(copy, holder, parts[depth - 1])
            finally:
                os.close(copy)
        finally:
            os.close(holder)


def _directory(path: str) -> int:
    root = os.open("/", _DIRECTORY)
    try:
        return kernel_calls.open_beneath(root, path.strip("/"), _DIRECTORY)
    finally:
        os.close(root)
