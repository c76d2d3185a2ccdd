"""One task's sandbox block against the machine: resolved, requested, planned; every refusal in one pass.

Nothing is run or created. An entry that is refused is taken out and the rest judged again, so that
one mistake does not hide the next.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from sandbox.base import globs
from sandbox.base.host_facts import Kind
from sandbox.contract.config import Ignore, ResolvedSandboxConfig
from sandbox.contract.errors import Refusal, RequestRefused
from sandbox.request import build
from sandbox.request.request import WorkspaceFacts
from sandbox.request.task_outputs import Declared, find
from vxconf.diagnostics.diagnostic import Diagnostic, dotted, in_order
from vxconf.resolve.resolve import Resolution, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.base.host_facts import Files, HostFacts
    from sandbox.contract.config import Platform
    from sandbox.planning.plan import Plan
    from sandbox.request.linked_packages import LinkedProjects
    from sandbox.request.request import Request
    from vxconf.diagnostics.diagnostic import FieldPath
    from vxconf.document.document import Document
    from vxconf.resolve.task_model import SandboxModel

#: Where each field of a resolved config stands in a block.
FIELDS: dict[str, FieldPath] = {
    "allowRead": ("allow", "read"),
    "allowWrite": ("allow", "write"),
    "network": ("allow", "network"),
    "denyNetwork": ("deny", "network"),
    "systemInfo": ("allow", "systemInfo"),
    "unixSockets": ("allow", "unixSockets"),
    "localBinding": ("allow", "localBinding"),
    "machLookup": ("allow", "machLookup"),
    "pty": ("allow", "pty"),
    "gitConfig": ("allow", "gitConfig"),
    "weakerWhenNested": ("weakerWhenNested",),
    "weakerNetworkIsolation": ("weakerNetworkIsolation",),
    "hermetic": ("hermetic",),
    "ignore": ("ignore",),
    "ignore.read": ("ignore", "read"),
    "ignore.write": ("ignore", "write"),
    "ignore.systemInfo": ("ignore", "systemInfo"),
    "ignore.network": ("ignore", "network"),
}

_ATTRIBUTES = {
    "allowRead": "allow_read",
    "allowWrite": "allow_write",
    "network": "network",
    "denyNetwork": "deny_network",
    "systemInfo": "system_info",
    "unixSockets": "unix_sockets",
    "localBinding": "local_binding",
    "machLookup": "mach_lookup",
    "pty": "pty",
    "gitConfig": "git_config",
    "weakerWhenNested": "weaker_when_nested",
    "weakerNetworkIsolation": "weaker_network_isolation",
    "hermetic": "hermetic",
}


class BlockSetting(NamedTuple):
    """What blocks of one project are judged against.

    Attributes:
        workspace, project: canonical directories.
        projects: those of the workspace.
        cache_dir: the run's cache directory, or `None`.
    """

    platform: Platform
    workspace: str
    project: str
    projects: LinkedProjects
    cache_dir: str | None
    files: Files
    facts: HostFacts


class Folded(NamedTuple):
    """What a task's cache key folds of other tasks.

    Attributes:
        keyed: the directories of the projects it answers for; `None` for a task without a cache.
        made: for each such task the directory of its project and its output patterns.
        declared: what the task itself and every task it depends on say they make.
    """

    keyed: frozenset[str] | None = None
    made: tuple[tuple[str, tuple[str, ...]], ...] = ()
    declared: Declared = Declared()


class JudgedBlock:
    """A block and what became of it.

    Attributes:
        resolution: the block resolved, with the entries each grant comes from.
        bare: the request of what was not refused, without what packages link to and other tasks made; `None` when
            nothing could be made of the rest either.
        origins: for each field of `bare.config`, the field of the resolved config it is.
        refusals: why the block cannot be granted, in file order.
        where: the setting the block was judged against.
        bare_plan: how `bare` is carried out on Linux, where judging a pattern needed to know.
    """

    def __init__(
        self,
        *,
        resolution: Resolution,
        bare: Request | None,
        origins: dict[str, str],
        refusals: tuple[Diagnostic, ...],
        where: BlockSetting,
        folded: Callable[[], Folded],
        bare_plan: Plan | None,
    ) -> None:
        """Takes the attributes, and `folded` to be asked for the whole request: other files have to be read for it."""
        self.resolution = resolution
        self.bare = bare
        self.origins = origins
        self.refusals = refusals
        self.where = where
        self.bare_plan = bare_plan
        self._folded = folded

    @property
    def files(self) -> Files:
        """The file system it was judged against."""
        return self.where.files

    @functools.cached_property
    def request(self) -> Request | None:
        """Of what was not refused, whole, by the files it was judged against."""
        return self.request_now(self.where.files)

    def request_now(self, files: Files) -> Request | None:
        """The whole request as the file system is now.

        Raises:
            Refusal: the outputs of other tasks are among too many names.
        """
        if self.bare is None:
            return None
        where, folded = self.where, self._folded()
        made = find(folded.made, files)
        known = WorkspaceFacts(
            root=where.workspace,
            keyed=None if folded.keyed is None else tuple(sorted(folded.keyed)),
            dependency_outputs=made.reads,
            dependency_reported=made.reported,
            cache_dir=where.cache_dir,
            links=self.resolution.links,
            declared=folded.declared,
        )
        return build.complete(self.bare, known, files=files, projects=where.projects)

    @functools.cached_property
    def plan(self) -> Plan | None:
        """How the request is carried out on Linux; `None` for a request of another platform, or for none."""
        if self.request is None or self.request.config.platform != "linux":
            return None
        return _planned(self.request, self.files)

    @property
    def inert(self) -> Iterator[str]:
        """The fields of the resolved config whose grants name nothing now."""
        request = self.bare
        if request is None:
            return
        if any(map(globs.has_wildcard, request.config.allow_read)):
            # on macOS a grant covers what is made later as well, and nothing was planned
            named = (field for field, _ in self.bare_plan.inert) if self.bare_plan is not None else ()
        else:
            # a whole plan says the same, and takes ten times as long as judging the block
            named = (
                f"allowRead[{index}]"
                for index, grant in enumerate(request.config.allow_read)
                if not _names_something(grant, self.files)
            )
        for field in named:
            yield self.origins.get(field, field)


def is_not_enforced_yet(diagnostic: Diagnostic) -> bool:
    """Whether it is about something valid that this version does not enforce yet."""
    return diagnostic.code.startswith("VX5")


def judge_block(
    block: SandboxModel, document: Document, where: BlockSetting, folded: Callable[[], Folded] = Folded
) -> JudgedBlock:
    """Resolves a block and finds every reason why it cannot be granted.

    Args:
        block: what the file says.
        document: the file the block stands in, for places.
        where: what it is judged against.
        folded: see `JudgedBlock`.
    """
    resolution = resolve(
        block,
        platform=where.platform,
        workspace=where.workspace,
        project=where.project,
        home=where.facts.home,
        files=where.files,
    )
    diagnostics = [refusal_diagnostic(r.refusal, r.path, document) for r in resolution.refusals]
    trial = _Trial(resolution.config)
    known = WorkspaceFacts(root=where.workspace, cache_dir=where.cache_dir, links=resolution.links)
    request: Request | None = None
    planned: Plan | None = None
    while True:
        try:
            request = build.judge(trial.config, known, files=where.files, facts=where.facts, projects=where.projects)
            if trial.config.platform == "macos":
                _profiled(request, where.files)
            elif any(map(globs.has_wildcard, (*trial.config.allow_read, *trial.config.allow_write))):
                # only a pattern can be refused for what it would have to look at
                planned = _planned(request, where.files)
        except RequestRefused as fault:
            diagnostics += [
                refusal_diagnostic(r, path_of_field(trial.field(r.field), resolution, block), document)
                for r in fault.refusals
            ]
            if not trial.without({r.field for r in fault.refusals}):
                break
        else:
            break
    return JudgedBlock(
        resolution=resolution,
        bare=request,
        origins=trial.origins(),
        refusals=in_order(diagnostics),
        where=where,
        folded=folded,
        bare_plan=planned,
    )


def _names_something(grant: str, files: Files) -> bool:
    kind = files.kind(globs.path_of(grant))
    return kind is Kind.DIRECTORY or (kind in {Kind.FILE, Kind.OTHER} and not grant.endswith("/"))


def refusal_diagnostic(refusal: Refusal, path: FieldPath, document: Document) -> Diagnostic:
    """A refusal of the engine, told at its place in the file."""
    from vxconf.diagnostics.codes.table import CODES
    from vxconf.document.spans import locate

    return Diagnostic(
        code=refusal.code,
        severity=CODES[refusal.code].severity,
        file=document.file,
        place=locate(document, path, key=path[-1:] == ("sandbox",)),
        path=dotted(path),
        message=refusal.message,
        help=refusal.hint,
    )


def path_of_field(field: str, resolution: Resolution, block: SandboxModel) -> FieldPath:
    """The place in the file of a field of the resolved config."""
    origins = resolution.origin(field)
    if origins:
        return origins[0].path
    return (*block.path, *FIELDS.get(field.partition("[")[0], ()))


class _Trial:
    """A config out of which refused entries are taken, while each field is still known by its first name."""

    def __init__(self, config: ResolvedSandboxConfig) -> None:
        self.config = config
        self._kept: dict[str, list[int]] = {}

    def field(self, field: str) -> str:
        """The name a field of the present config had in the first one."""
        name, mark, index = field.partition("[")
        if not mark or name not in self._kept:
            return field
        return f"{name}[{self._kept[name][int(index.rstrip(']'))]}]"

    def origins(self) -> dict[str, str]:
        """Present name -> first name, for every field that changed its name."""
        return {
            f"{name}[{now}]": f"{name}[{first}]"
            for name, kept in self._kept.items()
            for now, first in enumerate(kept)
            if now != first
        }

    def without(self, fields: set[str]) -> bool:
        """Take fields out; false when nothing was taken, because no field was at fault."""
        before = self.config
        for name in {field.partition("[")[0] for field in fields}:
            attribute = _ATTRIBUTES.get(name)
            if attribute is not None:
                self.config = dataclasses.replace(self.config, **{attribute: self._left_of(name, attribute, fields)})
            elif name.startswith("ignore"):
                self.config = dataclasses.replace(self.config, ignore=Ignore())
        return self.config != before

    def _left_of(self, name: str, attribute: str, fields: set[str]) -> Any:
        """The rest of one field; its default where all of it is taken out, or nothing else is left."""
        value: Any = getattr(self.config, attribute)
        default = next(field.default for field in dataclasses.fields(self.config) if field.name == attribute)
        if not isinstance(value, tuple) or name in fields:
            return default
        gone = {int(field[len(name) + 1 : -1]) for field in fields if field.startswith(f"{name}[")}
        kept = self._kept.get(name, list(range(len(value))))
        self._kept[name] = [first for now, first in enumerate(kept) if now not in gone]
        return tuple(entry for now, entry in enumerate(value) if now not in gone) or default


def _planned(request: Request, files: Files) -> Plan:
    from sandbox.planning.linux_plan import plan

    return plan(request, files)


def _profiled(request: Request, files: Files) -> None:
    """Have every reason found that a macOS profile cannot be written for."""
    from sandbox.planning.macos.plan_of_request import plan
    from sandbox.planning.macos.profile_text import text

    text(plan(request, files))
