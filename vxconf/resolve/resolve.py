"""The frozen config of a sandbox block: every path absolute and canonical, each grant traced to its entries. Pure.

Braces are expanded first, then `~` and the project directory, then links. A directory ends in `/`; a pattern stays a
pattern. `sandbox.request.build` and the plan find most of what cannot be granted. Two faults are found here, since a
canonical path no longer shows them: a grant spelled inside the project that a link leads outside, and a link that leads
into a place that is kept closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract.config import Ignore, Platform, ResolvedSandboxConfig
from sandbox.contract.errors import Refusal
from sandbox.request import credential_stores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sandbox.base.host_facts import Files
    from vxconf.resolve.task_model import Entries, Entry, FieldPath, SandboxModel

LEAVES_PROJECT = "VX301"


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
    block: SandboxModel, *, platform: Platform, workspace: str, project: str, home: str, files: Files
) -> Resolution:
    """The frozen config of one sandbox block.

    Args:
        block: the block as the file says it.
        platform: the platform the config is for.
        workspace: the canonical root directory of the workspace.
        project: the canonical directory of the task's project, which relative grants start from.
        home: the canonical home directory, which `~` stands for.
        files: the file system whose links are followed.
    """
    return _Resolver(platform, workspace, project, home, files).run(block)


class _Resolver:
    def __init__(self, platform: Platform, workspace: str, project: str, home: str, files: Files) -> None:
        self._platform: Platform = platform
        self._workspace, self._project, self._home, self._files = workspace, project, home, files
        self._origins: list[tuple[str, Entries]] = []
        self._links: dict[str, str] = {}
        self._refusals: list[RefusedEntry] = []

    def run(self, block: SandboxModel) -> Resolution:
        config = ResolvedSandboxConfig(
            platform=self._platform,
            workspace=self._workspace,
            project=self._project,
            allow_read=self._list("allowRead", block.read, self._read),
            allow_write=self._list("allowWrite", block.write, self._write),
            network=self._all_or_list("network", block.network, _verbatim),
            deny_network=self._list("denyNetwork", block.deny_network, _verbatim),
            system_info=self._list("systemInfo", block.system_info, _verbatim),
            unix_sockets=self._all_or_list("unixSockets", block.unix_sockets, self._socket),
            local_binding=_ports(block.local_binding),
            mach_lookup=self._list("machLookup", block.mach_lookup, _verbatim),
            pty=block.pty,
            git_config=block.git_config,
            weaker_when_nested=block.weaker_when_nested,
            weaker_network_isolation=block.weaker_network_isolation,
            hermetic=block.hermetic,
            ignore=Ignore(
                read=self._list("ignore.read", block.ignore_read, self._ignored),
                write=self._list("ignore.write", block.ignore_write, self._ignored),
                system_info=self._list("ignore.systemInfo", block.ignore_system_info, _verbatim),
                network=self._list("ignore.network", block.ignore_network, _verbatim),
            ),
        )
        return Resolution(
            config=config,
            origins=tuple(self._origins),
            links=tuple(sorted(self._links.items())),
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

    def _read(self, text: str) -> Iterable[str]:
        for grant in globs.expand_braces(text):
            anchored = self._anchored(grant)
            path = _literal_part(anchored)
            self._hold_closed(text, path)
            self._note_links(path)
            yield self._grant(anchored, lambda _real, kind: kind is Kind.DIRECTORY)

    def _write(self, text: str) -> Iterable[str]:
        for grant in globs.expand_braces(text):
            anchored = self._anchored(grant)
            path = _literal_part(anchored)
            self._hold_inside("write", text, grant, path)
            self._note_links(path)
            yield self._grant(anchored, self._is_outside_directory)

    def _ignored(self, text: str) -> Iterable[str]:
        # an ignored path is compared with denials and opens nothing: no kind decides about its trailing slash
        for grant in globs.expand_braces(text):
            yield self._grant(self._anchored(grant), lambda _real, _kind: False)

    def _socket(self, text: str) -> Iterable[str]:
        # the rules (VX214) leave no pattern here
        anchored = self._anchored(text)
        self._hold_inside("unixSockets", text, "", _literal_part(anchored))
        yield paths.canonical(globs.unescape(anchored), self._files)

    def _is_outside_directory(self, real: str, kind: Kind | None) -> bool:
        """Whether a write grant is a directory whatever its spelling; inside the project it is a name."""
        return kind is Kind.DIRECTORY and not paths.at_or_under(real, self._project)

    def _anchored(self, grant: str) -> str:
        if grant == "~" or grant.startswith("~/"):
            return globs.escape(self._home) + grant[1:]
        if grant.startswith("/"):
            return grant
        return paths.join(globs.escape(self._project), grant)

    def _grant(self, anchored: str, is_directory: Callable[[str, Kind | None], bool]) -> str:
        grant = globs.collapse(anchored)
        files = self._files
        if globs.has_wildcard(grant):
            base, rest = _at_first_wildcard(grant)
            return paths.join(globs.escape(paths.canonical(base, files)), rest)
        path = globs.unescape(grant)
        real = paths.canonical(path, files)
        if real != "/" and (_ends_as_directory(path) or is_directory(real, files.kind(real))):
            return globs.escape(real) + "/"
        return globs.escape(real)

    def _note_links(self, path: str) -> None:
        found = paths.links_on(path, self._files)
        if found:
            self._links.update(found)

    def _hold_inside(self, field: str, text: str, grant: str, path: str) -> None:
        """Refuses an entry that is spelled inside the project and that a link leads outside.

        An absolute entry, and one that begins with `~`, may lead anywhere.

        Raises:
            Refusal: `VX301`.
        """
        if grant == "~" or grant.startswith(("/", "~/")):
            return
        project = self._project
        real = paths.canonical(path, self._files)
        if paths.at_or_under(paths.normal(path), project) and not paths.at_or_under(real, project):
            place = globs.escape(real) + ("/" if field == "write" else "")
            raise Refusal(
                f'allow.{field} "{text}" leads through a link out of the project, to {real}',
                code=LEAVES_PROJECT,
                hint=f'grant the place itself, "{place}", or take the link away',
            )

    def _hold_closed(self, text: str, path: str) -> None:
        """Refuses a read grant that a link leads into a place which only a grant of its own name opens.

        Raises:
            Refusal: `VX301`.
        """
        path = paths.normal(path)
        real = paths.canonical(path, self._files)
        closed = credential_stores.led_into(path, real, home=self._home, workspace=self._workspace, files=self._files)
        if closed:
            raise Refusal(
                f'allow.read "{text}" leads through a link into {closed}',
                code=LEAVES_PROJECT,
                hint=f'grant the place itself, "{globs.escape(real)}", or take the link away',
            )


def _verbatim(text: str) -> Iterable[str]:
    return (text,)


def _ports(value: bool | tuple[int, ...]) -> bool | tuple[int, ...]:
    return value if isinstance(value, bool) else tuple(dict.fromkeys(value))


def _ends_as_directory(path: str) -> bool:
    return path.endswith(("/", "/.", "/.."))


def _literal_part(grant: str) -> str:
    """The unescaped path of a literal grant, or the directory before a pattern's first wildcard."""
    collapsed = globs.collapse(grant)
    return _at_first_wildcard(collapsed)[0] if globs.has_wildcard(collapsed) else globs.unescape(collapsed)


def _at_first_wildcard(grant: str) -> tuple[str, str]:
    """The unescaped directory before a pattern's first wildcard, and the pattern from there on."""
    components = grant.split("/")
    index = next(i for i, component in enumerate(components) if globs.has_wildcard(component))
    rest = [part for part in components[index:-1] if part not in {"", "."}]
    return globs.unescape("/".join(components[:index])) or "/", "/".join((*rest, components[-1]))
