"""EFFECT: callers' terminals while runs have them raw: given back as they were when the executor dies meanwhile.

The supervisor keeps them, which outlives the executor by that moment. It is in no terminal's session, so the kernel
lets it set one without stopping it (termios(3), tcsetattr and SIGTTOU).
"""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import socket
import termios
from typing import Any, NamedTuple

#: The beginning of a word that lends a terminal.
WORD = b"lent "
#: The descriptors sent for one terminal: the line on which its return is told, and the terminal.
DESCRIPTORS = 2
_BACK = b"back"
# The flags among the values of `tcgetattr`; terminals set values of their own for the rest.
_FLAGS = (0, 1, 3)


class _Lent(NamedTuple):
    line: socket.socket
    terminal: int
    before: list[Any]
    meanwhile: list[Any]


class LentTerminals:
    """Terminals that are raw now, or are about to be."""

    def __init__(self) -> None:
        self._lent: dict[int, _Lent] = {}

    def take(self, word: bytes, fds: list[int]) -> None:
        """Keep one terminal; the descriptors stay the caller's.

        Args:
            word: from `lend_word`.
            fds: the line and the terminal.
        """
        before, meanwhile = marshal.loads(word.removeprefix(WORD))  # noqa: S302  the executor is of this program
        line = socket.socket(fileno=os.dup(fds[0]))
        self._lent[line.fileno()] = _Lent(line, os.dup(fds[1]), before, meanwhile)

    def watch(self, poll: select.poll) -> None:
        """Add the lines to the descriptors that are waited for."""
        for fd in self._lent:
            poll.register(fd, select.POLLIN)

    def hear(self, ready: set[int]) -> None:
        """Take the words on the lines that are ready."""
        for fd in self._lent.keys() & ready:
            self._end(self._lent.pop(fd))

    def end(self) -> None:
        """Take the last word on each line, since the executor is gone."""
        while self._lent:
            self._end(self._lent.popitem()[1])

    def close(self) -> None:
        """Let go of all of them, in a fork."""
        for one in self._lent.values():
            one.line.close()
            os.close(one.terminal)

    @staticmethod
    def _end(one: _Lent) -> None:
        with one.line:
            said = b""
            with contextlib.suppress(OSError):
                said = one.line.recv(16)
        # A terminal that somebody else has set meanwhile, as some shells do, is left as it is.
        with contextlib.suppress(OSError, termios.error):
            if said != _BACK and _flags(termios.tcgetattr(one.terminal)) == _flags(one.meanwhile):
                termios.tcsetattr(one.terminal, termios.TCSANOW, one.before)
        os.close(one.terminal)


def _flags(modes: list[Any]) -> list[Any]:
    return [modes[index] for index in _FLAGS]


def lend_word(before: list[Any], meanwhile: list[Any]) -> bytes:
    """The word that lends a terminal; modes are as `tcgetattr` tells them."""
    return WORD + marshal.dumps((before, meanwhile))


def give_back(line: socket.socket) -> None:
    """Say that a terminal is as it was before."""
    with contextlib.suppress(OSError):  # the supervisor is gone
        line.send(_BACK)
