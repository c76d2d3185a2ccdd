"""What a task's block becomes: each grant in file order, what was implied, and the answer for one path.

The same operations the run carries out are what is told here; nothing is worked out twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandbox import globs, paths
from sandbox.contract import Reach
from sandbox.executed import DIRECTORIES, FILES
from sandbox.facts import Kind
from sandbox.planning.ops import Way
from vxconf.diagnostics import dotted
from vxconf.judging import FIELDS
from vxconf.model import Entry
from vxconf.places import locate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.dependencies import Withheld
    from sandbox.facts import Files
    from sandbox.planning.model import Plan
    from sandbox.planning.ops import Operation
    from vxconf.document import Document
    from vxconf.judging import Judged
    from vxconf.model import SandboxModel

MACOS_NOT_BUILT = "macOS: not built yet in this version"
_NOT_ENFORCED = "not enforced yet, so a run is refused rather than made without it"
_NO_EFFECT = "does nothing on Linux"

#: Fields that only macOS has.
_MACOS_ONLY = frozenset({"systemInfo", "machLookup", "weakerNetworkIsolation"})

#: What a flag that is enforced does.
_FLAGS = {
    "gitConfig": "the settings of a repository may be written where a grant reaches them; its hooks never",
    "hermetic": "nothing outside the workspace exists but what a process needs to start and what is granted",
}

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What is needed to explain a block.

    Attributes:
        linux, macos: whether the platform was asked about.
    """

    block: SandboxModel
    judged: Judged
    document: Document
    files: Files
    linux: bool = True
    macos: bool = True


def grants(what: Explained) -> list[JSON]:
    """Every entry of the block in file order, each with what becomes of it."""
    found = [(locate(what.document, entry.path), field, entry) for field, entry in _entries(what.block)]
    found.sort(key=lambda item: (item[0].line, item[0].column))
    return [
        {
            "path": dotted(entry.path),
            "value": value,
            "file": what.document.file,
            "line": place.line,
            "linux": [_operation(one) for one in _operations(what, entry)],
            "macos": [],
            "notes": list(_notes(what, field, entry)),
        }
        for place, field, entry, value in (
            (place, field, entry, _value(what.block, field, entry)) for place, field, entry in found
        )
    ]


def implied(what: Explained) -> list[JSON]:
    """What no entry says and holds all the same, each with its reason."""
    judged, items = what.judged, []
    told: set[str] = set()
    plan = judged.plan if what.linux else None
    if plan is not None:
        for operation in plan.operations:
            if not operation.origin.field:
                told.add(operation.path)
                items.append(_implied(operation.path, operation.origin.reason, what, operation))
    if judged.request is not None:
        request = judged.request
        items += [_implied(read.path, read.reason, what) for read in request.reads if read.path not in told]
        for wall in (*request.walls, *request.around, *request.stores):
            if wall.path not in told:
                note = "does not exist now" if what.files.kind(wall.path) is None else ""
                items.append(_implied(wall.path, f"{wall.reason} is a wall", what, note=note))
        items += [_withheld(package, what) for package in request.withheld]
        known = {package.dir for package in request.withheld} | {wall.path for wall in request.walls}
        beside = [path for path in request.reported if path not in known]
        items += [_implied(path, "a refused read in it is reported, as in the project", what) for path in beside]
        if request.config.allow_write:
            items.append(_executed(what))
        temp = paths.join(request.facts.temp_root, "…")
        item = _implied(temp, "the task's own temporary directory, its TMPDIR", what, note="made for each run, 0700")
        if what.linux:
            item["linux"] = [{"op": "Bind", "path": temp, "describe": f"bind directory {temp} writable"}]
        items.append(item)
    return items


def _withheld(package: Withheld, what: Explained) -> JSON:
    reason = f"the package {package.name} is withheld: the task's cache key answers for no task of it"
    remedy = f"add a task of {package.target} that has a cache to dependsOn, or " if package.project else ""
    remedy += "grant it with allow.read"
    if not package.target.startswith("/"):
        remedy += f" and name {globs.escape(package.target)}/** in cache.inputs.workspaceFiles"
    item = _implied(package.dir, reason, what, note=f"linked by {package.link}")
    item["notes"].append(remedy)
    return item


def _executed(what: Explained) -> JSON:
    names = (*sorted(FILES), *("/".join(parts) + "/" for parts in DIRECTORIES), ".git/hooks/")
    config = what.judged.request.config if what.judged.request is not None else None
    if config is None or not config.git_config:
        names = (*names, ".git/config")
    return _implied(", ".join(names), "other programs execute what these say: no task makes or changes one", what)


def why_path(what: Explained, path: str) -> JSON:
    """Whether the task may read and write one absolute path, and why.

    Args:
        what: the block.
        path: as the task would spell it, absolute.
    """
    plan = what.judged.plan
    if plan is None:
        nothing = {"allowed": False, "by": _because("the block is refused"), "nearest": None}
        return {"read": nothing, "write": dict(nothing)}
    reach = plan.access(path, what.files)
    return {
        "read": _answer(what, plan, path, allowed=reach is not Reach.HIDDEN, write=False),
        "write": _answer(what, plan, path, allowed=reach in {Reach.WRITE, Reach.NAME}, write=True),
    }


def refused_answer(reason: str) -> JSON:
    """The answer where nothing is run at all."""
    return {"allowed": False, "by": _because(reason), "nearest": None}


def why_host() -> JSON:
    """The answer for every host, for now."""
    return {
        "allowed": False,
        "by": _because("the network is off: network grants are not enforced yet"),
        "nearest": None,
    }


def unsandboxed_answer() -> JSON:
    """The answer for a task without a block."""
    return {"allowed": True, "by": _because("the task has no sandbox block"), "nearest": None}


def _answer(what: Explained, plan: Plan, path: str, *, allowed: bool, write: bool) -> JSON:
    real = paths.canonical(path, what.files)
    if allowed:
        by = _by(what, plan.decided_by(real))
    elif plan.reach(real) is Reach.HIDDEN:
        by = _because(_hidden_by(what, plan, real))
    elif write and plan.executed.protects(real):
        by = _because("other programs execute what it says: no task makes or changes it")
    else:
        by = _because("no write grant covers it" if write else "a link on the way to it is not granted")
    return {"allowed": allowed, "by": by, "nearest": None if allowed else _nearest(what, real, write=write)}


def _hidden_by(what: Explained, plan: Plan, real: str) -> str:
    """The rule that hides a path: the wall it is in, else the cover it is under."""
    request = what.judged.request
    walls = [w for w in (*request.walls, *request.stores) if paths.at_or_under(real, w.path)] if request else []
    withheld = [p for p in request.withheld if paths.at_or_under(real, p.dir)] if request else []
    if withheld:
        package = withheld[0]
        return f"the package {package.name} is withheld: the task's cache key answers for no task of {package.target}"
    if walls:
        wall = max(walls, key=lambda one: len(one.path))
        return f"{wall.reason} {wall.path} is a wall"
    operation = plan.decided_by(real)
    while isinstance(operation, Way) and operation.path != "/":
        operation = plan.decided_by(paths.parent(operation.path))
    return operation.origin.reason or "nothing in the workspace exists unless it is granted"


def _nearest(what: Explained, real: str, *, write: bool) -> JSON | None:
    """The grant that comes closest to a path: the one that shares most of the way to it."""
    best: tuple[int, JSON] | None = None
    config = what.judged.resolution.config
    lists = [("allowWrite", config.allow_write)] if write else []
    lists += [] if write else [("allowRead", config.allow_read), ("allowWrite", config.allow_write)]
    for name, entries in lists:
        for index, grant in enumerate(entries):
            path = globs.literal_base(grant) if globs.has_wildcard(grant) else globs.unescape(grant).rstrip("/") or "/"
            shared = _shared(path, real)
            # what has no more in common than the way to the project is no near miss
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
    origins = what.judged.resolution.origin(_first_name(what, operation.origin.field))
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


def _first_name(what: Explained, field: str) -> str:
    return what.judged.origins.get(field, field)


def _entries(block: SandboxModel) -> Iterator[tuple[str, Entry]]:
    """Every entry and flag that is set, with the field it belongs to."""
    lists = (
        ("allowRead", block.read),
        ("allowWrite", block.write),
        ("network", block.network),
        ("denyNetwork", block.deny_network),
        ("systemInfo", block.system_info),
        ("unixSockets", block.unix_sockets),
        ("machLookup", block.mach_lookup),
    )
    for field, entries in lists:
        if entries is True:
            yield field, _flag(block, field)
        else:
            yield from ((field, entry) for entry in entries or ())
    flags = (
        ("localBinding", block.local_binding),
        ("pty", block.pty),
        ("gitConfig", block.git_config),
        ("weakerWhenNested", block.weaker_when_nested),
        ("weakerNetworkIsolation", block.weaker_network_isolation),
        ("hermetic", block.hermetic),
    )
    yield from ((field, _flag(block, field)) for field, value in flags if value)


def _flag(block: SandboxModel, field: str) -> Entry:
    return Entry("", (*block.path, *FIELDS[field]))


def _value(block: SandboxModel, field: str, entry: Entry) -> object:
    if entry.text:
        return entry.text
    return list(block.local_binding) if field == "localBinding" and isinstance(block.local_binding, tuple) else True


def _operations(what: Explained, entry: Entry) -> Iterator[Operation]:
    if what.judged.plan is None or not what.linux:
        return
    for operation in what.judged.plan.operations:
        field = operation.origin.field
        if field and entry in what.judged.resolution.origin(_first_name(what, field)):
            yield operation


def _operation(operation: Operation) -> JSON:
    return {"op": type(operation).__name__, "path": operation.path, "describe": operation.describe()}


def _implied(path: str, reason: str, what: Explained, operation: Operation | None = None, note: str = "") -> JSON:
    return {
        "reason": reason,
        "value": path,
        "file": None,
        "line": None,
        "linux": [_operation(operation)] if operation is not None and what.linux else [],
        "macos": [],
        "notes": [note] if note else [],
    }


def _notes(what: Explained, field: str, entry: Entry) -> Iterator[str]:
    if what.macos:
        yield MACOS_NOT_BUILT
    if field in _MACOS_ONLY:
        if what.linux:
            yield _NO_EFFECT
    elif field in _FLAGS:
        yield _FLAGS[field]
    elif field not in {"allowRead", "allowWrite"}:
        yield _NOT_ENFORCED
    else:
        yield from _path_notes(what, field, entry)


def _path_notes(what: Explained, field: str, entry: Entry) -> Iterator[str]:
    resolution, config = what.judged.resolution, what.judged.resolution.config
    listed = config.allow_read if field == "allowRead" else config.allow_write
    if any(refusal.path == dotted(entry.path) for refusal in what.judged.refusals):
        yield "refused"
        return
    mine = [(f"{field}[{i}]", grant) for i, grant in enumerate(listed) if entry in resolution.origin(f"{field}[{i}]")]
    inert = set(what.judged.inert)
    for name, grant in mine:
        first = resolution.origin(name)[0]
        if first is not entry:
            yield f"means the same as {dotted(first.path)}"
            continue
        yield f"stands for {grant}"
        if what.linux:
            yield from _linux_notes(what, field, grant, inert=name in inert)


def _linux_notes(what: Explained, field: str, grant: str, *, inert: bool) -> Iterator[str]:
    if globs.has_wildcard(grant):
        if field == "allowWrite":
            yield "every name that matches, whenever it is made; what is made beside one goes with the run, and counts"
            return
        yield "matches nothing now" if inert else "what matches at the start; a file made later is not covered"
        return
    path = globs.unescape(grant).rstrip("/") or "/"
    if field == "allowWrite":
        yield from _written(what, grant, path)
    elif inert:
        yield "names nothing now; what is made later is not covered"
    elif what.files.kind(path) is Kind.FILE:
        yield "the file as it is at the start; nothing beside it exists for the task"
    request = what.judged.request
    inside = [w.path for w in (*request.walls, *request.stores) if paths.under(w.path, path)] if request else []
    if inside:
        yield f"not {_listed(inside)}: walls stay closed"


def _written(what: Explained, grant: str, path: str) -> Iterator[str]:
    if grant.endswith("/"):
        yield "everything in it may be written; the directory itself is a mount point, not to be removed or renamed"
    elif not paths.under(path, what.judged.resolution.config.project):
        yield "the file itself: it may be written, and neither removed nor replaced by a rename"
    else:
        yield "the name, whatever it becomes; what is made beside it goes with the run, and counts"
        kind, name = what.files.kind(path), paths.name(path)
        if kind is Kind.DIRECTORY or (kind is None and "." not in name):
            yield f"served call by call: where much is written, {name}/ grants the directory at native speed"


def _listed(items: Iterable[str]) -> str:
    return ", ".join(sorted(dict.fromkeys(items)))
