"""Warnings about read and write grants that probably do not do what their author meant; pure.

Each warning looks at the judged block or its plan, so that it never disagrees with a run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.request.credential_stores import STORES, SYSTEM
from sandbox.request.protected_names import is_policy
from vxconf.diagnostics.diagnostic import quoted
from vxconf.lint.system_directories import opened_directory
from vxconf.validate.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from sandbox.base.host_facts import Files
    from sandbox.request.request import Request
    from vxconf.diagnostics.diagnostic import Diagnostic
    from vxconf.document.document import Document
    from vxconf.resolve.judge_block import JudgedBlock
    from vxconf.resolve.task_model import Entry, SandboxModel
#: The most warnings about covered entries of one block.
_TOLD = 20
#: The most names below a directory that may be granted by its bare name without a warning.
LARGE = 1_000


def warnings_of_grants(
    block: SandboxModel,
    judged: JudgedBlock,
    document: Document,
    *,
    files: Files,
    stores: Collection[str],
    is_made: Callable[[str], bool],
) -> tuple[Diagnostic, ...]:
    """The warnings about the grants of one block.

    Args:
        block: the block as the file says it.
        judged: the block, judged.
        document: the file that holds the block, for places.
        files: the host's file system.
        stores: the places of credential stores, from `credential_store_places`.
        is_made: whether a task of the workspace makes a path; such a path may well be missing now.
    """
    inert = frozenset(judged.inert)
    found = [
        *_naming_nothing(judged, inert, files, is_made),
        *_covered(block, judged, document, inert),
        *_outside(judged),
        *_opening_stores(judged, stores),
        *_opening_policy(judged),
        *_opening_system(judged),
        *_large_by_name(judged, files),
    ]
    return tuple(
        Finding(
            code=code, path=entry.path, message=f"{_field(entry)} {quoted(entry.text)} {what}", help=remedy
        ).to_diagnostic(document)
        for code, entry, what, remedy in found
    )


_Found = tuple[str, "Entry", str, str]


def _naming_nothing(
    judged: JudgedBlock, inert: frozenset[str], files: Files, is_made: Callable[[str], bool]
) -> Iterator[_Found]:
    """Read entries that name nothing now and that no task makes (VX403, VX407)."""
    alternatives: dict[Entry, list[str]] = {}
    for field, entries in judged.resolution.origins:
        if field.startswith("allowRead["):
            for entry in entries:
                alternatives.setdefault(entry, []).append(field)
    for entry, fields in alternatives.items():
        # an entry with braces names something as soon as one of its alternatives does
        if inert.issuperset(fields):
            grants = [_grant_at(judged, field) for field in fields]
            if not any(is_made(globs.head(grant)) for grant in grants):
                yield _names_nothing(entry, grants, files)


def _names_nothing(entry: Entry, grants: list[str], files: Files) -> _Found:
    if all(map(globs.has_wildcard, grants)):
        return "VX403", entry, "matches nothing now", _bracketed(entry.text) or _not_understood(entry.text)
    if all(grant.endswith("/") and files.kind(globs.head(grant)) is Kind.FILE for grant in grants):
        remedy = f"write it without the slash: {quoted(entry.text.rstrip('/'))}"
        return "VX407", entry, "names a directory, and there is a file", remedy
    return "VX407", entry, "names nothing now", _not_understood(entry.text)


def _bracketed(text: str) -> str:
    """The advice for a pattern whose brackets may be a part of the name, empty for another one."""
    if "[" not in text:
        return ""
    escaped = quoted(re.sub(r"(?<!\\)\[", r"\\[", text))
    return f"brackets stand for one of the characters in them: write {escaped} where they belong to the name"


def _not_understood(text: str) -> str:
    """The advice for an entry that names nothing, which may be written as another tool wants it."""
    if text.startswith("$") or "${" in text:
        return 'variables are not expanded here: write the path itself, or "~/" for home'
    if text.startswith("~"):
        return 'only "~/" stands for a home, and no other user\'s: write the path itself'
    if text[1:3] in {":/", ":\\"} and text[0].isalpha():
        return "there are no drives here: an absolute path begins with /"
    if "\\" in text:
        return "write / between names: a backslash has the character behind it taken literally"
    return "check the spelling, or make it before the task starts"


def _covered(block: SandboxModel, judged: JudgedBlock, document: Document, inert: Collection[str]) -> Iterator[_Found]:
    config, resolution = judged.resolution.config, judged.resolution
    reads = [(f"allowRead[{i}]", grant) for i, grant in enumerate(config.allow_read)]
    writes = [(f"allowWrite[{i}]", grant) for i, grant in enumerate(config.allow_write)]
    for field, _ in (*reads, *writes):
        first, *others = resolution.origin(field)
        for entry in others:
            if entry.text == first.text or not globs.expand_braces(entry.text)[1:]:
                yield "VX404", entry, f"means the same as {quoted(first.text)} before it", "remove one of the two"
    covers = _covers(judged, reads, writes, inert)
    if not covers:
        return
    from vxconf.lint.redundant_entries import RedundantEntries

    redundant, told = RedundantEntries(block, judged, document), 0
    for entry, cover in covers:
        # each question needs a plan of its own, and some examples are enough to look at the rest
        if told < _TOLD and entry in redundant:
            told += 1
            what = f"is already covered by {_field(cover)} {quoted(cover.text)}"
            yield "VX404", entry, what, "remove it, or narrow the other"


_Grants = list[tuple[str, str]]


def _covers(
    judged: JudgedBlock, reads: _Grants, writes: _Grants, inert: Collection[str]
) -> tuple[tuple[Entry, Entry], ...]:
    """The entries that seem to be covered, each with one that seems to cover it."""
    walls, origins = _walls(judged.bare), dict(judged.resolution.origins)
    found: dict[Entry, list[Entry | None]] = {}
    for mine, wider in ((reads, (*reads, *writes)), (writes, writes)):
        holders = [
            _Holder(globs.path_of(grant), grant, origins[field][0])
            for field, grant in wider
            if grant.endswith("/") and field not in inert and not globs.has_wildcard(grant)
        ]
        for field, grant in mine if holders else ():
            entry = origins[field][0]
            cover = _covering(entry, grant, holders, walls) if field not in inert else None
            # an entry with braces is covered when each of its alternatives is
            found.setdefault(entry, []).append(cover)
    return tuple((entry, covers[0]) for entry, covers in found.items() if covers[0] is not None and all(covers))


class _Holder(NamedTuple):
    """A granted directory, its grant, and the entry the grant comes from."""

    directory: str
    grant: str
    entry: Entry


def _covering(entry: Entry, grant: str, holders: list[_Holder], walls: tuple[str, ...]) -> Entry | None:
    """The entry of the first directory that holds a grant with no wall between them, `None` when none does."""
    path = globs.head(grant)
    for holder in holders:
        if holder.grant == grant or holder.entry.path == entry.path or not paths.at_or_under(path, holder.directory):
            continue
        # a grant of a wall, or of a path in a wall, opens a place that the directory above does not
        if not any(paths.at_or_under(path, wall) and paths.under(wall, holder.directory) for wall in walls):
            return holder.entry
    return None


def _outside(judged: JudgedBlock) -> Iterator[_Found]:
    """Read grants of directories that hold the workspace, which open nothing in it (VX415)."""
    request = judged.bare
    if request is None or request.config.hermetic:
        return
    root = request.workspace_root
    around = [wall.path for wall in request.around]
    for index, grant in enumerate(judged.resolution.config.allow_read):
        place = globs.path_of(grant) if not globs.has_wildcard(grant) else root
        if paths.under(root, place) and not any(paths.at_or_under(place, wall) for wall in around):
            entry = judged.resolution.origin(f"allowRead[{index}]")[0]
            what = f"does not reach into the workspace {root}, and what is outside may be read anyway"
            yield "VX415", entry, what, 'grant what the task needs of the workspace, such as "." for its project'


def credential_store_places(homes: tuple[str, ...], files: Files) -> frozenset[str]:
    """The paths where a credential store is or would be, each also with its links followed.

    Args:
        homes: those in which stores are looked for, canonical.
        files: the host's file system.
    """
    places = {*(paths.join(home, store) for home in homes for store in STORES), *SYSTEM}
    return frozenset(places | {paths.canonical(place, files) for place in places})


def _opening_stores(judged: JudgedBlock, stores: Collection[str]) -> Iterator[_Found]:
    config = judged.resolution.config
    for name, grants in (("allowRead", config.allow_read), ("allowWrite", config.allow_write)):
        for index, grant in enumerate(grants):
            path = globs.head(grant)
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


def _opening_policy(judged: JudgedBlock) -> Iterator[_Found]:
    """Write grants that name a file which says what tasks are granted (VX416)."""
    for index, grant in enumerate(judged.resolution.config.allow_write):
        if globs.has_wildcard(grant) or grant.endswith("/"):
            continue
        path = globs.path_of(grant)
        if is_policy(path) or (judged.plan is not None and judged.plan.executed.says_grants(path)):
            entry = judged.resolution.origin(f"allowWrite[{index}]")[0]
            what = "lets the task grant itself and every other task of that project anything from its next run on"
            yield "VX416", entry, what, "have the task write elsewhere, and take what it wrote over by hand"


def _opening_system(judged: JudgedBlock) -> Iterator[_Found]:
    """Grants that open directories of the system, which are everybody's (VX417)."""
    config, root = judged.resolution.config, judged.resolution.config.workspace
    for name, grants in (("allowRead", config.allow_read), ("allowWrite", config.allow_write)):
        writes = name == "allowWrite"
        for index, grant in enumerate(grants):
            opened = opened_directory(grant, root, writes=writes)
            if opened is None or (not writes and paths.under(root, opened.path)):
                continue  # a read of what holds the workspace is VX415's matter
            entry = judged.resolution.origin(f"{name}[{index}]")[0]
            what = f"opens {opened.path}" if opened.whole else f"lets the task write in {opened.path}"
            yield "VX417", entry, f"{what}: {opened.held}", "name what the task needs of it"


def _large_by_name(judged: JudgedBlock, files: Files) -> Iterator[_Found]:
    config = judged.resolution.config
    for index, grant in enumerate(config.allow_write):
        if grant.endswith("/") or globs.has_wildcard(grant) or not _is_large(globs.path_of(grant), files):
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
    """The places that a grant of a directory above them does not open."""
    if request is None:
        return ()
    closed = (*request.walls, *request.stores, *request.around)
    return (request.workspace_root, request.facts.temp_root, *(wall.path for wall in closed))


def _grant_at(judged: JudgedBlock, field: str) -> str:
    name, _, index = field.rstrip("]").partition("[")
    config = judged.resolution.config
    return (config.allow_read if name == "allowRead" else config.allow_write)[int(index)]


def _field(entry: Entry) -> str:
    """The field of an entry within its block, such as `allow.read`."""
    return ".".join(str(part) for part in entry.path[-3:-1])
