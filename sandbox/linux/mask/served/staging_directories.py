"""EFFECT: the staging area: a directory for each directory in which the task makes names beside granted ones."""

from __future__ import annotations

import os

from sandbox.linux.kernel import kernel_calls

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class StagedNames:
    """The staging area of one run.

    Args:
        path: an existing directory of this run alone, absolute, with no link in it; empty for none.
    """

    def __init__(self, path: str) -> None:
        self._root = -1
        if path:
            root = os.open("/", _DIRECTORY)
            self._root = kernel_calls.open_beneath(root, path.strip("/"), _DIRECTORY)
            os.close(root)
        self._areas: dict[str, int] = {}

    def __bool__(self) -> bool:
        """Whether a staging area exists."""
        return self._root >= 0

    def area(self, directory: str, *, make: bool) -> int:
        """A descriptor of a directory's area; -1 where nothing was staged in it.

        Args:
            directory: the directory's path as the task sees it.
            make: whether to make an area that does not exist.
        """
        fd = self._areas.get(directory, -1)
        if fd < 0 and make and self._root >= 0:
            name = f"{len(self._areas):x}"
            # a directory of that name is somebody else's: the staging area was to be empty
            os.mkdir(name, 0o700, dir_fd=self._root)
            try:
                fd = self._areas[directory] = os.open(name, _DIRECTORY, dir_fd=self._root)
            except OSError:
                os.rmdir(name, dir_fd=self._root)
                raise
        return fd

    def holds(self, directory: str, name: str) -> bool:
        """Whether a name is staged in a directory."""
        fd = self._areas.get(directory, -1)
        if fd < 0:
            return False
        try:
            os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            return False
        return True

    def names(self, directory: str) -> list[str]:
        """The names staged in a directory."""
        fd = self._areas.get(directory, -1)
        return [] if fd < 0 else _names(fd)

    def link(self, path: str) -> str | None:
        """The text of a link that is staged at a path, or further down in what is; `None` for anything else."""
        if not self._areas:
            return None
        directory, _, below = path.rpartition("/")
        while directory:
            fd = self._areas.get(directory, -1)
            if fd >= 0:
                try:
                    return os.readlink(below, dir_fd=fd)
                except OSError:  # no link, or nothing staged
                    pass
            directory, _, name = directory.rpartition("/")
            below = f"{name}/{below}"
        return None

    def leftovers(self) -> tuple[str, ...]:
        """The paths of all staged names, as the task saw them; names below a staged directory are left out."""
        return tuple(sorted(f"{path.rstrip('/')}/{name}" for path, fd in self._areas.items() for name in _names(fd)))


def _names(fd: int) -> list[str]:
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    try:
        return os.listdir(opened)
    finally:
        os.close(opened)
