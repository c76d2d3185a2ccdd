"""EFFECT: makes the directories a plan wants on the host, following no link, and takes them back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sandbox.errors import NotStarted
from sandbox.plan.ops import Make, Operation

if TYPE_CHECKING:
    from collections.abc import Iterable

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC if hasattr(os, "O_PATH") else os.O_RDONLY


def make(operations: Iterable[Operation]) -> list[str]:
    """Make every missing directory; what was made, parents first.

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
                    hint="make it yourself, or change the grant",
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
                # an unwritable parent answers so for a name that is there as well; the open decides
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
    """Remove what `make` made, as far as it is still empty and no link leads to it now."""
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
