"""The judgement of one sandbox block against the machine: resolved, requested, and planned where a pattern needs it.

Nothing is run or created. An entry that is refused is taken out and the rest is judged again, so that one mistake does
not hide the next.
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
from vxconf.resolve.resolve_block import Resolution, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.base.host_facts import Files, HostFacts
    from sandbox.contract.config import Platform
    from sandbox.planning.path_reach import Plan
    from sandbox.request.linked_packages import LinkedProjects
    from sandbox.request.request import Request
    from vxconf.diagnostics.diagnostic import FieldPath
    from vxconf.document.document import Document
    from vxconf.resolve.task_model import SandboxModel

#: The keys, below the block, of each field of a resolved config.
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
    """The setting that the blocks of one project are judged against.

    Attributes:
        platform: the platform to judge for.
        workspace: the canonical root directory of the workspace.
        project: the canonical directory of the project.
        projects: the projects of the workspace.
        cache_dir: the canonical cache directory of the run; `None` for the default one.
        files: the file system.
        facts: the facts of the machine.
    """

    platform: Platform
    workspace: str
    project: str
    projects: LinkedProjects
    cache_dir: str | None
    files: Files
    facts: HostFacts


class UpstreamTasks(NamedTuple):
    """The tasks before a task: what they make, and which projects the task's cache key answers for.

    Attributes:
        keyed: the canonical directories of the projects the key answers for; `None` for a task without a key.
        made: for each task the key includes, its project's canonical directory and its output patterns.
        declared: the output patterns of the task itself and of every task before it.
    """

    keyed: frozenset[str] | None = None
    made: tuple[tuple[str, tuple[str, ...]], ...] = ()
    declared: Declared = Declared()


class JudgedBlock:
    """A sandbox block with everything that was found about it.

    Attributes:
        resolution: the block resolved, with the entries each grant comes from.
        bare: the request of all that was not refused, without linked packages and outputs of other tasks; `None`
            when the rest cannot be requested either.
        origins: for each field of `bare.config`, the field of the resolved config it was.
        refusals: the reasons why the block cannot be granted, in file order.
        where: the setting the block was judged against.
        bare_plan: the plan of `bare` on Linux, where judging a pattern needed one.
    """

    def __init__(
        self,
        *,
        resolution: Resolution,
        bare: Request | None,
        origins: dict[str, str],
        refusals: tuple[Diagnostic, ...],
        where: BlockSetting,
        upstream: Callable[[], UpstreamTasks],
        bare_plan: Plan | None,
    ) -> None:
        """Takes the attributes, and `upstream`, which only the whole request needs: it reads other task files."""
        self.resolution = resolution
        self.bare = bare
        self.origins = origins
        self.refusals = refusals
        self.where = where
        self.bare_plan = bare_plan
        self._upstream = upstream

    @property
    def files(self) -> Files:
        """The file system the block was judged against."""
        return self.where.files

    @functools.cached_property
    def request(self) -> Request | None:
        """The whole request, by the files the block was judged against; `None` where `bare` is."""
        return self.request_now(self.where.files)

    def request_now(self, files: Files) -> Request | None:
        """The whole request as a file system is now; `None` where `bare` is.

        Raises:
            Refusal: the outputs of other tasks are among too many names.
            RequestRefused: a grant cannot be given any more.
        """
        if self.bare is None:
            return None
        where, upstream = self.where, self._upstream()
        made = find(upstream.made, files)
        known = WorkspaceFacts(
            root=where.workspace,
            keyed=None if upstream.keyed is None else tuple(sorted(upstream.keyed)),
            dependency_outputs=made.reads,
            dependency_reported=made.reported,
            cache_dir=where.cache_dir,
            links=self.resolution.links,
            declared=upstream.declared,
        )
        return build.complete(self.bare, known, files=files, projects=where.projects)

    @functools.cached_property
    def plan(self) -> Plan | None:
        """The plan of the request on Linux; `None` for another platform, or without a request."""
        if self.request is None or self.request.config.platform != "linux":
            return None
        return _planned(self.request, self.files)

    @property
    def inert(self) -> Iterator[str]:
        """The fields of the resolved config whose grants name nothing now, such as `allowRead[0]`."""
        request = self.bare
        if request is None:
            return
        if any(map(globs.has_wildcard, request.config.allow_read)):
            # a macOS request has no plan: a pattern covers files made later as well
            named = (field for field, _ in self.bare_plan.inert) if self.bare_plan is not None else ()
        else:
            # a plan would give the same answer, and takes ten times as long as judging the block
            named = (
                f"allowRead[{index}]"
                for index, grant in enumerate(request.config.allow_read)
                if not _names_something(grant, self.files)
            )
        for field in named:
            yield self.origins.get(field, field)


def judge_block(
    block: SandboxModel, document: Document, where: BlockSetting, upstream: Callable[[], UpstreamTasks] = UpstreamTasks
) -> JudgedBlock:
    """Resolves a block and finds every reason why it cannot be granted.

    Args:
        block: the block as the file says it.
        document: the file that holds the block, for places.
        where: the setting to judge against.
        upstream: gives the tasks before the block's task; asked for the whole request alone.
    """
    resolution = resolve(
        block,
        platform=where.platform,
        workspace=where.workspace,
        project=where.project,
        home=where.facts.home,
        files=where.files,
        other_homes=where.facts.other_homes,
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
                # a plan refuses patterns alone: one that would have to look at too many files
                planned = _planned(request, where.files, existing=False)
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
        upstream=upstream,
        bare_plan=planned,
    )


def _names_something(grant: str, files: Files) -> bool:
    kind = files.kind(globs.path_of(grant))
    return kind is Kind.DIRECTORY or (kind in {Kind.FILE, Kind.OTHER} and not grant.endswith("/"))


def refusal_diagnostic(refusal: Refusal, path: FieldPath, document: Document) -> Diagnostic:
    """The diagnostic for a refusal of the engine, at the place of a field."""
    from vxconf.diagnostics.codes.all_codes import CODES
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
    """The path in the file of a field of the resolved config; the block's own for an implied field."""
    origins = resolution.origin(field)
    if origins:
        return origins[0].path
    return (*block.path, *FIELDS.get(field.partition("[")[0], ()))


class _Trial:
    """A config from which refused fields are taken out; fields are still known by their first names."""

    def __init__(self, config: ResolvedSandboxConfig) -> None:
        self.config = config
        self._kept: dict[str, list[int]] = {}

    def field(self, field: str) -> str:
        """The name that a field of the present config had in the first one."""
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


def _planned(request: Request, files: Files, *, existing: bool = True) -> Plan:
    from sandbox.planning.linux_plan import plan

    return plan(request, files, existing=existing)


def _profiled(request: Request, files: Files) -> None:
    """Writes the macOS profile, which raises every reason why there can be none."""
    from sandbox.planning.macos.plan_of_request import plan
    from sandbox.planning.macos.profile_text import text

    text(plan(request, files))
