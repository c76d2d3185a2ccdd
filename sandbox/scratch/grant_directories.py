"""EFFECT: makes the directories that write grants want on the host, following no link, and takes them back."""

from __future__ import annotations

import os
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.errors import NotStarted, remedy
from sandbox.planning.operations import Make, Name, Names, Operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC if hasattr(os, "O_PATH") else os.O_RDONLY


@dataclass(slots=True)
class SharedDirectories:
    """Directories that are only there to hold names, shared by the runs of this process.

    A directory goes once the last run that needs it has ended, if one of them made it and nothing is in it.
    """

    _ours: set[str] = field(default_factory=set)
    _users: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def make(self, operations: Iterable[Operation]) -> tuple[list[str], RunDirectories]:
        """Make every missing directory.

        Returns:
            The new directories that stay, parents first, and those that may go once the run has ended.

        Raises:
            NotStarted: see `make`.
        """
        every = tuple(operations)
        stays = [one.path for one in every if isinstance(one, Make) and not one.passing]
        holders = set(_holders(every))
        with self._lock:
            made = make(every)
            mine = {path for path in made if not any(paths.at_or_under(other, path) for other in stays)}
            self._ours |= mine
            used = sorted(path for path in self._ours if any(paths.at_or_under(holder, path) for holder in holders))
            self._users.update(used)
        return [path for path in made if path not in mine], RunDirectories(self, used)

    def release(self, used: list[str]) -> None:
        """Take back the directories that no run needs any more."""
        with self._lock:
            self._users.subtract(used)
            gone = sorted(path for path in used if self._users[path] <= 0)
            for path in gone:
                del self._users[path]
                self._ours.discard(path)
            take_back(gone)


@dataclass(frozen=True, slots=True)
class RunDirectories:
    """The directories of `SharedDirectories` that one run needs.

    Attributes:
        used: made by runs of this process, this one or another.
    """

    holder: SharedDirectories
    used: list[str]

    def release(self) -> None:
        """Take back the directories, since the run has ended."""
        self.holder.release(self.used)


def _holders(operations: Iterable[Operation]) -> Iterator[str]:
    """The directories that are only there to hold names."""
    for operation in operations:
        match operation:
            case Names(path=path) | Make(path=path, passing=True):
                yield path
            case Name(path=path):
                yield paths.parent(path)
            case _:
                continue


#: The directories that runs of this process share.
PASSING = SharedDirectories()


def make(operations: Iterable[Operation]) -> list[str]:
    """Make every missing directory; the new ones, parents first.

    Raises:
        NotStarted: one cannot be made, or a link stands where a directory was planned; nothing made is left.
    """
    made: list[str] = []
    for operation in operations:
        if isinstance(operation, Make):
            try:
                _make(operation.path, made)
            except OSError as error:
                take_back(made)
                raise NotStarted(
                    f"the directory {operation.path} of a write grant cannot be made: {error.strerror}",
                    hint=remedy(error) or "make it yourself, or change the grant",
                ) from error
    return made


def _make(path: str, made: list[str]) -> None:
    here = os.open("/", _DIRECTORY)
    walked = ""
    try:
        for name in filter(None, path.split("/")):
            walked = f"{walked}/{name}"
            try:
                os.mkdir(name, 0o777, dir_fd=here)
                made.append(walked)
            except FileExistsError:
                pass
            except OSError:
                # An unwritable parent may refuse a name that exists as well; the open below decides.
                if not _there(name, here):
                    raise
            below = os.open(name, _DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
    finally:
        os.close(here)


def _there(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return True


def take_back(made: list[str]) -> None:
    """Remove directories that `make` made, as far as they are still empty and no link leads to them now."""
    for path in reversed(made):
        try:
            _remove(path)
        except OSError:  # something is in it by now: it is not ours any more
            continue


def _remove(path: str) -> None:
    *above, last = filter(None, path.split("/"))
    here = os.open("/", _DIRECTORY)
    try:
        for name in above:
            below = os.open(name, _DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
        os.rmdir(last, dir_fd=here)
    finally:
        os.close(here)
