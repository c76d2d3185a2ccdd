"""EFFECT: the start of a command and the signals to it, as far as both platforms do the same in `Session.run`."""

from __future__ import annotations

import abc
import contextlib
import os
import shlex
import signal
import threading
from typing import TYPE_CHECKING

from sandbox.base import task_environment_variables
from sandbox.contract.errors import NotStarted, SandboxError, reason_of, remedy
from sandbox.contract.run_options import executable
from sandbox.proxy.policy import policy_from_config
from sandbox.run import pass_or_fail
from sandbox.run.ending_signals import ends
from sandbox.scratch import task_tmpdir
from sandbox.terminal.output_stream import OutputStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.contract.results import RunResult, Violation
    from sandbox.contract.run_options import Runner, RunOptions, Signalled
    from sandbox.proxy.policy.policy import Policy
    from sandbox.request.request import Request


class CommandRun(abc.ABC):
    """One call of `Session.run`; a platform says how the command is carried out.

    Args:
        session: the session, whose signals reach the command.
        request: what may be reached.
        command: given to `/bin/sh -c`.
        options: see `RunOptions`.
    """

    def __init__(self, session: Runner, request: Request, command: str, options: RunOptions) -> None:
        self._session = session
        self._request = request
        self._command = " ".join((command, *map(shlex.quote, options.get("args", ()))))
        self._options = options
        self._attempt: Signalled | None = None
        self._violations: list[Violation] = []
        self._stopped = False
        self._begun = False
        # The lock is reentrant: a signal handler may come while the thread of the run holds it.
        self._lock = threading.RLock()

    def stop(self) -> None:
        """End the run, from any thread, now or as soon as it starts."""
        with self._lock:
            self._stopped = True
            if self._attempt is not None:
                self._attempt.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Send a signal to the command, from any thread; before it starts, one that ends processes ends the run."""
        with self._lock:
            self._stopped = self._stopped or (not self._begun and ends(number))
            if self._attempt is not None:
                self._attempt.signal(number)

    def __call__(self) -> RunResult:
        """Run to the end; a refusal is a result."""
        try:
            with self._entered():
                return self._carry_out()
        except SandboxError as error:
            return pass_or_fail.not_started(self._with_cause(error))
        except OSError as error:
            return pass_or_fail.not_started(
                NotStarted(f"the sandbox could not be started: {reason_of(error)}", hint=remedy(error))
            )

    @contextlib.contextmanager
    def _entered(self) -> Iterator[None]:
        """Have the session's signals reach this run, for the time of the context."""
        self._session.enter(self)
        try:
            yield
        finally:
            self._session.leave(self)

    @abc.abstractmethod
    def _carry_out(self) -> RunResult:
        """Build the sandbox, run the command in it and judge what it did.

        Raises:
            SandboxError: nothing of the command ran.
            OSError: likewise, for want of something of the machine's.
        """

    def _with_cause(self, error: SandboxError) -> SandboxError:
        """A failure with the machine's part in it, where a platform knows how to find that."""
        return error

    def _checked_directory(self) -> str:
        """The directory the command begins in.

        Raises:
            NotStarted: the directory is gone, or the command or a variable is one no process can be given.
        """
        cwd = self._options.get("cwd") or self._request.config.project
        if not os.path.isdir(cwd):
            raise NotStarted(f"the working directory {cwd} is gone", hint="restore it, or run the task elsewhere")
        executable(self._command, self._options.get("env") or {})
        return cwd

    @contextlib.contextmanager
    def _temporary_directory(self) -> Iterator[str]:
        """The task's own temporary directory, for the time of the context."""
        made = task_tmpdir.make(self._request.facts.temp_root)
        try:
            yield made.path
        finally:
            made.remove()

    def _variables(self, temp: str) -> dict[str, str]:
        """The variables the command starts with, and no other."""
        config = self._request.config
        return task_environment_variables.task_environment(
            os.environ,
            define=self._options.get("env") or {},
            pass_through=tuple(self._options.get("pass_through", ())),
            project=config.project,
            workspace=self._request.workspace_root,
            temp=temp,
            grants_git=task_environment_variables.names_git((*config.allow_read, *config.allow_write)),
            git_config=config.git_config,
        )

    def _policy(self, temp: str) -> Policy:
        """The hosts, ports and sockets the command reaches.

        Raises:
            NotStarted: a proxy of the host's is of a kind that is not spoken here.
        """
        return policy_from_config.policy(
            self._request.config, temp=temp, declared=self._session.declared, host=os.environ
        )

    def _streams(self) -> tuple[OutputStream | int, OutputStream | int]:
        """The places the command's output and errors go to."""
        options = self._options
        keep = options.get("capture", True)
        return (
            _stream(options.get("stdout"), options.get("on_stdout"), keep=keep),
            _stream(options.get("stderr"), options.get("on_stderr"), keep=keep),
        )

    @contextlib.contextmanager
    def _signalled(self, attempt: Signalled) -> Iterator[None]:
        """Have the signals to this run reach an attempt, for the time of the context."""
        with self._lock:
            self._attempt = attempt
            if self._stopped:
                attempt.signal(signal.SIGKILL)
        try:
            yield
        finally:
            with self._lock:
                self._attempt = None

    def _started(self, command: int) -> None:
        """Be told of the command's start, and tell the caller."""
        self._begun = True
        hear = self._options.get("on_start")
        if hear is not None:
            hear(command)

    def _tell(self, violation: Violation | None) -> None:
        """Keep a violation for the result, and tell the caller of it as it happens."""
        if violation is None:
            return
        self._violations.append(violation)
        hear = self._options.get("on_violation")
        if hear is not None:
            hear(violation)


def _stream(descriptor: int | None, heard: Callable[[bytes], object] | None, *, keep: bool) -> OutputStream | int:
    return OutputStream(heard, keep) if descriptor is None else descriptor
