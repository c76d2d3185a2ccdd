"""What is known once a command has ended, for the notes beside its failure. Pure: the facts are handed in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def _no_path(_path: str) -> bool:
    return False


def _no_port(_port: int) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """A command that failed, by itself or for a violation.

    Attributes:
        cwd: the directory it began in, canonical.
        printed: the end of what it printed on each of its streams.
        exists: whether the host has a path.
        listens: whether a server of the host listens on a TCP port, on loopback or on every address.
    """

    cwd: str
    printed: str = ""
    exists: Callable[[str], bool] = _no_path
    listens: Callable[[int], bool] = _no_port
