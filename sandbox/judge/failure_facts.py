"""The facts of a command that has ended, for the notes beside its failure. Pure: the facts are handed in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


#: The most lines of the output that are looked at, from its end: the error is told last.
_LINES = 200


def _no_path(_path: str) -> bool:
    return False


def _no_port(_port: int) -> bool:
    return False


def _none() -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """A command that failed, by itself or for a violation.

    Attributes:
        cwd: the directory it began in, canonical.
        printed: the end of its output on each of its streams.
        exists: whether the host has a path.
        listens: whether a server of the host listens on a TCP port, on loopback or on every address.
        processes: how many processes and threads the task could have at once, 0 where only the machine limits them.
        explained: whether its end says why it failed: by a signal, out of time, or never executed.
        survived: whether the command itself passed.
        starved: how many processes of this machine the kernel has ended since the task began, for want of memory.
    """

    cwd: str
    printed: str = ""
    exists: Callable[[str], bool] = _no_path
    listens: Callable[[int], bool] = _no_port
    processes: Callable[[], int] = _none
    starved: Callable[[], int] = _none
    explained: bool = False
    survived: bool = False

    @property
    def last_lines(self) -> list[str]:
        """The last lines of the output."""
        return self.printed.splitlines()[-_LINES:]
