"""EFFECT: the executor's ends of a command's three standard streams: pipes that are heard, and pipes that are relayed.

No more than pipes and a null device crosses to a command without a terminal, which process 1 insists on.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sandbox.linux.inside import accepted_streams
from sandbox.terminal.input_relay import InputRelay
from sandbox.terminal.output_relay import OutputRelay
from sandbox.terminal.stream_relay import enlarge

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.terminal.output_stream import OutputStream

# Seconds for a reader of the caller's to take what is left, once a run was stopped or took too long.
_PATIENCE = 1.0
_LOOK = 0.1


class StandardStreams:
    """Three standard streams of one attempt.

    Args:
        stdin: a descriptor of the caller's, bytes, or `None` for an empty input.
        stdout: who hears and keeps what is written, or a descriptor of the caller's; likewise `stderr`.
        awaited: see `InputRelay`.

    Attributes:
        inside: the command's ends, for whoever hands them over and closes them.
        heard: the pipes that the executor reads itself, each with who hears it.
    """

    def __init__(
        self,
        stdin: int | bytes | None,
        stdout: OutputStream | int,
        stderr: OutputStream | int,
        awaited: Callable[[os.stat_result], bool | None],
    ) -> None:
        self.inside: list[int] = []
        self.heard: list[tuple[int, OutputStream]] = []
        self._relays: list[InputRelay | OutputRelay] = []
        try:
            self._input(stdin, awaited)
            self._output(stdout)
            if isinstance(stdout, int) and isinstance(stderr, int) and _are_one_file(stdout, stderr):
                self.inside.append(os.dup(self.inside[1]))  # so that what is written stays in order
            else:
                self._output(stderr)
        except BaseException:
            self.close()
            for fd in self.inside:
                os.close(fd)
            raise

    def _input(self, stdin: int | bytes | None, awaited: Callable[[os.stat_result], bool | None]) -> None:
        if stdin is None or (isinstance(stdin, int) and accepted_streams.is_null(stdin)):
            self.inside.append(empty())
        else:
            self._relayed(InputRelay(stdin, awaited))

    def _output(self, stream: OutputStream | int) -> None:
        if isinstance(stream, int):
            self._relayed(OutputRelay(stream))
        else:
            reading, writing = os.pipe()
            self.heard.append((reading, stream))
            self.inside.append(writing)
            enlarge(reading)

    def _relayed(self, relay: InputRelay | OutputRelay) -> None:
        relay.start()
        self._relays.append(relay)
        self.inside.append(relay.inside)

    def begin(self) -> None:
        """Relay from now on: the command starts, and nothing was taken from the caller before."""
        for relay in self._relays:
            relay.begin()

    def end(self, stopped: Callable[[], bool]) -> None:
        """Wait until all that the command wrote was delivered: no process of its own lives any more.

        Args:
            stopped: whether the run was stopped or took too long; nobody then waits for ever for who takes nothing.
        """
        for relay in self._relays:
            relay.end()
        left = _PATIENCE
        for relay in self._relays:
            while not relay.join(_LOOK):
                # An input is read by others as well, and a read for which one of them was faster waits.
                left -= _LOOK if isinstance(relay, InputRelay) or stopped() else 0.0
                if left <= 0:
                    relay.give_up()
                    break

    def lost(self) -> str:
        """Why a caller's descriptor took no more of what the command wrote; empty where both took all."""
        return next((relay.lost for relay in self._relays if isinstance(relay, OutputRelay) and relay.lost), "")

    def close(self) -> None:
        """Let go of all that is still held."""
        for relay in self._relays:
            relay.end()
            relay.give_up()
        for reading, _ in self.heard:
            os.close(reading)
        self.heard = []


def empty() -> int:
    """An input at its end; the command gets the null device of its own `/dev` for it."""
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _are_one_file(one: int, other: int) -> bool:
    return os.path.sameopenfile(one, other)
