"""The fix of a finished run, worked out from its result alone. Pure."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from sandbox.base.host_facts import Kind
from sandbox.contract.config import Reach
from sandbox.contract.intents import Intent
from sandbox.contract.results import Access, Fix
from sandbox.judge.attempt_denials import Denied
from sandbox.judge.boundary import Boundary
from sandbox.judge.fix import fix as fewest
from sandbox.judge.remedies import never_granted

if TYPE_CHECKING:
    from sandbox.base.host_facts import Files
    from sandbox.contract.results import RunResult, Violation
    from sandbox.planning.operations import Operation
    from sandbox.request.request import Request

_PROBES = ("stat", "access", "readlink", "chdir", "xattr", "inotify", "name_to_handle")
_MEANT = (("mkdir", Intent.MKDIR), ("rename", Intent.RENAME), ("link", Intent.LINK), ("create", Intent.CREATE))


def fix(result: RunResult, request: Request | None = None, *, files: Files | None = None) -> Fix | None:
    """The smallest set of entries that would have let a run pass; `None` when no entry helps.

    Args:
        result: of `Session.run`, wherever it ran.
        request: has the entries spelled for this attempt's project, without outputs its task or the tasks it depends
            on declare. When absent, the fix is the one the run itself found.
        files: tells directories from files, which are then spelled with a slash.
    """
    if request is None or not result.violations:
        return result.fix
    boundary = Boundary.of_request(
        request, _Unplanned(), lambda path: files is not None and files.kind(path) is Kind.DIRECTORY
    )
    if files is not None:
        host = files
        boundary = dataclasses.replace(
            boundary, tree=lambda path: never_granted.below(path, host), names=lambda path: tuple(host.entries(path))
        )
    seen = [
        Denied(_access(violation, files), "write" if violation.kind == "write" else "read")
        for violation in result.violations
        if violation.kind in {"read", "write"} and violation.class_ != "tool-fault"
    ]
    found = fewest(seen, boundary, survived=result.command_exit_code == 0)
    network = result.fix.allow.network if result.fix is not None else ()
    if not network:
        return found
    found = found or Fix()
    return dataclasses.replace(found, allow=dataclasses.replace(found.allow, network=network))


def _access(violation: Violation, files: Files | None) -> Access:
    """The call that was denied, as far as a violation tells it."""
    exists = violation.class_ not in {"ignore", "run-upstream"}
    if violation.kind == "write":
        intent = next((meant for word, meant in _MEANT if word in violation.operation), Intent.WRITE)
        intent = Intent.CREATE if violation.class_ == "ignore" else intent
        if intent is Intent.MKDIR:
            exists = files is not None and files.kind(violation.path) is not None
    else:
        probe = any(word in violation.operation for word in _PROBES)
        intent = Intent.PROBE if probe else Intent.OPEN
    return Access(
        pid=0,
        operation=violation.operation,
        intent=intent,
        asked=violation.target,
        path=violation.path,
        exists=exists,
    )


class _Unplanned:
    """A plan that places nothing, for a run whose denials are known already."""

    operations: tuple[Operation, ...] = ()

    def could_be_read(self, _real: str) -> bool:
        """False: nothing is known of paths that are not there."""
        return False

    def reach(self, _real: str) -> Reach:
        return Reach.HIDDEN

    def beside(self, _real: str) -> bool:
        return False

    def stages(self, _real: str) -> bool:
        return False

    def leads(self, _real: str) -> bool:
        return False
