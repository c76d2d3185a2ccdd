"""The answers of `--why`: whether a path, a host or a socket is reached, and which line or rule decides.

They are those of the plan for Linux, or for macOS where that alone is asked about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract.config import Reach
from sandbox.planning.operations import Way
from vxconf.diagnostics.diagnostic import dotted
from vxconf.document.spans import locate
from vxconf.explain import explain_network

if TYPE_CHECKING:
    from sandbox.planning.macos.macos_path_reach import MacPlan
    from sandbox.planning.macos.profile_rules import Rule
    from sandbox.planning.operations import Operation
    from sandbox.planning.path_reach import Plan
    from sandbox.request.protected_names import ProtectedNames
    from vxconf.explain.explain_grants import Explained
    from vxconf.resolve.task_model import Entry

JSON = dict[str, Any]

#: The operations of seatbelt's that reading and writing a file's content are.
_READ, _WRITE = "file-read-data", "file-write-data"


def of_path(what: Explained, path: str) -> JSON:
    """The answers whether the task may read and write a path, and connect to it where it is a socket.

    Args:
        what: the block to explain.
        path: the absolute path as the task would spell it.
    """
    real = paths.canonical(path, what.files)
    answers: JSON = {}
    if _is_socket(what, real):
        answers["connect"] = _told(what, explain_network.socket(what.network, real, temp=what.temp))
    if what.mac is not None and not what.linux:
        return answers | _of_path_on_macos(what, what.mac.plan, path)
    plan = what.judged.plan
    if plan is None:
        return {"read": refused("the block is refused"), "write": refused("the block is refused")}
    reach = plan.access(path, what.files)
    return answers | {
        "read": _answer(what, plan, path, allowed=reach is not Reach.HIDDEN, write=False),
        "write": _answer(what, plan, path, allowed=reach in {Reach.WRITE, Reach.NAME}, write=True),
    }


def refused(reason: str) -> JSON:
    """The answer where the task is refused for a reason."""
    return {"allowed": False, "by": _because(reason), "nearest": None}


def of_host(what: Explained, target: str) -> JSON:
    """The answer whether the task reaches `host` or `host:port`."""
    if what.judged.bare is None:
        return refused("the block is refused")
    return _told(what, explain_network.host(what.network, target))


def _is_socket(what: Explained, real: str) -> bool:
    """Whether a path is a socket, or is named like one."""
    granted = what.network.config.unix_sockets
    named = isinstance(granted, tuple) and real in granted
    return named or what.files.kind(real) is Kind.OTHER or real.endswith((".sock", ".socket"))


def _told(what: Explained, answer: explain_network.NetworkAnswer) -> JSON:
    by = _because(answer.by) if isinstance(answer.by, str) else _line(what, answer.by)
    nearest = None if answer.nearest is None else _line(what, answer.nearest)
    return {"allowed": answer.allowed, "by": by, "nearest": nearest}


def unsandboxed() -> JSON:
    """The answer for a task without a block."""
    return {"allowed": True, "by": _because("the task has no sandbox block"), "nearest": None}


def _of_path_on_macos(what: Explained, plan: MacPlan | None, path: str) -> JSON:
    """The answers of the rules of the profile; the last rule that is about a path decides."""
    if plan is None:
        return {"read": refused("the block is refused"), "write": refused("the block is refused")}
    reach, real = plan.access(path, what.files), paths.canonical(path, what.files)
    directory = what.files.kind(real) is Kind.DIRECTORY
    read = plan.decided_by(real, _READ, directory=directory)
    write = plan.decided_by(real, _WRITE, directory=directory)
    reads = reach is not Reach.HIDDEN and plan.allows(_READ, real, directory=directory)
    protected = plan.executed.protects(real) and plan.allows(_WRITE, real, directory=directory)
    return {
        "read": _answer_on_macos(what, read, real, allowed=reads, write=False),
        "write": {
            "allowed": False,
            "by": _because(_protection(plan.executed, real)),
            "nearest": _nearest(what, real, write=True),
        }
        if protected
        else _answer_on_macos(what, write, real, allowed=reach is Reach.WRITE, write=True),
    }


def _answer_on_macos(what: Explained, rule: Rule | None, real: str, *, allowed: bool, write: bool) -> JSON:
    if rule is None:
        by = _because("no write grant covers it" if write else "nothing in the workspace is read unless it is granted")
    elif (rule.action == "allow") is not allowed:
        by = _because("a link on the way to it is not granted")
    else:
        origins = what.judged.resolution.origin(what.first_name(rule.origin.field)) if rule.origin.field else ()
        by = _line(what, origins[0]) if origins else _because(rule.origin.reason or rule.describe())
    return {"allowed": allowed, "by": by, "nearest": None if allowed else _nearest(what, real, write=write)}


def _protection(executed: ProtectedNames, real: str) -> str:
    """The reason why a protected name is not written."""
    if executed.says_grants(real):
        return "this file says what tasks are granted: a task changes it only where its block names the very file"
    return "other programs execute the content of this file: no task may make or change it"


def _answer(what: Explained, plan: Plan, path: str, *, allowed: bool, write: bool) -> JSON:
    real = paths.canonical(path, what.files)
    if allowed:
        by = _by(what, plan.decided_by(real))
    elif plan.reach(real) is Reach.HIDDEN:
        by = _because(_hidden_by(what, plan, real))
    elif write and plan.executed.protects(real):
        by = _because(_protection(plan.executed, real))
    else:
        by = _because("no write grant covers it" if write else "a link on the way to it is not granted")
    return {"allowed": allowed, "by": by, "nearest": None if allowed else _nearest(what, real, write=write)}


def _hidden_by(what: Explained, plan: Plan, real: str) -> str:
    """The reason why a path is hidden: the withheld package, the wall, or the operation it is under."""
    request = what.judged.request
    walls = [w for w in (*request.walls, *request.stores) if paths.at_or_under(real, w.path)] if request else []
    withheld = [p for p in request.withheld if paths.at_or_under(real, p.dir)] if request else []
    if withheld:
        package = withheld[0]
        if package.unnamed:
            return f"the package {package.name} is withheld: nothing in {package.target} says that it is that package"
        return f"the package {package.name} is withheld: the task's cache key answers for no task of {package.target}"
    if walls:
        wall = max(walls, key=lambda one: len(one.path))
        return f"{wall.reason} {wall.path} is a wall"
    operation = plan.decided_by(real)
    while isinstance(operation, Way) and operation.path != "/":
        operation = plan.decided_by(paths.parent(operation.path))
    return operation.origin.reason or "nothing in the workspace exists unless it is granted"


def _nearest(what: Explained, real: str, *, write: bool) -> JSON | None:
    """The grant that shares the longest beginning with a path, `None` when none shares more than the workspace root."""
    best: tuple[int, JSON] | None = None
    config = what.judged.resolution.config
    lists = [("allowWrite", config.allow_write)] if write else []
    lists += [] if write else [("allowRead", config.allow_read), ("allowWrite", config.allow_write)]
    for name, entries in lists:
        for index, grant in enumerate(entries):
            path = globs.head(grant)
            shared = _shared(path, real)
            # a grant that shares no more than the workspace root is no near miss
            if shared > len(paths.parts(config.workspace)) - 1 and (best is None or shared > best[0]):
                best = (shared, _line(what, what.judged.resolution.origin(f"{name}[{index}]")[0]))
    return best[1] if best is not None else None


def _shared(one: str, other: str) -> int:
    count = 0
    for left, right in zip(paths.parts(one), paths.parts(other), strict=False):
        if left != right:
            break
        count += 1
    return count


def _by(what: Explained, operation: Operation) -> JSON:
    origins = what.judged.resolution.origin(what.first_name(operation.origin.field))
    return _line(what, origins[0]) if origins else _because(operation.origin.reason)


def _line(what: Explained, entry: Entry) -> JSON:
    return {
        "path": dotted(entry.path),
        "value": entry.text,
        "file": what.document.file,
        "line": locate(what.document, entry.path).line,
    }


def _because(reason: str) -> JSON:
    return {"reason": reason, "file": None, "line": None}
