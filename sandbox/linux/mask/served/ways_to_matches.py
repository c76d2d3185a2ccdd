"""EFFECT: the ways, directories that no grant names and that lead to matches of a pattern: shown, made and removed.

A way that the task made stays on the host only where a granted name is in it at the end.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from typing import TYPE_CHECKING

from sandbox.linux.kernel import kernel_calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.planning.served_and_staged_names import GrantedNames

#: The most entries of the host looked at for one answer; a larger directory counts as leading to a match.
SEARCH_LIMIT = 20_000
_REMEMBER_SECONDS = 1.0

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class WaysToMatches:
    """The ways of one task; a directory is known by its device and its inode number.

    Args:
        granted: the names that are served.
        admit: takes the descriptor of each directory that holds a way, and raises where too few are left.
    """

    def __init__(self, granted: GrantedNames, admit: Callable[[int], int]) -> None:
        self._granted = granted
        self._admit = admit
        self._shown: set[tuple[int, int]] = set()
        self._made: dict[tuple[int, int], tuple[int, str]] = {}
        self._hosts: set[tuple[int, int]] = set()
        self._hidden_until: dict[str, float] = {}

    def shown(self, host: int, name: str, path: str) -> bool:
        """Whether a name that may lead to matches is a directory that does, or that the task made.

        Args:
            host: the directory that holds the name.
            name: the name.
            path: the name's path as the task sees it.
        """
        try:
            found = os.stat(name, dir_fd=host, follow_symlinks=False)
        except OSError:
            return False
        if not stat.S_ISDIR(found.st_mode):
            return False
        key = (found.st_dev, found.st_ino)
        if key in self._shown:
            return True
        now = time.monotonic()
        if self._hidden_until.get(path, 0.0) > now:
            return False
        if self._leads_to_match(host, name, path):
            self._shown.add(key)
            return True
        self._hidden_until[path] = now + _REMEMBER_SECONDS
        return False

    def _leads_to_match(self, host: int, name: str, path: str) -> bool:
        looked, todo = 0, [path]
        while todo:
            here = todo.pop()
            try:
                fd = kernel_calls.open_beneath(host, name + here[len(path) :], _LIST)
            except OSError:
                continue
            try:
                with os.scandir(fd) as entries:
                    for entry in entries:
                        looked += 1
                        below = f"{here}/{entry.name}"
                        if looked > SEARCH_LIMIT or self._granted.granted(below):
                            return True
                        if entry.is_dir(follow_symlinks=False) and self._granted.leads(below):
                            todo.append(below)
            finally:
                os.close(fd)
        return False

    def make(self, host: int, name: str, mode: int) -> None:
        """Make a directory on the host that may lead to matches; without a granted name in it, it does not stay.

        Raises:
            FileExistsError: a file of the name is there.
        """
        try:
            os.mkdir(name, mode, dir_fd=host)
            made = True
        except FileExistsError:
            made = False  # a hidden directory: its other names stay hidden
        found = os.stat(name, dir_fd=host, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        key = (found.st_dev, found.st_ino)
        self._shown.add(key)
        if made:
            self._forget_made(key)  # a directory that is gone had the same inode number
            self._hosts.discard(key)
            self._made[key] = (self._admit(os.open(".", _DIRECTORY, dir_fd=host)), name)
        elif key not in self._made:
            self._hosts.add(key)

    def made_by_task(self, key: tuple[int, int]) -> bool:
        """Whether the task made a way."""
        return key in self._made

    def _forget_made(self, key: tuple[int, int]) -> None:
        if key in self._made:
            os.close(self._made.pop(key)[0])

    def remove(self, host: int, name: str, key: tuple[int, int]) -> None:
        """Remove a way in which the task sees no name; one that the host had, from the task's sight alone."""
        self._shown.discard(key)
        if key in self._hosts:  # the task only believes it made the directory
            return
        try:
            os.rmdir(name, dir_fd=host)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:  # the names left in it were never shown
                raise
        else:
            self._forget_made(key)

    def close(self) -> None:
        """Remove the ways that the task made and left empty."""
        for key, (holder, name) in reversed(self._made.items()):
            try:
                found = os.stat(name, dir_fd=holder, follow_symlinks=False)
                if (found.st_dev, found.st_ino) == key:
                    os.rmdir(name, dir_fd=holder)
            except OSError:  # the directory holds a granted name, or is gone
                continue
