"""Warnings about a block that can be granted and probably does not do what was meant; pure.

Each looks at the plan that was made of the block, so that a warning and a run never disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox import globs, paths
from sandbox.facts import Kind
from sandbox.stores import STORES, SYSTEM
from vxconf.diagnostics import quoted
from vxconf.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from sandbox.facts import Files
    from sandbox.request import Request
    from vxconf.diagnostics import Diagnostic
    from vxconf.document import Document
    from vxconf.judging import Judged
    from vxconf.model import Entry
#: Names below a directory from which on serving it by name is worth a word.
LARGE = 1_000


def cautions(
    judged: Judged, document: Document, *, files: Files, stores: Collection[str], is_made: Callable[[str], bool]
) -> tuple[Diagnostic, ...]:
    """The warnings of one block.

    Args:
        judged: the block and its plan.
        document: the file it stands in, for places.
        files: the host's file system.
        stores: where credentials may be, as `store_places` gives it.
        is_made: whether a task of the workspace makes a path, so that it may well be missing now.
    """
    found = [
        *_naming_nothing(judged, is_made),
        *_covered(judged),
        *_opening_stores(judged, stores),
        *_large_by_name(judged, files),
    ]
    return tuple(
        Finding(
            code=code, path=entry.path, message=f"{_field(entry)} {quoted(entry.text)} {what}", help=remedy
        ).diagnose(document)
        for code, entry, what, remedy in found
    )


_Found = tuple[str, "Entry", str, str]


def _naming_nothing(judged: Judged, is_made: Callable[[str], bool]) -> Iterator[_Found]:
    inert = set(judged.inert)
    # an entry with braces names something as soon as one of its alternatives does
    alternatives: dict[Entry, list[str]] = {}
    for field, entries in judged.resolution.origins:
        if field.startswith("allowRead["):
            for entry in entries:
                alternatives.setdefault(entry, []).append(field)
    for entry, fields in alternatives.items():
        grants = [_grant_at(judged, field) for field in fields]
        if not inert.issuperset(fields) or any(is_made(_place(grant)) for grant in grants):
            continue
        what = ("VX403", "matches") if all(map(globs.has_wildcard, grants)) else ("VX407", "names")
        yield what[0], entry, f"{what[1]} nothing now", "check the spelling, or make it before the task starts"


def _covered(judged: Judged) -> Iterator[_Found]:
    config, resolution = judged.resolution.config, judged.resolution
    walls = _walls(judged.bare)
    reads = [(f"allowRead[{i}]", grant) for i, grant in enumerate(config.allow_read)]
    writes = [(f"allowWrite[{i}]", grant) for i, grant in enumerate(config.allow_write)]
    for field, _ in (*reads, *writes):
        first, *others = resolution.origin(field)
        for entry in others:
            if entry.text == first.text or not globs.expand_braces(entry.text)[1:]:
                yield "VX404", entry, f"means the same as {quoted(first.text)} before it", "remove one of the two"
    for mine, wider in ((reads, (*reads, *writes)), (writes, writes)):
        for field, grant in mine:
            for other, above in wider:
                if other != field and _covers(above, grant, walls):
                    entry, cover = resolution.origin(field)[0], resolution.origin(other)[0]
                    if entry.path == cover.path:
                        continue
                    what = f"is already covered by {_field(cover)} {quoted(cover.text)}"
                    yield "VX404", entry, what, "remove it, or narrow the other"
                    break


def _covers(above: str, grant: str, walls: tuple[str, ...]) -> bool:
    """Whether a directory grant opens everything another grant does."""
    if not above.endswith("/") or globs.has_wildcard(above):
        return False
    directory = _literal(above)
    path = _place(grant)
    if not paths.at_or_under(path, directory) or above == grant:
        return False
    # a grant naming a wall, or something in one, opens what the one above it does not
    return not any(paths.at_or_under(path, wall) and paths.under(wall, directory) for wall in walls)


def store_places(home: str, files: Files) -> frozenset[str]:
    """Every place below home where a credential store is or would be, and where it really is."""
    places = {*(paths.join(home, store) for store in STORES), *SYSTEM}
    return frozenset(places | {paths.canonical(place, files) for place in places})


def _opening_stores(judged: Judged, stores: Collection[str]) -> Iterator[_Found]:
    config = judged.resolution.config
    for name, grants in (("allowRead", config.allow_read), ("allowWrite", config.allow_write)):
        for index, grant in enumerate(grants):
            path = _place(grant)
            above = (place for place in (path, *paths.parents(path)) if place in stores)
            store = next(above, None)
            if store is not None:
                entry = judged.resolution.origin(f"{name}[{index}]")[0]
                yield (
                    "VX405",
                    entry,
                    f"opens the credential store {store}",
                    "leave it out unless the task needs the keys",
                )


def _large_by_name(judged: Judged, files: Files) -> Iterator[_Found]:
    config = judged.resolution.config
    for index, grant in enumerate(config.allow_write):
        if grant.endswith("/") or globs.has_wildcard(grant) or not _is_large(_literal(grant), files):
            continue
        entry = judged.resolution.origin(f"allowWrite[{index}]")[0]
        what = f"grants a directory of more than {LARGE} files by name, each call on it served by another process"
        remedy = f"write {quoted(entry.text + '/')} for native speed, unless the task removes the directory itself"
        yield "VX406", entry, what, remedy


def _is_large(directory: str, files: Files) -> bool:
    todo, seen = [directory] if files.kind(directory) is Kind.DIRECTORY else [], 0
    while todo and seen <= LARGE:
        here = todo.pop()
        names = files.entries(here)
        seen += len(names)
        if seen <= LARGE:
            todo += (path for name in names if files.kind(path := paths.join(here, name)) is Kind.DIRECTORY)
    return seen > LARGE


def _walls(request: Request | None) -> tuple[str, ...]:
    return tuple(wall.path for wall in (*request.walls, *request.stores)) if request is not None else ()


def _grant_at(judged: Judged, field: str) -> str:
    name, _, index = field.rstrip("]").partition("[")
    config = judged.resolution.config
    return (config.allow_read if name == "allowRead" else config.allow_write)[int(index)]


def _place(grant: str) -> str:
    """The path a grant names, or the directory a pattern begins in."""
    return globs.literal_base(grant) if globs.has_wildcard(grant) else _literal(grant)


def _literal(grant: str) -> str:
    return globs.unescape(grant).rstrip("/") or "/"


def _field(entry: Entry) -> str:
    """`allow.read` of an entry's path, the block left out."""
    return ".".join(str(part) for part in entry.path[-3:-1])
