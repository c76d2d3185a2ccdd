"""EFFECT: the executor's side: a session owns one supervisor and every run it started."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from sandbox import environment, making, outcome, paths, staging, temporary
from sandbox import request as requests
from sandbox.errors import NotStarted, SandboxError, Unavailable
from sandbox.host import HostFiles, host_facts
from sandbox.judge.boundary import Boundary
from sandbox.judge.verdict import Judge
from sandbox.linux.messages import Spec
from sandbox.plan import linux
from sandbox.running import Attempt, Report, Stream
from sandbox.secrets import masker
from sandbox.setaside import set_aside
from sandbox.tools import find_bwrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from sandbox.contract import Access, ResolvedSandboxConfig, RunResult, Violation
    from sandbox.dependencies import Projects
    from sandbox.plan.model import Plan
    from sandbox.request import Request

_START_SECONDS = 30.0
#: Seconds between TERM and KILL.
GRACE = 5.0

_OBSERVERS = ("auto", "mask", "notify", "none")
_BOOT = "import sys; sys.path.insert(0, {path!r}); from sandbox.linux.supervisor import main; main({fd})"


def plan(request: Request, *, platform: str | None = None) -> Plan:
    """What a request becomes on this machine.

    Raises:
        RequestRefused: a grant cannot be given.
        Unavailable: the platform's plans are not built.
    """
    if (platform or request.facts.platform) != "linux":
        raise Unavailable("only plans for linux are built", hint="ask for the linux plan")
    return linux.plan(request, HostFiles())


class RunOptions(TypedDict, total=False):
    """How one command is run; every key may be left out.

    Attributes:
        args: appended to the command, each quoted.
        env: variables of the task's own, over the few that always pass.
        pass_through: names of this process's variables the task asked for.
        cwd: absolute; the project's directory when absent.
        on_stdout: called with each chunk as it comes, in order; likewise `on_stderr`.
        on_violation: called with each violation as it happens.
        timeout: seconds the command may take, counted from its start.
        observer: `auto`, `mask`, `notify` or `none`.
        stdin: a descriptor, or all the bytes there are; an empty input when absent.
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
    capture: bool


class Session:
    """Runs tasks, any number at once, each behind its own walls.

    Safe from several threads. Nothing is started before the first run, and leaving the context (or `close`) ends
    whatever still runs.
    """

    def __init__(self) -> None:
        # a signal handler may come while the main thread holds it
        self._lock = threading.RLock()
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._attempts: set[Attempt] = set()
        self._closed = False

    def __enter__(self) -> Self:
        """The session itself; nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything the session started."""
        self.close()

    async def __aenter__(self) -> Self:
        """The session itself; nothing is started yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything the session started."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End every run and the supervisor; a closed session runs nothing more."""
        with self._lock:
            self._closed = True
            attempts = tuple(self._attempts)
            supervisor, self._supervisor = self._supervisor, None
            channel, self._requests = self._requests, None
        for attempt in attempts:
            attempt.signal(signal.SIGKILL)
        if channel is not None:
            channel.close()
        if supervisor is not None:
            try:
                supervisor.wait(_START_SECONDS)
            except subprocess.TimeoutExpired:
                supervisor.kill()
                supervisor.wait()

    def request(
        self,
        config: ResolvedSandboxConfig,
        *,
        workspace_root: str,
        keyed: Iterable[str] | None = None,
        nested: Iterable[str] = (),
        projects: Projects | None = None,
        dependency_outputs: Iterable[str] = (),
        dependency_reported: Iterable[str] = (),
        cache_dir: str | None = None,
        links: Iterable[tuple[str, str]] = (),
    ) -> Request:
        """What one attempt may read and write; the arguments are those of `sandbox.request.build`.

        Raises:
            RequestRefused: with every reason found.
        """
        return requests.build(
            config,
            workspace_root=workspace_root,
            files=HostFiles(),
            facts=host_facts(),
            keyed=keyed,
            nested=nested,
            projects=projects,
            dependency_outputs=dependency_outputs,
            dependency_reported=dependency_reported,
            cache_dir=cache_dir,
            links=links,
        )

    def run(self, request: Request, *, command: str, **options: Unpack[RunOptions]) -> RunResult:
        """Run one command behind the request's walls and judge it.

        Args:
            request: from `Session.request`.
            command: given to `/bin/sh -c`.
            options: see `RunOptions`.

        Returns:
            A result; one that did not start has `exit_code` 125 and says why in `refusals`.
        """
        return _Run(self, request, command, options)()

    async def arun(self, request: Request, *, command: str, **options: Unpack[RunOptions]) -> RunResult:
        """As `run`, in an event loop; cancelling it ends the whole tree. Callbacks are called in another thread."""
        run = _Run(self, request, command, options)
        running = asyncio.ensure_future(asyncio.to_thread(run))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            run.stop()
            await running
            raise

    def signal(self, number: int) -> None:
        """Send a signal to the command of every run; `SIGKILL` ends whole sandboxes."""
        with self._lock:
            attempts = tuple(self._attempts)
        for attempt in attempts:
            attempt.signal(number)

    def _hand_over(self, bwrap: str, fds: list[int]) -> None:
        with self._lock:
            if self._closed:
                raise Unavailable("the session is closed", hint="run tasks inside the session's context")
            channel = self._requests
            if channel is None or (self._supervisor is not None and self._supervisor.poll() is not None):
                channel = self._start()
            word = os.fsencode(bwrap)
            try:
                socket.send_fds(channel, [word], fds)
            except (BrokenPipeError, ConnectionResetError):  # it died just now, and `poll` had not heard
                socket.send_fds(self._start(), [word], fds)

    def _start(self) -> socket.socket:
        """Start the supervisor: an interpreter of its own that imports nothing but the engine."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        try:
            with theirs:
                supervisor = subprocess.Popen(
                    (sys.executable, "-I", "-S", "-c", _BOOT.format(path=root, fd=theirs.fileno())),
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=None if os.environ.get("VXCONF_DEBUG") else subprocess.DEVNULL,
                    # a terminal's signals are for the executor, which decides what the command hears of them
                    start_new_session=True,
                    env={"LC_ALL": "C.UTF-8", **({"VXCONF_DEBUG": "1"} if os.environ.get("VXCONF_DEBUG") else {})},
                )
        except OSError:
            ours.close()
            raise
        ours.settimeout(_START_SECONDS)
        try:
            ready = ours.recv(16)
        except OSError:
            ready = b""
        if ready != b"ready":
            ours.close()
            supervisor.kill()
            supervisor.wait()
            raise NotStarted("the session's supervisor did not start", hint="set VXCONF_DEBUG=1 for its own words")
        ours.settimeout(None)
        if self._requests is not None:
            self._requests.close()
        self._supervisor, self._requests = supervisor, ours
        return ours

    def _enter(self, attempt: Attempt) -> None:
        with self._lock:
            self._attempts.add(attempt)

    def _leave(self, attempt: Attempt) -> None:
        with self._lock:
            self._attempts.discard(attempt)


class _Run:
    """One call of `Session.run`: at most two attempts, and what surrounds them."""

    def __init__(self, session: Session, request: Request, command: str, options: RunOptions) -> None:
        self._session = session
        self._request = request
        self._command = " ".join((command, *map(shlex.quote, options.get("args", ()))))
        self._options = options
        self._attempt: Attempt | None = None
        self._area: staging.Area | None = None
        self._violations: list[Violation] = []
        self._stopped = False
        self._bwrap = ""
        self._lock = threading.RLock()

    def stop(self) -> None:
        """End it, from any thread, now or as soon as it starts."""
        with self._lock:
            self._stopped = True
            if self._attempt is not None:
                self._attempt.signal(signal.SIGKILL)

    def __call__(self) -> RunResult:
        """Run to the end; a refusal is a result."""
        try:
            return self._prepared()
        except SandboxError as error:
            return outcome.not_started(error)
        except OSError as error:
            return outcome.not_started(NotStarted(f"the sandbox could not be started: {error}"))

    def _prepared(self) -> RunResult:
        observer = self._options.get("observer", "auto")
        if observer not in _OBSERVERS:
            raise NotStarted(f"the observer {observer!r} is not built", hint=f"use one of {', '.join(_OBSERVERS)}")
        config, facts = self._request.config, self._request.facts
        cwd = self._options.get("cwd") or config.project
        if not os.path.isdir(cwd):
            raise NotStarted(f"the working directory {cwd} is gone", hint="restore it, or run the task elsewhere")
        _executable(self._command, self._options.get("env") or {})
        self._bwrap = find_bwrap(os.environ.get("PATH", ""), self._request.workspace_root)
        temp = temporary.make(facts.temp_root)
        staging.sweep(self._request.workspace_root)
        held: making.Held | None = None
        try:
            planned = linux.plan(self._request, HostFiles(), temp=temp)
            if planned.granted:
                _served(observer)
                self._area = staging.make(self._request.workspace_root)
            made, held = making.PASSING.make(planned.operations)
            if self._area is not None:
                self._area.note(held.used)
            variables = environment.task_environment(
                os.environ,
                define=self._options.get("env") or {},
                pass_through=tuple(self._options.get("pass_through", ())),
                project=config.project,
                workspace=self._request.workspace_root,
                temp=temp,
                grants_git=environment.names_git((*config.allow_read, *config.allow_write)),
            )
            boundary = _boundary(self._request, planned, temp=temp, mask=masker(variables))
            judge = Judge(boundary, ignore=config.ignore)
            spec = Spec(
                operations=planned.operations,
                boundary=(boundary.project, *boundary.withheld),
                executed=planned.executed,
                granted=planned.granted,
                command=("/bin/sh", "-c", "--", self._command),
                environment=variables,
                cwd=cwd,
                observer=observer,
                timeout=self._options.get("timeout"),
                grace=GRACE,
            )
            report = self._attempts(spec, judge)
            if report.started is not None:
                self._set_aside(planned)
            for path in report.finished.leftovers if report.finished is not None else ():
                self._tell(judge.left(path))
            if report.started is None:
                making.take_back(made)
            return outcome.settle(report, judge, tuple(self._violations), cwd=cwd)
        finally:
            temporary.remove(temp)
            if self._area is not None:
                self._area.remove()
            if held is not None:
                held.release()

    def _set_aside(self, planned: Plan) -> None:
        root, temp_root = self._request.workspace_root, self._request.facts.temp_root
        for violation in set_aside(planned.executed, workspace=root, temp_root=temp_root, files=HostFiles()):
            self._tell(violation)

    def _tell(self, violation: Violation | None) -> None:
        if violation is None:
            return
        self._violations.append(violation)
        hear = self._options.get("on_violation")
        if hear is not None:
            hear(violation)

    def _attempts(self, spec: Spec, judge: Judge) -> Report:
        report = self._once(spec, judge)
        if report.failed is not None and report.failed.transient and not self._stopped:
            # a mount or a file vanished while it was being bound; nothing of the command ran
            if self._area is not None:
                # an attempt begins with an empty one
                self._area.remove()
                self._area = staging.make(self._request.workspace_root)
            report = self._once(spec, judge)
        return report

    def _once(self, spec: Spec, judge: Judge) -> Report:
        options = self._options
        keep = options.get("capture", True)

        def take(access: Access) -> None:
            self._tell(judge.take(access))

        attempt = Attempt(
            dataclasses.replace(spec, staging=self._area.path if self._area is not None else ""),
            stdin=options.get("stdin"),
            stdout=Stream(options.get("on_stdout"), keep),
            stderr=Stream(options.get("on_stderr"), keep),
            on_access=take,
        )
        with self._lock:
            self._attempt = attempt
            if self._stopped:
                attempt.signal(signal.SIGKILL)
        self._session._enter(attempt)  # noqa: SLF001  one room, two classes
        try:
            return attempt.run(lambda fds: self._session._hand_over(self._bwrap, fds))  # noqa: SLF001
        finally:
            self._session._leave(attempt)  # noqa: SLF001


def _served(observer: str) -> None:
    """Refuse names where nothing can serve them."""
    hint = "grant directories instead, with a trailing slash"
    if observer in ("notify", "none"):
        raise NotStarted(
            f"write grants of names are served through the mask, which the observer {observer} does without",
            hint=f"use the observer auto, or {hint}",
        )
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        raise NotStarted(
            f"write grants of names need /dev/fuse, which cannot be opened: {error.strerror}",
            hint=f"make /dev/fuse available to this user, or {hint}",
        ) from error


def _executable(command: str, variables: Mapping[str, str]) -> None:
    """Refuse what no process can be given."""
    if "\0" in command:
        raise NotStarted(f"the command {command!r} holds a NUL character", hint="remove the character")
    for name, value in variables.items():
        if not name or "=" in name or "\0" in name:
            raise NotStarted(f"{name!r} cannot be the name of a variable", hint="rename it")
        if "\0" in value:
            raise NotStarted(f"the variable {name} holds a NUL character", hint="remove the character")


def _boundary(request: Request, planned: Plan, *, temp: str, mask: Callable[[str], str]) -> Boundary:
    files = HostFiles()
    return Boundary(
        plan=planned,
        project=request.config.project,
        workspace=request.workspace_root,
        home=request.facts.home,
        temp=temp,
        withheld=request.reported,
        executed=planned.executed.protects,
        packages=request.withheld,
        asked=frozenset(request.asked),
        nested=tuple(w.path for w in request.walls if paths.under(w.path, request.config.project)),
        walls=request.walls,
        stores=request.stores,
        cached=request.keyed is not None,
        canonical=lambda path: paths.canonical(path, files),
        mask=mask,
    )
