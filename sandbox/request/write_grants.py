"""The write grants of a config: what each binds, and every reason why one cannot be given. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal
from sandbox.request.protected_names import named_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Protocol

    from sandbox.base.host_facts import Files, HostFacts
    from sandbox.contract.config import ResolvedSandboxConfig
    from sandbox.request.walls import Wall

    class _Reasons(Protocol):
        """A source of reasons why a grant of one path cannot be given."""

        def __call__(self, path: str, grant: str, field: str, *, name: bool) -> Iterator[Refusal]: ...


class WriteGrant(NamedTuple):
    """One write grant, judged.

    Attributes:
        field: the field of the config it comes from.
        text: the grant itself, one of the alternatives its braces stand for.
        path: of a pattern the directory that is its literal head.
        kind: a directory bound whole, a file outside the project bound by itself, a name served whatever it becomes,
            or every name a pattern matches.
        make: the directory to make first, empty where it exists: the one granted, else the one that holds the names.
        pattern: in grant syntax; empty but for a pattern.
        without: places a pattern does not reach, nor anything below them.
        instead: advice to grant a directory, empty where that would be refused as well.
    """

    field: str
    text: str
    path: str
    kind: Literal["directory", "file", "name", "pattern"]
    make: str = ""
    pattern: str = ""
    without: tuple[str, ...] = ()
    instead: str = ""


class GrantContext(NamedTuple):
    """Everything a write grant is judged against."""

    config: ResolvedSandboxConfig
    facts: HostFacts
    files: Files
    walls: tuple[Wall, ...]
    stores: tuple[Wall, ...]

    def judge(self) -> tuple[tuple[WriteGrant, ...], tuple[Refusal, ...]]:
        """Judge every write grant: those that can be given, and why the others cannot, each in the config's order."""
        grants: list[WriteGrant] = []
        refused: list[Refusal] = []
        for index, entry in enumerate(self.config.allow_write):
            field = f"allowWrite[{index}]"
            try:
                alternatives = spelled(entry, field)
            except Refusal as refusal:
                refused.append(placed(refusal, field))
                continue
            for alternative in alternatives:
                found = self._grant(alternative, field)
                if isinstance(found, Refusal):
                    refused.append(found)
                else:
                    grants.append(found)
        return tuple(grants), tuple(refused)

    def look_again(self, grants: Iterable[WriteGrant]) -> tuple[tuple[WriteGrant, ...], tuple[Refusal, ...]]:
        """Look again at write grants that were judged: those that can still be given, and why the others cannot.

        Links, files in the way, what exists and the walls are looked at. The reasons that the text of a grant decides
        are not asked again.
        """
        found = [self._again(grant) for grant in grants]
        return (
            tuple(one for one in found if isinstance(one, WriteGrant)),
            tuple(one for one in found if isinstance(one, Refusal)),
        )

    def _again(self, judged: WriteGrant) -> WriteGrant | Refusal:
        if judged.kind == "pattern":
            refusal = next(self._changed_head(judged.path, judged.text, judged.field), None)
            return refusal or self._named_by(judged.text, judged.path, judged.field, judged.instead)
        return self._one(judged.text, judged.field, self._changed)

    def _grant(self, grant: str, field: str) -> WriteGrant | Refusal:
        return self._pattern(grant, field) if globs.has_wildcard(grant) else self._one(grant, field, self._refusals)

    def _one(self, grant: str, field: str, reasons: _Reasons) -> WriteGrant | Refusal:
        """Judge a grant that is no pattern by the reasons given."""
        path = globs.path_of(grant)
        outside = not paths.under(path, self.config.project)
        kind = self.files.kind(path)
        whole = grant.endswith("/") or path == "/"
        directory = whole or (outside and kind is Kind.DIRECTORY)
        for refusal in reasons(path, grant, field, name=not directory):
            return refusal
        if whole and kind in {Kind.FILE, Kind.OTHER}:
            return _in_the_way(grant, path, field)
        if directory:
            make = "" if kind is not None else path
            return WriteGrant(field=field, text=grant, path=path, kind="directory", make=make)
        if not outside:
            make = self._missing(paths.parent(path))
            return WriteGrant(field=field, text=grant, path=path, kind="name", make=make)
        if kind is not None:
            return WriteGrant(field=field, text=grant, path=path, kind="file")
        other = self._directory_hint(paths.parent(path))
        return Refusal(
            f'write grant "{grant}" is outside the project and names nothing',
            field=field,
            code=refusal_codes.MISSING_OUTSIDE,
            hint=f'write "{grant}/" for a directory' + (f", or {other}" if other else ""),
        )

    def _pattern(self, grant: str, field: str) -> WriteGrant | Refusal:
        head, workspace = globs.literal_base(grant), self.config.workspace
        instead = self._directory_hint(head)
        if ".." in paths.parts(grant):
            return Refusal(
                f'write grant "{grant}" goes up after a wildcard',
                field=field,
                code=refusal_codes.UNUSABLE,
                hint="spell it without ..",
            )
        if not paths.at_or_under(head, workspace):
            return Refusal(
                f'write grant "{grant}" is a pattern outside the workspace',
                field=field,
                code=refusal_codes.MISSING_OUTSIDE,
                hint=instead or "grant a directory, with a trailing slash",
            )
        for refusal in self._around_head(head, grant, field):
            return refusal
        return self._named_by(grant, head, field, instead)

    def _named_by(self, grant: str, head: str, field: str, instead: str) -> WriteGrant:
        """The grant of every name a pattern matches, which begins in a directory that was judged."""
        held = (*(wall.path for wall in (*self.walls, *self.stores)), *self.facts.protected, self.facts.temp_root)
        return WriteGrant(
            field=field,
            text=grant,
            path=head,
            kind="pattern",
            make=self._missing(head),
            pattern=grant,
            without=tuple(sorted(path for path in set(held) if paths.under(path, head))),
            instead=instead,
        )

    def _around_head(self, head: str, grant: str, field: str) -> Iterator[Refusal]:
        """Why a pattern cannot begin in a directory, whatever it matches."""
        yield from self._changed_head(head, grant, field)
        yield from self._executed(head, grant, field)
        for place in self.facts.protected:
            if paths.at_or_under(head, place):
                yield _protected(grant, place, field)
        if is_others_temporary(head, self.facts.temp_root, self.config.workspace):
            yield others_temporary(f'write grant "{grant}"', self.facts.temp_root, field)

    def _changed_head(self, head: str, grant: str, field: str) -> Iterator[Refusal]:
        """Why a pattern cannot begin in a directory as the file system is now."""
        yield from self._moved(head, grant, field)
        if self.files.kind(head) in {Kind.FILE, Kind.OTHER}:
            yield _in_the_way(grant, head, field)
        for wall in self.walls:
            if wall.closed and paths.at_or_under(head, wall.path):
                yield _walled_off(f'write grant "{grant}" is in', wall, field)

    def _missing(self, directory: str) -> str:
        return directory if self.files.kind(directory) is None else ""

    def _directory_hint(self, directory: str) -> str:
        """Advice to grant a directory instead; empty where that would be refused as well."""
        spelled = globs.escape(directory).rstrip("/") + "/"
        refused = next(self._refusals(directory, spelled, "", name=False), None)
        return f'grant the directory "{spelled}"' if refused is None else ""

    def _refusals(self, path: str, grant: str, field: str, *, name: bool) -> Iterator[Refusal]:
        """The reasons against a grant of a path, the gravest first, whatever kind of file is there."""
        if self._leads_on(path):
            yield not_canonical(grant, path, field, self.files)
            return
        workspace = self.config.workspace
        for place, what, wide in (
            (self.facts.home, "the home directory", paths.at_or_under(self.facts.home, path)),
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
        yield from self._executed(path, grant, field)
        for place in self.facts.protected:
            if paths.at_or_under(place, path) or paths.under(path, place):
                yield _protected(grant, place, field)

    def _changed(self, path: str, grant: str, field: str, *, name: bool) -> Iterator[Refusal]:
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
                yield _in_the_way(grant, above, field)

    def _executed(self, path: str, grant: str, field: str) -> Iterator[Refusal]:
        config = self.config
        below = config.project if paths.at_or_under(path, config.project) else config.workspace
        if paths.under(path, below) and named_below(path, below, git_config=config.git_config):
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


def spelled(entry: str, field: str) -> list[str]:
    """Each grant that an entry of the config stands for, its braces expanded.

    Raises:
        Refusal: the entry names no path at all, or stands for too many.
    """
    problem = unusable(entry, field)
    if problem is not None:
        raise problem
    return [globs.collapse(grant) for grant in globs.expand_braces(entry)]


def unusable(grant: str, field: str) -> Refusal | None:
    """The reason why a grant's text names no path at all."""
    if "\0" in grant:
        return Refusal(
            f"grant {grant!r} holds a NUL character, which no path can",
            field=field,
            code=refusal_codes.UNUSABLE,
            hint="remove the character",
        )
    if not grant.startswith("/"):
        return Refusal(
            f'grant "{grant}" is not absolute',
            field=field,
            code=refusal_codes.UNUSABLE,
            hint="resolve the config before it is run",
        )
    return None


def is_others_temporary(path: str, temp_root: str, workspace: str) -> bool:
    """Whether a path is among tasks' temporary directories, and in no workspace that lies there too."""
    if not paths.at_or_under(path, temp_root):
        return False
    return not (paths.at_or_under(workspace, temp_root) and paths.at_or_under(path, workspace))


def others_temporary(what: str, temp_root: str, field: str) -> Refusal:
    """The refusal of a grant that would open other tasks' temporary directories."""
    return Refusal(
        f"{what} lies in the directory of all tasks' temporary directories {temp_root}",
        field=field,
        code=refusal_codes.WALLED,
        hint="use $TMPDIR, which every task has to itself",
    )


def not_canonical(grant: str, path: str, field: str, files: Files) -> Refusal:
    """The refusal of a grant that a link leads elsewhere by now: following it would move the grant."""
    met = paths.links_on(path, files)
    where = f"the link {met[0][0]}" if met else "a loop of links"
    if not met and paths.normal(path) != path:
        where = "a component that is not plain"
    return Refusal(
        f'grant "{grant}" passes through {where}',
        field=field,
        code=refusal_codes.MOVED,
        hint="resolve the config again",
    )


def placed(refusal: Refusal, field: str) -> Refusal:
    """The same refusal, with the field it comes from."""
    return Refusal(refusal.message, field=field, code=refusal.code, hint=refusal.hint)


def _in_the_way(grant: str, path: str, field: str) -> Refusal:
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
