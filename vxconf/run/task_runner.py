"""EFFECT: runs scheduled tasks, several at once, each when the tasks it waits for have passed.

A server stays up until the last task that waits for it has ended; a server that the user asked for, until all other
tasks have ended. Results are not cached: every task is run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sandbox.contract.errors import SandboxError
from sandbox.contract.results import RunRefusal, RunResult, refusals_of
from sandbox.session.server_readiness import READY_SECONDS, NotReady, Ready
from vxconf.run import unsandboxed
from vxconf.workspace.project import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.session.server import Server
    from sandbox.session.session import Session
    from vxconf.diagnostics.diagnostic import Diagnostic
    from vxconf.resolve.task_model import Exec
    from vxconf.run.schedule import Step
    from vxconf.workspace.project import Task

#: The exit statuses, besides 0, of a server that was told to stop.
_STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGHUP)
_CHUNK = 65536
# seconds between two looks whether a server has ended, in a run that only waits for its servers
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTask:
    """A task that has ended, or was skipped.

    Attributes:
        task: the task.
        passed: whether it passed.
        result: the result of its run; `None` for a group, and for a task that was not run.
        refusals: the reasons why it was refused when its turn came.
        skipped: the reason why it was not run, as a clause; empty when it was.
    """

    task: Task
    passed: bool
    result: RunResult | None = None
    refusals: tuple[Diagnostic, ...] = ()
    skipped: str = ""


class Listener(Protocol):
    """The listener of a run; it is called from several threads."""

    def started(self, task: Task) -> None:
        """Is told that a task's command is about to run."""

    def output(self, task: Task, stream: int, chunk: bytes) -> None:
        """Is given bytes that a task's command wrote to stream 1 or 2."""

    def ended(self, ended: EndedTask) -> None:
        """Is told that a task has ended or was skipped."""


class TaskRunner:
    """The runner of one invocation of several tasks."""

    def __init__(
        self,
        session: Session,
        steps: Iterable[Step[Task]],
        listener: Listener,
        *,
        jobs: int,
        timeout: float | None = None,
        observer: str = "auto",
    ) -> None:
        """Takes the steps, each after those it waits for.

        Args:
            session: the session to run sandboxed commands in.
            steps: the steps, from `vxconf.run.schedule`.
            listener: the listener of the run.
            jobs: how many commands run at once; servers that are up do not count.
            timeout: the seconds for each command, in place of the task's own limit.
            observer: the observer of each sandboxed command.
        """
        self._session = session
        self._steps = {step.task.id: step for step in steps}
        self._listener = listener
        self._jobs = jobs
        self._timeout = timeout
        self._observer = observer
        self._ended: dict[str, EndedTask] = {}
        self._up: dict[str, Server] = {}
        self._plain: set[int] = set()
        self._lock = threading.RLock()
        self._stopped_by = 0

    def signal(self, number: int) -> None:
        """Send a signal to every running command, and start no further one."""
        self._stopped_by = self._stopped_by or number
        self._session.interrupt(number)
        with self._lock:
            for pid in self._plain:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, number)

    def run(self) -> tuple[EndedTask, ...]:
        """Run every step to its end; the tasks that ended, in the order of the steps."""
        running: dict[Future[EndedTask | None], str] = {}
        waiting = dict(self._steps)
        with ThreadPoolExecutor(self._jobs, thread_name_prefix="vxconf-task") as threads:
            try:
                while waiting or running:
                    for name in self._next(waiting):
                        if len(running) >= self._jobs:
                            break
                        running[threads.submit(self._one, waiting.pop(name))] = name
                    if not running:
                        continue  # the last steps were skipped just now
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        name = running.pop(future)
                        ended = future.result()
                        if ended is not None:
                            self._end(ended)
                    self._take_down({*waiting, *running.values()})
                self._stay_up()
            finally:
                for name, _ in reversed(self._servers()):
                    self._stop(name)
        return tuple(self._ended[name] for name in self._steps)

    def _next(self, waiting: dict[str, Step[Task]]) -> list[str]:
        """The steps whose turn has come; steps whose turn can never come are skipped on the way."""
        for name in [name for name, server in self._servers() if not server.running]:
            self._stop(name)
        ready = []
        for name, step in list(waiting.items()):
            failed = [other for other in step.after if other in self._ended and not self._ended[other].passed]
            if failed or self._stopped_by:
                why = f"{failed[0]} did not pass" if failed else "the run was stopped"
                del waiting[name]
                self._end(EndedTask(task=step.task, passed=False, skipped=why))
            elif all(other in self._up or other in self._ended for other in step.after):
                ready.append(name)
        return ready

    def _servers(self) -> list[tuple[str, Server]]:
        """The servers that are up now, oldest first; other threads start more."""
        with self._lock:
            return list(self._up.items())

    def _end(self, ended: EndedTask) -> None:
        self._ended[ended.task.id] = ended
        self._listener.ended(ended)

    def _one(self, step: Step[Task]) -> EndedTask | None:
        """Run one task; `None` for a server, which is up then."""
        task, model = step.task, step.task.model
        if model is None or model.exec is None:
            return EndedTask(task=task, passed=True)
        self._listener.started(task)
        try:
            if model.exec.persistent is not None:
                return self._serve(task, model.exec)
            result = self._sandboxed(task, model.exec) if task.sandboxed else self._unsandboxed(task, model.exec)
        except Refused as refused:
            return EndedTask(task=task, passed=False, refusals=refused.diagnostics, skipped="it is refused")
        return EndedTask(task=task, passed=result.exit_code == 0, result=result)

    def _sandboxed(self, task: Task, what: Exec) -> RunResult:
        return self._session.run(
            task.request(),
            command=what.command,
            env=dict(what.define),
            pass_through=what.pass_through,
            on_stdout=lambda chunk: self._listener.output(task, 1, chunk),
            on_stderr=lambda chunk: self._listener.output(task, 2, chunk),
            timeout=self._timeout if self._timeout is not None else what.timeout,
            observer=self._observer,
            capture=False,
        )

    def _serve(self, task: Task, what: Exec) -> EndedTask | None:
        if not task.sandboxed:
            reason = "a server without a sandbox block cannot be run beside other tasks"
            refusal = RunRefusal(message=reason, hint="give it a block, or run it")
            result = RunResult(sandboxed=False, exit_code=125, refusals=(refusal,))
            return EndedTask(task=task, passed=False, result=result)
        said = what.persistent
        ready = Ready(
            output=(said.output if said else None) or "",
            port=said.port if said else None,
            timeout=(said.timeout if said else None) or READY_SECONDS,
        )
        try:
            server = self._session.start(
                task.request(),
                command=what.command,
                ready=ready,
                env=dict(what.define),
                pass_through=what.pass_through,
                on_stdout=lambda chunk: self._listener.output(task, 1, chunk),
                on_stderr=lambda chunk: self._listener.output(task, 2, chunk),
                observer=self._observer,
                capture=False,
            )
        except SandboxError as error:
            result = RunResult(sandboxed=True, exit_code=125, refusals=refusals_of(error))
            return EndedTask(task=task, passed=False, result=result)
        try:
            server.wait_ready()
        except NotReady as error:
            result = server.stop()
            if error.result is None:
                return EndedTask(task=task, passed=False, result=result, skipped=error.message)
            return EndedTask(task=task, passed=False, result=result)
        with self._lock:
            self._up[task.id] = server
        return None

    def _take_down(self, unfinished: set[str]) -> None:
        """Stop the servers that no unfinished step waits for and the user did not ask for."""
        for name, _ in self._servers():
            needed = any(name in self._steps[other].after for other in unfinished)
            if not needed and not self._steps[name].asked:
                self._stop(name)

    def _stay_up(self) -> None:
        """Wait, in an invocation of servers alone, until one of them has ended or a signal comes."""
        others = [step for step in self._steps.values() if step.asked and step.task.id not in self._up]
        while self._up and not others and not self._stopped_by:
            for _, server in self._servers():
                with contextlib.suppress(TimeoutError):
                    server.wait(_LOOK_SECONDS)
                    return

    def _stop(self, name: str) -> None:
        with self._lock:
            server = self._up.pop(name)
        by_itself = not server.running and not self._stopped_by
        result = server.stop()
        stopped = not by_itself and result.command_exit_code in _STOPPED and not result.violations
        passed = result.exit_code == 0 or (stopped and result.trace != "partial")
        self._end(EndedTask(task=self._steps[name].task, passed=passed, result=result))

    def _unsandboxed(self, task: Task, what: Exec) -> RunResult:
        with contextlib.ExitStack() as held:
            streams = [held.enter_context(_pumped(self._listener, task, stream)) for stream in (1, 2)]
            return unsandboxed.run_unsandboxed(
                task,
                what,
                [],
                stdout=streams[0],
                stderr=streams[1],
                timeout=self._timeout if self._timeout is not None else what.timeout,
                beside_others=self._beside,
            )

    @contextlib.contextmanager
    def _beside(self, pid: int) -> Iterator[None]:
        """A context in which signals to the run also reach a process group."""
        with self._lock:
            self._plain.add(pid)
        try:
            if self._stopped_by:
                os.killpg(pid, self._stopped_by)
            yield
        finally:
            with self._lock:
                self._plain.discard(pid)


@contextlib.contextmanager
def _pumped(listener: Listener, task: Task, stream: int) -> Iterator[int]:
    """A descriptor whose bytes go to the listener, all of them before the context is left."""
    reading, writing = os.pipe()

    def pump() -> None:
        while chunk := os.read(reading, _CHUNK):
            listener.output(task, stream, chunk)

    thread = threading.Thread(target=pump, daemon=True)
    thread.start()
    try:
        yield writing
    finally:
        os.close(writing)
        # a process that the command left in the background may hold the pipe open for ever
        thread.join(1.0)
        if not thread.is_alive():
            os.close(reading)
