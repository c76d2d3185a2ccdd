"""EFFECT: where names live that the task makes beside granted ones: one directory for each directory it does so in."""

from __future__ import annotations

import os

from sandbox.linux.kernel import kernel_calls

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class StagedNames:
    """The staging area of one run.

    Args:
        path: an existing directory of this run alone, absolute with no link in it; empty for none.
    """

    def __init__(self, path: str) -> None:
        self._root = -1
        if path:
            root = os.open("/", _DIRECTORY)
            self._root = kernel_calls.open_beneath(root, path.strip("/"), _DIRECTORY)
            os.close(root)
        self._areas: dict[str, int] = {}

    def __bool__(self) -> bool:
        """Whether there is one."""
        return self._root >= 0

    def area(self, directory: str, *, make: bool) -> int:
        """A descriptor of the area for a directory, by its path as the task sees it; -1 where nothing was staged."""
        fd = self._areas.get(directory, -1)
        if fd < 0 and make and self._root >= 0:
            name = f"{len(self._areas):x}"
            # one that is there belongs to somebody else: the directory was to be empty
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
        """What is staged in a directory."""
        fd = self._areas.get(directory, -1)
        return [] if fd < 0 else _names(fd)

    def leftovers(self) -> tuple[str, ...]:
        """Every path staged and still there, as the task sees it; what lies below one is not told."""
        return tuple(sorted(f"{path.rstrip('/')}/{name}" for path, fd in self._areas.items() for name in _names(fd)))


def _names(fd: int) -> list[str]:
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    try:
        return os.listdir(opened)
    finally:
        os.close(opened)
