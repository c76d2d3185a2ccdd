"""The frozen config of a sandbox block: every list resolved, each grant traced to its entries. Pure.

`canonical_grants` resolves each path by itself. `sandbox.request.build` and the plan find most of what cannot be
granted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from sandbox.contract.config import Ignore, Platform, ResolvedSandboxConfig
from sandbox.contract.errors import Refusal
from vxconf.resolve.canonical_grants import GrantPaths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sandbox.base.host_facts import Files
    from vxconf.resolve.task_model import Entries, Entry, FieldPath, SandboxModel


class RefusedEntry(NamedTuple):
    """A refusal, and the path in the file of the refused entry."""

    path: FieldPath
    refusal: Refusal


class Resolution(NamedTuple):
    """A resolved block.

    Attributes:
        config: the frozen config, without the refused entries.
        origins: for each grant of the config, such as `allowRead[0]`, the entries it comes from; several entries
            that mean the same become one grant.
        links: the links that grants are spelled through, each as its canonical path and its text.
        refusals: the refused entries, in the order of the model.
    """

    config: ResolvedSandboxConfig
    origins: tuple[tuple[str, Entries], ...]
    links: tuple[tuple[str, str], ...]
    refusals: tuple[RefusedEntry, ...]

    def origin(self, field: str) -> Entries:
        """The entries a field of the config comes from; none for an implied field."""
        return next((entries for name, entries in self.origins if name == field), ())


def resolve(
    block: SandboxModel,
    *,
    platform: Platform,
    workspace: str,
    project: str,
    home: str,
    files: Files,
    other_homes: tuple[str, ...] = (),
) -> Resolution:
    """The frozen config of one sandbox block.

    Args:
        block: the block as the file says it.
        platform: the platform the config is for.
        workspace: the canonical root directory of the workspace.
        project: the canonical directory of the task's project, which relative grants start from.
        home: the canonical home directory, which `~` stands for.
        files: the file system whose links are followed.
        other_homes: further homes with credential stores, canonical.
    """
    grants = GrantPaths(workspace=workspace, project=project, home=home, files=files, other_homes=other_homes)
    return _Resolver(platform, grants).run(block)


class _Resolver:
    def __init__(self, platform: Platform, grants: GrantPaths) -> None:
        self._platform: Platform = platform
        self._grants = grants
        self._origins: list[tuple[str, Entries]] = []
        self._refusals: list[RefusedEntry] = []

    def run(self, block: SandboxModel) -> Resolution:
        config = ResolvedSandboxConfig(
            platform=self._platform,
            workspace=self._grants.workspace,
            project=self._grants.project,
            allow_read=self._list("allowRead", block.read, self._grants.read),
            allow_write=self._list("allowWrite", block.write, self._grants.write),
            network=self._all_or_list("network", block.network, _verbatim),
            deny_network=self._list("denyNetwork", block.deny_network, _verbatim),
            system_info=self._list("systemInfo", block.system_info, _verbatim),
            unix_sockets=self._all_or_list("unixSockets", block.unix_sockets, self._grants.socket),
            local_binding=_ports(block.local_binding),
            mach_lookup=self._list("machLookup", block.mach_lookup, _verbatim),
            pty=block.pty,
            git_config=block.git_config,
            weaker_when_nested=block.weaker_when_nested,
            weaker_network_isolation=block.weaker_network_isolation,
            hermetic=block.hermetic,
            ignore=Ignore(
                read=self._list("ignore.read", block.ignore_read, self._grants.ignored),
                write=self._list("ignore.write", block.ignore_write, self._grants.ignored),
                system_info=self._list("ignore.systemInfo", block.ignore_system_info, _verbatim),
                network=self._list("ignore.network", block.ignore_network, _verbatim),
            ),
        )
        return Resolution(
            config=config,
            origins=tuple(self._origins),
            links=tuple(sorted(self._grants.links.items())),
            refusals=tuple(self._refusals),
        )

    def _all_or_list(
        self, field: str, value: Literal[True] | Entries | None, one: Callable[[str], Iterable[str]]
    ) -> Literal[True] | tuple[str, ...] | None:
        return value if value is None or value is True else self._list(field, value, one)

    def _list(self, field: str, entries: Entries, one: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
        """The grants of a list, in its order; of equal grants the first keeps its place, with the entries of all."""
        if not entries:
            return ()
        found: dict[str, list[Entry]] = {}
        for entry in entries:
            try:
                results = tuple(one(entry.text))
            except Refusal as refusal:
                self._refusals.append(RefusedEntry(path=entry.path, refusal=refusal))
                continue
            for result in results:
                origins = found.setdefault(result, [])
                if entry not in origins:
                    origins.append(entry)
        for index, origins in enumerate(found.values()):
            self._origins.append((f"{field}[{index}]", tuple(origins)))
        return tuple(found)


def _verbatim(text: str) -> Iterable[str]:
    return (text,)


def _ports(value: bool | tuple[int, ...]) -> bool | tuple[int, ...]:
    return value if isinstance(value, bool) else tuple(dict.fromkeys(value))
