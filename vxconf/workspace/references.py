"""Task references: their parts, and the error for a reference that names nothing."""

from __future__ import annotations


class Unknown(Exception):
    """A reference to a task or project that does not exist.

    Attributes:
        message: a lowercase clause.
        near: the nearest names, best first.
    """

    def __init__(self, message: str, near: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.near = near

    def __str__(self) -> str:
        """The message with the nearest names."""
        if not self.near:
            return self.message
        return f"{self.message}; did you mean {' or '.join(self.near)}?"


def split_reference(reference: str) -> tuple[str | None, str]:
    """The project and the task of a reference; the project is `None` for a bare task name.

    >>> split("apps/shop#build"), split("build")
    (('apps/shop', 'build'), (None, 'build'))
    """
    # a task's name holds no `#`, a directory's may
    project, mark, task = reference.rpartition("#")
    return (project if mark else None), task
