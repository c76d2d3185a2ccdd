"""The judge of an attempt on macOS: denials of the log in, one at a time, violations out. Pure.

Files and hosts are judged by the same rules as on Linux. The log tells of refusals alone, so a refusal that those rules
take for let through is told all the same: seatbelt has the last word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sandbox.contract.config import Reach
from sandbox.contract.intents import Intent
from sandbox.contract.results import Access, Violation
from sandbox.judge.boundary import never_counts, reported
from sandbox.judge.judge import Judge
from sandbox.judge.path_as_entry import shown
from sandbox.macos.seatbelt_operation_kinds import OUTBOUND, file_intent, violation_kind

if TYPE_CHECKING:
    from sandbox.contract.config import ResolvedSandboxConfig
    from sandbox.contract.results import ViolationKind
    from sandbox.judge.boundary import Boundary
    from sandbox.macos.denial_log import LoggedDenial

_ERRNO = "EPERM"


class LogJudge:
    """The judge of one attempt's denials.

    Args:
        boundary: the boundary of the attempt.
        config: the config whose `ignore` is obeyed.

    Attributes:
        files: the judge of files and hosts; it has the fix and the hints.
    """

    def __init__(self, boundary: Boundary, config: ResolvedSandboxConfig) -> None:
        self.files = Judge(boundary, ignore=config.ignore)
        self._boundary = boundary
        # A runtime with sockets of both kinds dials ::ffff:127.0.0.1 first, which no rule can name, then 127.0.0.1.
        self._retries = bool(config.local_binding) or config.network is not None
        self._told: set[tuple[str, str]] = set()

    def take(self, found: LoggedDenial) -> Violation | None:
        """The violation a denial is, `None` when it is none or was told before."""
        kind, intent = violation_kind(found.operation, found.target), file_intent(found.operation)
        if kind == "network":
            return self._network(found)
        if kind == "systemInfo":
            return None if self.files.silence.covers(kind, found.target) else self._plain(found, kind)
        if kind == "other" or intent is None:
            return self._plain(found, kind)
        return self._file(found, kind, intent)

    def connection(self, target: str, reason: str) -> Violation | None:
        """The violation of a `host:port` that the task's own proxy refused."""
        return self.files.take(_dial(target, "", reason))

    def _file(self, found: LoggedDenial, kind: Literal["read", "write"], intent: Intent) -> Violation | None:
        boundary = self._boundary
        path = boundary.canonical(found.target.rstrip("/") or "/")
        access = Access(
            pid=found.pid,
            process=found.process[:15],
            operation=found.operation,
            intent=intent,
            asked=found.target,
            path=path,
            # The kernel asks seatbelt only about files that are there.
            exists=intent is not Intent.CREATE,
            errno=_ERRNO,
        )
        violation = self.files.take(access)
        if violation is not None:
            return violation
        reach = boundary.plan.reach(path)
        unexplained = reach is Reach.WRITE or (reach is Reach.READ and kind == "read")
        if not unexplained or never_counts(path, boundary) or not reported(path, boundary):
            return None
        return None if self.files.silence.covers(kind, path) else self._plain(found, kind, path)

    def _network(self, found: LoggedDenial) -> Violation | None:
        if not found.target:
            return None if self._retries else self._plain(found, "network")
        if found.target.startswith("/"):
            return self.files.take(_dial(found.target, self._boundary.canonical(found.target), ""))
        if found.operation == OUTBOUND:
            return self.files.take(_dial(found.target, "", "no rule of the profile allows it"))
        return self._plain(found, "network")

    def _plain(self, found: LoggedDenial, kind: ViolationKind, path: str = "") -> Violation | None:
        if (found.operation, found.target) in self._told:
            return None
        self._told.add((found.operation, found.target))
        mask = self._boundary.mask
        who = f"{shown(found.process)}({found.pid})"
        line = f"{who} deny {found.operation}" + (f" {shown(found.target)}" if found.target else "")
        return Violation(
            kind=kind,
            operation=found.operation,
            target=mask(found.target),
            path=mask(path),
            errno=_ERRNO,
            line=mask(line),
        )


def _dial(target: str, path: str, reason: str) -> Access:
    return Access(
        pid=0,
        operation="connect" if path else OUTBOUND,
        intent=Intent.CONNECT,
        asked=target,
        path=path,
        exists=True,
        errno=_ERRNO if path else "",
        refused=True,
        reason=reason,
    )
