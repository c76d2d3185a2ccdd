"""EFFECT: runs the command of a task without a sandbox block, in the environment its file declares."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from sandbox.base.task_environment_variables import TEMPORARY, task_environment
from sandbox.contract.results import RunRefusal, RunResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from vxconf.resolve.task_model import Exec
    from vxconf.workspace.project import Task

_GRACE = 5.0
_NOT_STARTED, _TIMED_OUT = 125, 124


def run_unsandboxed(
    task: Task,
    what: Exec,
    args: list[str],
    *,
    stdout: int,
    timeout: float | None,
    stderr: int | None = None,
    beside_others: Callable[[int], AbstractContextManager[None]] | None = None,
) -> RunResult:
    """Runs the command of a task to its end.

    Args:
        task: the task; its project's directory is the working directory.
        what: the command and its environment.
        args: words that are appended to the command, each quoted.
        stdout: the descriptor the command's output goes to.
        timeout: the seconds the command may take, or `None`.
        stderr: the descriptor the command's errors go to; this process's own by default.
        beside_others: given where other commands run at the same time: makes a context, from the command's process
            group, for the time the command runs. The command then reads nothing, and the caller forwards signals.
    """
    command = " ".join((what.command, *map(shlex.quote, args)))
    # a command that reads from the terminal has to be in the terminal's foreground group, which is this process's
    own_group = beside_others is not None or not os.isatty(0)
    begun = time.monotonic()
    watch = _Watch(timeout, own_group=own_group, hears=beside_others is None)
    with watch:
        try:
            child = subprocess.Popen(
                ("/bin/sh", "-c", command),
                cwd=task.project.directory,
                env=environment(task, what, os.environ),
                stdin=None if beside_others is None else subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                process_group=0 if own_group else None,
            )
        except OSError as fault:
            reason = f"the command could not be started: {(fault.strerror or str(fault)).lower()}"
            return RunResult(sandboxed=False, exit_code=_NOT_STARTED, refusals=(RunRefusal(message=reason),))
        watch.over(child.pid)
        with contextlib.nullcontext() if beside_others is None else beside_others(child.pid):
            _, status, usage = os.wait4(child.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    child.returncode = code
    own = code if code >= 0 else 128 - code
    return RunResult(
        sandboxed=False,
        exit_code=_TIMED_OUT if watch.timed_out else own,
        command_exit_code=own,
        signal=_name(-code) if code < 0 else None,
        timed_out=watch.timed_out,
        started=True,
        duration_ms=(time.monotonic() - begun) * 1000,
        cpu_ms=(usage.ru_utime + usage.ru_stime) * 1000,
        # getrusage(2) gives kibibytes, and bytes on macOS
        peak_rss_bytes=usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        trace_reason="the task has no sandbox block",
    )


def environment(task: Task, what: Exec, host: Mapping[str, str]) -> dict[str, str]:
    """The variables of a sandboxed task, but with the host's temporary directories.

    Args:
        task: the task.
        what: the variables it declares.
        host: the environment of this process.
    """
    found = task_environment(
        host,
        define=dict(what.define),
        pass_through=what.pass_through,
        project=task.project.directory,
        workspace=task.project.workspace.root,
        temp="",
    )
    own = {**host, **dict(what.define)}
    for name in TEMPORARY:
        found.pop(name, None)
        if name in own:
            found[name] = own[name]
    return found


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name
        return f"SIG{number}"


class _Watch:
    """A context that forwards signals of this process to a child, and ends the child when its time is over.

    The context begins before the child is started, and keeps a signal that comes in between for the child.
    """

    def __init__(self, timeout: float | None, *, own_group: bool, hears: bool) -> None:
        self.timed_out = False
        self._hears = hears
        self._own_group = own_group
        self._pid: int | None = None
        self._early: list[int] = []
        self._timers = (
            []
            if timeout is None
            else [
                threading.Timer(timeout, self._expire, (signal.SIGTERM,)),
                threading.Timer(timeout + _GRACE, self._expire, (signal.SIGKILL,)),
            ]
        )
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if self._hears else ():
            # a signal that the caller ignores, as nohup does, stays ignored
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)

    def over(self, pid: int) -> None:
        """Begins the child's time, and sends it the signals that came before."""
        self._pid = pid
        for number in self._early:
            self._send(number)
        for timer in self._timers:
            timer.daemon = True
            timer.start()

    def __exit__(self, *_: object) -> None:
        for timer in self._timers:
            timer.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, _frame: object) -> None:
        if self._pid is None:
            self._early.append(number)
        # the terminal sends an interrupt to the whole foreground group itself
        elif self._own_group or number != signal.SIGINT:
            self._send(number)

    def _expire(self, number: int) -> None:
        self.timed_out = True
        self._send(number)

    def _send(self, number: int) -> None:
        if self._pid is None:
            return
        try:
            if self._own_group:
                os.killpg(self._pid, number)
            else:
                os.kill(self._pid, number)
        except (ProcessLookupError, PermissionError):
            return
