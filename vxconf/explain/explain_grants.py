"""The explanation of a block: each grant in file order with its operations, and the items that are implied.

The operations are those of the plan that a run carries out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.request.protected_names import DIRECTORIES, FILES, POLICY
from vxconf.diagnostics.diagnostic import dotted
from vxconf.document.spans import locate
from vxconf.explain import explain_macos, explain_network
from vxconf.resolve.judge_block import FIELDS
from vxconf.resolve.task_model import Entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.base.host_facts import Files
    from sandbox.planning.operations import Operation
    from sandbox.request.linked_packages import Withheld
    from sandbox.request.request import Request
    from vxconf.document.document import Document
    from vxconf.explain.explain_macos import ExplainedMac
    from vxconf.resolve.judge_block import JudgedBlock
    from vxconf.resolve.task_model import SandboxModel

_NO_EFFECT = "does nothing on Linux"

#: The fields that only macOS has.
_MACOS_ONLY = frozenset({"systemInfo", "machLookup", "weakerNetworkIsolation"})

_BESIDE = "names made beside it are deleted after the run and reported"

#: The effect of each flag.
_FLAGS = {
    "weakerWhenNested": "where parts of /proc are hidden, the task runs with the /proc there is, read-only, and sees "
    "names, command lines, mounts and network tables of processes outside; elsewhere it gets a full sandbox",
    "gitConfig": "the settings of a repository may be written where a grant reaches them; its hooks never",
    "pty": "the command gets a terminal of its own",
    "hermetic": "outside the workspace only granted paths exist, and the files that a process needs to start",
}

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A block to explain.

    Attributes:
        block: the block as the file says it.
        judged: the block, judged for Linux, or for macOS where that alone is asked about.
        document: the file that holds the block.
        files: the file system.
        linux: whether Linux was asked about.
        mac: the block judged for macOS; `None` where macOS was not asked about.
        listed: the hosts that the tasks of the workspace list; used for `network = true` alone.
    """

    block: SandboxModel
    judged: JudgedBlock
    document: Document
    files: Files
    linux: bool = True
    mac: ExplainedMac | None = None
    listed: tuple[str, ...] = ()

    @property
    def network(self) -> explain_network.ExplainedNetwork:
        """The part of the block about hosts, ports and sockets."""
        bare, resolution = self.judged.bare, self.judged.resolution
        config = bare.config if bare is not None else resolution.config
        return explain_network.ExplainedNetwork(config=config, resolution=resolution, listed=self.listed)

    @property
    def temp(self) -> str:
        """The path that stands for the task's temporary directory, which each run makes anew."""
        return paths.join(self.judged.where.facts.temp_root, "…")

    def first_name(self, field: str) -> str:
        """The name in the whole config of a field of the config without the refused entries."""
        return self.judged.origins.get(field, field)


def grants(what: Explained) -> list[JSON]:
    """The JSON items of the block's entries, in file order."""
    found = [(locate(what.document, entry.path), field, entry) for field, entry in _entries(what.block)]
    found.sort(key=lambda item: (item[0].line, item[0].column))
    return [
        {
            "path": dotted(entry.path),
            "value": value,
            "file": what.document.file,
            "line": place.line,
            "linux": [*map(_operation, _operations(what, entry)), *_connected(what, field, entry)],
            "macos": explain_macos.rules(what.mac, field, entry) if what.mac is not None else [],
            "notes": list(_notes(what, field, entry)),
        }
        for place, field, entry, value in (
            (place, field, entry, _value(what.block, field, entry)) for place, field, entry in found
        )
    ]


def implied(what: Explained) -> list[JSON]:
    """The JSON items that hold without an entry, each with its reason."""
    items = list(_implied_paths(what))
    if what.linux:
        for value, reason, note, operations in explain_network.implied(what.network, what.temp):
            items.append({**_implied(value, reason, what, note=note), "linux": operations})
    if what.mac is not None:
        known = {(item["value"], item["reason"]): item for item in reversed(items)}
        for place, reason, rules in explain_macos.implied(what.mac):
            item = known.get((place, reason))
            if item is None:
                item = _implied(place, reason, what)
                items.append(item)
            item["macos"] = rules
    return items


def _implied_paths(what: Explained) -> Iterator[JSON]:
    """The implied items about paths: operations without an entry, walls, packages, the temporary directory."""
    planned: set[str] = set()
    plan = what.judged.plan if what.linux else None
    for operation in plan.operations if plan is not None else ():
        if not operation.origin.field:
            planned.add(operation.path)
            yield _implied(operation.path, operation.origin.reason, what, operation)
    request = what.judged.request
    if request is None:
        return
    yield from (_implied(read.path, read.reason, what) for read in request.reads if read.path not in planned)
    yield from _walls(what, request, planned)
    yield from (_withheld(package, what) for package in request.withheld)
    yield from _reported(what, request)
    if request.config.allow_write:
        yield _executed(what)
    item = _implied(what.temp, "the task's own temporary directory, its TMPDIR", what, note="made for each run, 0700")
    if what.linux:
        item["linux"] = [{"op": "Bind", "path": what.temp, "describe": f"bind directory {what.temp} writable"}]
    yield item


def _reported(what: Explained, request: Request) -> Iterator[JSON]:
    known = {package.dir for package in request.withheld} | {wall.path for wall in request.walls}
    for path in request.reported:
        if path not in known:
            yield _implied(path, "a refused read in it is reported, as in the project", what)


def _walls(what: Explained, request: Request, planned: set[str]) -> Iterator[JSON]:
    for wall in (*request.walls, *request.around, *request.stores):
        if wall.path not in planned:
            note = "does not exist now" if what.files.kind(wall.path) is None else ""
            yield _implied(wall.path, f"{wall.reason} is a wall", what, note=note)


def _withheld(package: Withheld, what: Explained) -> JSON:
    why = (
        "nothing in it says that it is that package"
        if package.unnamed
        else "the task's cache key answers for no task of it"
    )
    reason = f"the package {package.name} is withheld: {why}"
    remedy = f"add a task of {package.target} that has a cache to dependsOn, or " if package.project else ""
    remedy += "grant it with allow.read"
    if not package.target.startswith("/"):
        remedy += f" and name {globs.escape(package.target)}/** in cache.inputs.workspaceFiles"
    item = _implied(package.dir, reason, what, note=f"linked by {package.link}")
    item["notes"].append(remedy)
    return item


def _executed(what: Explained) -> JSON:
    names = (
        *map("/".join, POLICY),
        *sorted(FILES),
        *("/".join(parts) + "/" for parts in DIRECTORIES),
        ".claude/settings*.json",
        ".git/hooks/",
    )
    config = what.judged.request.config if what.judged.request is not None else None
    if config is None or not config.git_config:
        names = (*names, ".git/config")
    return _implied(
        ", ".join(names), "other programs execute the content of these files: no task may make or change one", what
    )


def _entries(block: SandboxModel) -> Iterator[tuple[str, Entry]]:
    """The entries and the flags that are set, each with its field of the resolved config."""
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
        if field and entry in what.judged.resolution.origin(what.first_name(field)):
            yield operation


def _connected(what: Explained, field: str, entry: Entry) -> Iterator[JSON]:
    if what.linux and what.judged.bare is not None and field in explain_network.FIELDS:
        yield from explain_network.operations(what.network, field, entry)


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
    if field in _MACOS_ONLY:
        if what.linux:
            yield _NO_EFFECT
    elif field in _FLAGS:
        if what.linux or field != "weakerWhenNested":
            yield _FLAGS[field]
    elif field in explain_network.FIELDS:
        if what.linux and what.judged.bare is not None:
            yield from explain_network.notes(what.network, field, entry)
    else:
        yield from _path_notes(what, field, entry)
    if what.mac is not None:
        yield from explain_macos.notes(what.mac, field, entry)


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
            yield from _linux_notes(what, name, grant, inert=name in inert)


def _linux_notes(what: Explained, name: str, grant: str, *, inert: bool) -> Iterator[str]:
    field = name.partition("[")[0]
    if globs.has_wildcard(grant):
        if field == "allowWrite":
            yield f"every name that matches, also one made later; {_BESIDE}"
            return
        yield "matches nothing now" if inert else "the files that match at the start; a file made later is not covered"
        return
    path = globs.path_of(grant)
    if field == "allowWrite":
        yield from _written(what, grant, path)
    elif inert:
        yield "names nothing now; a file made later is not covered"
    elif what.files.kind(path) is Kind.FILE:
        yield "the file as it is at the start; no other file of its directory exists for the task"
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
        yield f"the name, as a file or a directory; {_BESIDE}"
        kind, name = what.files.kind(path), paths.name(path)
        if kind is Kind.DIRECTORY or (kind is None and "." not in name):
            yield f"served call by call: where much is written, {name}/ grants the directory at native speed"


def _listed(items: Iterable[str]) -> str:
    return ", ".join(sorted(dict.fromkeys(items)))
