"""The reasons why a write grant cannot be given: walls, links, files in the way, too wide, protected. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal
from sandbox.request.grant_refusals import is_others_temporary, not_canonical, others_temporary
from sandbox.request.protected_names import grantable, named_below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.base.host_facts import Files, HostFacts
    from sandbox.contract.config import ResolvedSandboxConfig
    from sandbox.request.walls import Wall


class WriteGrantContext(NamedTuple):
    """Everything a write grant is judged against."""

    config: ResolvedSandboxConfig
    facts: HostFacts
    files: Files
    walls: tuple[Wall, ...]
    stores: tuple[Wall, ...]

    def around_head(self, head: str, grant: str, field: str) -> Iterator[Refusal]:
        """Why a pattern cannot begin in a directory, whatever it matches."""
        yield from self.changed_head(head, grant, field)
        yield from self._executed(head, grant, field, name=False)
        for place in self.facts.protected:
            if paths.at_or_under(head, place):
                yield _protected(grant, place, field)
        if is_others_temporary(head, self.facts.temp_root, self.config.workspace):
            yield others_temporary(f'write grant "{grant}"', self.facts.temp_root, field)

    def changed_head(self, head: str, grant: str, field: str) -> Iterator[Refusal]:
        """Why a pattern cannot begin in a directory as the file system is now."""
        yield from self._moved(head, grant, field)
        if self.files.kind(head) in {Kind.FILE, Kind.OTHER}:
            yield in_the_way(grant, head, field)
        for wall in self.walls:
            if wall.closed and paths.at_or_under(head, wall.path):
                yield _walled_off(f'write grant "{grant}" is in', wall, field)

    def directory_hint(self, directory: str) -> str:
        """Advice to grant a directory instead; empty where that would be refused as well."""
        spelled = globs.escape(directory).rstrip("/") + "/"
        refused = next(self.refusals(directory, spelled, "", name=False), None)
        return f'grant the directory "{spelled}"' if refused is None else ""

    def refusals(self, path: str, grant: str, field: str, *, name: bool) -> Iterator[Refusal]:
        """The reasons against a grant of a path, the gravest first, whatever kind of file is there."""
        if self._leads_on(path):
            yield not_canonical(grant, path, field, self.files)
            return
        workspace = self.config.workspace
        others = (home for home in self.facts.other_homes if not paths.at_or_under(home, workspace))
        for place, what, wide in (
            *((home, "the home directory", paths.at_or_under(home, path)) for home in (self.facts.home, *others)),
            (workspace, "the workspace", paths.under(workspace, path)),
        ):
            if wide:
                yield Refusal(
                    f'write grant "{grant}" {"is" if place == path else "holds"} {what} {place}',
                    field=field,
                    code=refusal_codes.TOO_WIDE,
                    hint="grant the directories the task writes, each by itself",
                )
        yield from self._moved(path, grant, field)
        yield from self._walled(path, grant, field, name=name)
        yield from self._executed(path, grant, field, name=name)
        for place in self.facts.protected:
            if paths.at_or_under(place, path) or paths.under(path, place):
                yield _protected(grant, place, field)

    def changed(self, path: str, grant: str, field: str, *, name: bool) -> Iterator[Refusal]:
        """The reasons of `_refusals` that the file system decides."""
        if self._leads_on(path):
            yield not_canonical(grant, path, field, self.files)
            return
        yield from self._moved(path, grant, field)
        yield from self._walled(path, grant, field, name=name)

    def _leads_on(self, path: str) -> bool:
        """Whether a link is at a path or on the way to it."""
        return paths.canonical(path, self.files) != path or self.files.kind(path) is Kind.LINK

    def _moved(self, path: str, grant: str, field: str) -> Iterator[Refusal]:
        """Links and files on the way to a path."""
        if paths.canonical(path, self.files) != path:
            yield not_canonical(grant, path, field, self.files)
            return
        for above in paths.parents(path):
            kind = self.files.kind(above)
            if kind is Kind.LINK:  # a loop, which no path is canonical behind
                yield not_canonical(grant, path, field, self.files)
            elif kind in {Kind.FILE, Kind.OTHER}:
                yield in_the_way(grant, above, field)

    def _executed(self, path: str, grant: str, field: str, *, name: bool) -> Iterator[Refusal]:
        config = self.config
        below = config.project if paths.at_or_under(path, config.project) else config.workspace
        if not paths.under(path, below) or (name and grantable(path, below, git_config=config.git_config)):
            return
        if named_below(path, below, git_config=config.git_config):
            yield Refusal(
                f'write grant "{grant}" names what other programs execute',
                field=field,
                code=refusal_codes.WALLED,
                hint="have the task write elsewhere, and take what it wrote over by hand",
            )

    def _walled(self, path: str, grant: str, field: str, *, name: bool) -> Iterator[Refusal]:
        inside = paths.at_or_under(path, self.config.workspace)
        for wall in self.walls:
            itself = wall.path == path
            named = itself and not wall.closed and not name
            if (paths.at_or_under(wall.path, path) and not named) or (wall.closed and paths.under(path, wall.path)):
                own = f'write "{grant}/" to grant it whole' if itself and not wall.closed else ""
                yield _walled_off(f'write grant "{grant}" {_relation(path, wall)}', wall, field, hint=own)
        for store in self.stores if inside else ():
            if paths.under(store.path, path):
                yield _walled_off(f'write grant "{grant}" holds', store, field)
        if is_others_temporary(path, self.facts.temp_root, self.config.workspace):
            yield others_temporary(f'write grant "{grant}"', self.facts.temp_root, field)


def _relation(path: str, wall: Wall) -> str:
    """The relation of a path to a wall, as a verb."""
    return "is" if wall.path == path else "holds" if paths.under(wall.path, path) else "is in"


def in_the_way(grant: str, path: str, field: str) -> Refusal:
    """The refusal of a grant that needs a directory where a file stands."""
    return Refusal(
        f'write grant "{grant}" needs a directory where the file {path} stands',
        field=field,
        code=refusal_codes.FILE_IN_THE_WAY,
        hint="remove the file or grant another directory",
    )


def _walled_off(what: str, wall: Wall, field: str, *, hint: str = "") -> Refusal:
    return Refusal(
        f"{what} {wall.reason} {wall.path}",
        field=field,
        code=refusal_codes.WALLED,
        hint=hint or "grant a directory that keeps clear of it",
    )


def _protected(grant: str, place: str, field: str) -> Refusal:
    return Refusal(
        f'write grant "{grant}" would let the task rewrite the program that walls it in, {place}',
        field=field,
        code=refusal_codes.PROTECTED,
        hint="grant a directory apart from it, or install vxconf elsewhere",
    )
