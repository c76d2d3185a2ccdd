"""EFFECT: the output of commands, passed on to the descriptors of this process; what is lost fails the run."""

from __future__ import annotations

import dataclasses
import errno
import os
import select
from typing import TYPE_CHECKING

from sandbox.contract.results import Hint

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.contract.results import RunResult

_NOBODY_READS = (errno.EPIPE, errno.ECONNRESET)


class CommandOutput:
    """A descriptor of this process that commands' output goes to.

    Args:
        descriptor: where it goes.
        refused: called once where the descriptor takes no more.

    Attributes:
        lost: why it takes no more (a disk that is full), empty where it took all or its reader is gone.
    """

    def __init__(self, descriptor: int, refused: Callable[[], object]) -> None:
        self.lost = ""
        self._descriptor = descriptor
        self._refused = refused
        self._gone = False

    def write(self, chunk: bytes | memoryview) -> None:
        """Pass bytes on; nothing is done once the descriptor took no more."""
        view = memoryview(chunk)
        while view and not self._gone:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError as error:
                self._gone = True
                if error.errno not in _NOBODY_READS:
                    self.lost = error.strerror or str(error)
                self._refused()


def lost(*outputs: CommandOutput) -> str:
    """Why not all that commands wrote was passed on; empty where it was."""
    why = next((output.lost for output in outputs if output.lost), "")
    return f"not all the command wrote could be passed on: {why}" if why else ""


def with_lost_output(result: RunResult, *outputs: CommandOutput) -> RunResult:
    """The result of a run that passes only if what its command wrote was passed on."""
    why = lost(*outputs)
    if not why:
        return result
    return dataclasses.replace(result, exit_code=result.exit_code or 1, hints=(*result.hints, Hint(line=why)))
