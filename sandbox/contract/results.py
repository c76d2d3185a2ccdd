"""The frozen values that come out of a run: accesses as observers saw them, violations, the fix and the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sandbox.contract.errors import RequestRefused

if TYPE_CHECKING:
    from sandbox.contract.errors import SandboxError
    from sandbox.contract.intents import Intent


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One call of the task as an observer saw it, not judged yet.

    Attributes:
        pid: the caller on the host, 0 when unknown.
        process: the caller's name, at most 15 bytes, empty when unknown.
        operation: the system call's name (`openat`, `mkdir`, ...).
        intent: what the call meant to do.
        asked: the path as the task spelled it (`host:port` for a connect).
        path: absolute, every link resolved as the task would have; empty when there is none.
        exists: whether the host has `path` now.
        errno: the kernel's answer where it is known (`ENOENT`), else empty.
        follows: whether the last component would have been followed, were it a link.
        creates: whether it is an open that makes what is not there, whatever the host has.
        refused: whether the sandbox itself refused the call, or would have, had it not only heard of it afterwards.
        reason: why it refused a connection, such as `not on the allow list`, else empty.
    """

    pid: int
    operation: str
    intent: Intent
    asked: str
    path: str
    exists: bool
    process: str = ""
    errno: str = ""
    follows: bool = True
    creates: bool = False
    refused: bool = False
    reason: str = ""


ViolationKind = Literal["read", "write", "network", "systemInfo", "other"]

#: The cure of a denial. `grant`: an entry of `allow`. `ignore`: an entry of `ignore`. `use-tmpdir`: the task's own
#: temporary directory. `run-upstream`: running the task that makes the file. `credential`: none, for the path holds
#: credentials. `tool-fault`: a change of the command, for no entry allows it.
DenialClass = Literal["grant", "ignore", "use-tmpdir", "run-upstream", "credential", "tool-fault"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A denial that counts, so that it fails the task.

    Attributes:
        operation: the system call's name, or `network-outbound`.
        target: the path as asked, or `host:port`.
        path: the canonical path, empty for a violation that has none.
        errno: such as `ENOENT`, `EROFS`; empty when unknown.
        line: one line for people, with all four facts.
        class_: what helps against it; `class` in JSON.
    """

    kind: ViolationKind
    operation: str
    target: str
    path: str
    errno: str
    line: str
    class_: DenialClass = "grant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A note beside a failure; it is never counted and never fails a task.

    Attributes:
        class_: what helps, where the note is about a denial.
    """

    line: str
    class_: DenialClass | None = None


Trace = Literal["complete", "partial", "none"]
Observer = Literal["mask", "notify", "strace", "log", "none"]
Strength = Literal["full", "weaker", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Protections:
    """The strength of each wall in one run.

    Attributes:
        landlock: the second wall around what a task writes, which the kernel of a Linux machine may lack.
    """

    filesystem: Strength = "off"
    network: Strength = "off"
    sockets: Strength = "off"
    observer: Strength = "off"
    processes: Strength = "off"
    landlock: Strength = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class FixPaths:
    """Entries by the list they belong to, spelled for the project's file."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FixInputs:
    """Entries of the cache key that make it answer for a new read."""

    files: tuple[str, ...] = ()
    workspace_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WithheldGrant:
    """A target that was denied, and that nobody is advised to grant without thought.

    Attributes:
        target: the path or `host:port`.
        reason: a clause whose subject is the target.
        remedy: what to do instead, as a clause.
    """

    target: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """The fewest entries that would have let the attempt pass.

    Attributes:
        withheld: targets that were denied and are never suggested, such as credential stores and policy files.
        by_hand: why each of them is not, and what to do about it.
    """

    allow: FixPaths = field(default_factory=FixPaths)
    ignore: FixPaths = field(default_factory=FixPaths)
    inputs: FixInputs = field(default_factory=FixInputs)
    withheld: tuple[str, ...] = ()
    by_hand: tuple[WithheldGrant, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRefusal:
    """One reason why a command was not run, or why its end was not seen.

    Attributes:
        message: one lowercase clause naming the thing and the place.
        hint: what to do about it, or an empty string.
        code: the stable diagnostic code (`VX3xx`) of a grant that cannot be given, else an empty string.
        field: the field of the resolved config that is at fault, such as `allowWrite[0]`, else an empty string.
    """

    message: str
    hint: str = ""
    code: str = ""
    field: str = ""

    def __str__(self) -> str:
        """The message, with the hint on a line of its own."""
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


def refusals_of(error: SandboxError) -> tuple[RunRefusal, ...]:
    """Every reason in an error of the engine, in the error's order: a config that cannot be granted has several."""
    if not isinstance(error, RequestRefused):
        return (RunRefusal(message=error.message, hint=error.hint),)
    return tuple(
        RunRefusal(message=one.message, hint=one.hint, code=one.code, field=one.field) for one in error.refusals
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of one run.

    Attributes:
        sandboxed: false for a task that declares no sandbox.
        exit_code: the verdict: the command's own status, 1 for a violation over a 0, 124 timed out,
            125 not started.
        command_exit_code: the command's own status, 128+n for a signal, `None` when it never ran.
        signal: the signal that ended the command, such as `SIGTERM`.
        started: whether the command was executed at all.
        duration_ms, cpu_ms: milliseconds; `cpu_ms` is the whole tree's, `None` when unknown.
        peak_rss_bytes: the largest resident set of any process of the tree, bytes.
        trace: how much of what the task did was seen; anything but `complete` has a `trace_reason`.
        refusals: why nothing was run, or why the command's end was not seen; empty for every other run.
    """

    sandboxed: bool
    exit_code: int
    command_exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    started: bool = False
    duration_ms: float = 0.0
    cpu_ms: float | None = None
    peak_rss_bytes: int | None = None
    observer: Observer = "none"
    trace: Trace = "none"
    trace_reason: str = ""
    protections: Protections = field(default_factory=Protections)
    violations: tuple[Violation, ...] = ()
    hints: tuple[Hint, ...] = ()
    fix: Fix | None = None
    refusals: tuple[RunRefusal, ...] = ()
    stdout: bytes = b""
    stderr: bytes = b""
