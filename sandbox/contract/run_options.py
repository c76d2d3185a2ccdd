"""The options of a run, what others need of a run and a session, and what no process can be given. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypedDict

from sandbox.contract.errors import NotStarted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sandbox.contract.config import ResolvedSandboxConfig
    from sandbox.contract.results import RunResult, Violation

#: Seconds between TERM and KILL.
GRACE = 5.0


class RunOptions(TypedDict, total=False):
    """The options of one run; every key may be left out.

    Attributes:
        args: appended to the command, each quoted.
        env: variables of the task's own, over the few that always pass.
        pass_through: names of this process's variables the task asked for.
        cwd: absolute; the project's directory when absent.
        on_stdout: called with each chunk as it comes, in order; likewise `on_stderr`.
        on_violation: called with each violation as it happens.
        timeout: seconds the command may take, counted from its start.
        observer: `auto`, `mask`, `notify`, `strace` or `none`.
        stdin: a descriptor, or all the bytes there are; an empty input when absent. With `pty` it is typed.
        stdout: a descriptor the command writes to itself, in place of being heard and kept; likewise `stderr`. With
            `pty` all output is the terminal's, and goes here.
        terminal: for a task with `pty`: a terminal of the caller's, whose size the task's has, anew with every
            SIGWINCH; where it is `stdin` too, it passes on every key for the time of the run.
        on_start: called once, with the command's process number on the host, just before it is executed.
        capture: whether the result keeps the output (at most 16 MiB of each stream); it does unless told not to.
    """

    args: Iterable[str]
    env: Mapping[str, str] | None
    pass_through: Iterable[str]
    cwd: str | None
    on_stdout: Callable[[bytes], object] | None
    on_stderr: Callable[[bytes], object] | None
    on_violation: Callable[[Violation], object] | None
    timeout: float | None
    observer: str
    stdin: int | bytes | None
    stdout: int | None
    stderr: int | None
    terminal: int | None
    on_start: Callable[[int], object] | None
    capture: bool


class Signalled(Protocol):
    """A run or an attempt that passes signals on to its command."""

    def signal(self, number: int) -> None:
        """Send a signal to the command's group, from any thread; `SIGKILL` ends the whole sandbox."""


class Running(Protocol):
    """One call of `Session.run`, on either platform."""

    def stop(self) -> None:
        """End the run, from any thread, now or as soon as it starts."""

    def signal(self, number: int) -> None:
        """Send a signal to the command, from any thread; before it starts, one that ends processes ends the run."""

    def __call__(self) -> RunResult:
        """Run to the end; a refusal is a result."""


def executable(command: str, variables: Mapping[str, str]) -> None:
    """Refuse a command or a variable that no process can be given."""
    if "\0" in command:
        raise NotStarted(f"the command {command!r} holds a NUL character", hint="remove the character")
    for name, value in variables.items():
        if not name or "=" in name or "\0" in name:
            raise NotStarted(f"{name!r} cannot be the name of a variable", hint="rename it")
        if "\0" in value:
            raise NotStarted(f"the variable {name} holds a NUL character", hint="remove the character")


class Runner(Protocol):
    """The part of a session a run needs."""

    @property
    def declared(self) -> tuple[ResolvedSandboxConfig, ...]:
        """The tasks whose lists `network = true` reaches."""

    def enter(self, run: Signalled) -> None:
        """Have the session's signals reach a run from now on.

        Raises:
            SandboxError: the session was interrupted, and nothing begins any more.
        """

    def leave(self, run: Signalled) -> None:
        """Have the session's signals no longer reach a run, which has ended."""
