"""The shape of each write grant that can be given: a directory, a file, a name, or the names of a pattern. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal
from sandbox.request.grant_refusals import placed, spelled
from sandbox.request.write_grant_refusals import in_the_way

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Protocol

    from sandbox.request.write_grant_refusals import WriteGrantContext

    class _Reasons(Protocol):
        """A source of reasons why a grant of one path cannot be given."""

        def __call__(self, path: str, grant: str, field: str, *, name: bool) -> Iterator[Refusal]: ...


class WriteGrant(NamedTuple):
    """One write grant, judged, with the shape that its spelling and the file system give it.

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


def judge(context: WriteGrantContext) -> tuple[tuple[WriteGrant, ...], tuple[Refusal, ...]]:
    """Judge every write grant: those that can be given, and why the others cannot, each in the config's order."""
    grants: list[WriteGrant] = []
    refused: list[Refusal] = []
    for index, entry in enumerate(context.config.allow_write):
        field = f"allowWrite[{index}]"
        try:
            alternatives = spelled(entry, field)
        except Refusal as refusal:
            refused.append(placed(refusal, field))
            continue
        for alternative in alternatives:
            found = _grant(context, alternative, field)
            if isinstance(found, Refusal):
                refused.append(found)
            else:
                grants.append(found)
    return tuple(grants), tuple(refused)


def look_again(
    context: WriteGrantContext, grants: Iterable[WriteGrant]
) -> tuple[tuple[WriteGrant, ...], tuple[Refusal, ...]]:
    """Look again at write grants that were judged: those that can still be given, and why the others cannot.

    Links, files in the way, what exists and the walls are looked at. The reasons that the text of a grant decides
    are not asked again.
    """
    found = [_again(context, grant) for grant in grants]
    return (
        tuple(one for one in found if isinstance(one, WriteGrant)),
        tuple(one for one in found if isinstance(one, Refusal)),
    )


def _again(context: WriteGrantContext, judged: WriteGrant) -> WriteGrant | Refusal:
    if judged.kind == "pattern":
        refusal = next(context.changed_head(judged.path, judged.text, judged.field), None)
        return refusal or _named_by(context, judged.text, judged.path, judged.field, judged.instead)
    return _one(context, judged.text, judged.field, context.changed)


def _grant(context: WriteGrantContext, grant: str, field: str) -> WriteGrant | Refusal:
    return (
        _pattern(context, grant, field) if globs.has_wildcard(grant) else _one(context, grant, field, context.refusals)
    )


def _one(context: WriteGrantContext, grant: str, field: str, reasons: _Reasons) -> WriteGrant | Refusal:
    """Judge a grant that is no pattern by the reasons given."""
    path = globs.path_of(grant)
    outside = not paths.under(path, context.config.project)
    kind = context.files.kind(path)
    whole = grant.endswith("/") or path == "/"
    directory = whole or (outside and kind is Kind.DIRECTORY)
    for refusal in reasons(path, grant, field, name=not directory):
        return refusal
    if whole and kind in {Kind.FILE, Kind.OTHER}:
        return in_the_way(grant, path, field)
    if directory:
        make = "" if kind is not None else path
        return WriteGrant(field=field, text=grant, path=path, kind="directory", make=make)
    if not outside:
        make = _missing(context, paths.parent(path))
        return WriteGrant(field=field, text=grant, path=path, kind="name", make=make)
    if kind is not None:
        return WriteGrant(field=field, text=grant, path=path, kind="file")
    other = context.directory_hint(paths.parent(path))
    return Refusal(
        f'write grant "{grant}" is outside the project and names nothing',
        field=field,
        code=refusal_codes.MISSING_OUTSIDE,
        hint=f'write "{grant}/" for a directory' + (f", or {other}" if other else ""),
    )


def _pattern(context: WriteGrantContext, grant: str, field: str) -> WriteGrant | Refusal:
    head, workspace = globs.literal_base(grant), context.config.workspace
    instead = context.directory_hint(head)
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
    for refusal in context.around_head(head, grant, field):
        return refusal
    return _named_by(context, grant, head, field, instead)


def _named_by(context: WriteGrantContext, grant: str, head: str, field: str, instead: str) -> WriteGrant:
    """The grant of every name a pattern matches, which begins in a directory that was judged."""
    held = (
        *(wall.path for wall in (*context.walls, *context.stores)),
        *context.facts.protected,
        context.facts.temp_root,
    )
    return WriteGrant(
        field=field,
        text=grant,
        path=head,
        kind="pattern",
        make=_missing(context, head),
        pattern=grant,
        without=tuple(sorted(path for path in set(held) if paths.under(path, head))),
        instead=instead,
    )


def _missing(context: WriteGrantContext, directory: str) -> str:
    return directory if context.files.kind(directory) is None else ""
