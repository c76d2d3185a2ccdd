"""The rules of a macOS profile about terminals: other windows' are closed, `pty` grants one of the task's own. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.planning.macos.profile_rules import READ, WRITE, At, Expression, Rule, plain
from sandbox.planning.operations import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.contract.config import ResolvedSandboxConfig

# The kernel marks terminals the task makes itself, so that none of the user's is opened for writing (CODEX, see
# `process_start_rules`).
_TERMINALS = "^/dev/ttys[0-9]+$"

_OTHERS = Origin(reason="other windows' terminals stay theirs")
_PTY = Origin(field="pty")


def others_terminals() -> Rule:
    """The rule that closes the terminals of other windows.

    One /dev is there for all: keys typed in another window are nobody else's.
    """
    every = (Expression(text=_TERMINALS, about="terminals"),)
    return Rule(action="deny", operations=("file-read-data",), filters=every, origin=_OTHERS)


def pty_rules(config: ResolvedSandboxConfig) -> Iterator[Rule]:
    """The rules of the field `pty`."""
    if config.pty:
        made = plain("require-all", plain("regex", _TERMINALS), plain("extension", "com.apple.sandbox.pty"))
        terminals = (At(path="/dev/ptmx"), made)
        yield Rule(action="allow", operations=("pseudo-tty",), origin=_PTY)
        yield Rule(action="allow", operations=(READ, WRITE, "file-ioctl"), filters=terminals, origin=_PTY)
        # The task's own terminal is made outside and has no such mark; it is inherited open, and programs ask what it
        # is.
        every = (Expression(text=_TERMINALS, about="terminals"),)
        yield Rule(action="allow", operations=("file-ioctl",), filters=every, origin=_PTY)
