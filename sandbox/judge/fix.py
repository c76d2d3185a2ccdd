"""The fewest entries that would have let an attempt pass, spelled for the project's file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox import paths
from sandbox.contract import Fix, FixInputs, FixPaths, Intent
from sandbox.judge import spelling

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from sandbox.contract import Access
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.verdict import Denied


def fix(counted: Sequence[Denied], boundary: Boundary, *, names: Collection[str] = ()) -> Fix | None:
    """The entries for these violations, in the order they were met; `None` when no grant would cure any.

    A credential store is withheld: named, never suggested. A write whose
    directory could not be granted whole (it is or holds a wall), or whose name is no text, has no entry.

    Args:
        counted: the violations' accesses.
        boundary: what they were compared with.
        names: paths whose own grant is the cure, whatever they are.
    """
    reads: list[str] = []
    writes: list[str] = []
    named: list[str] = []
    withheld: list[str] = []
    for access, kind in counted:
        if boundary.store(access.path) is not None:
            withheld.append(access.path)
        elif not spelling.writable_down(access.path):
            continue
        elif kind == "read":
            reads.append(access.path)
        elif access.refused or boundary.executed(access.path):
            continue  # no grant gives it
        elif access.path in names:
            named.append(access.path)
        elif not boundary.refuses_writing(directory := writable(access, boundary)):
            writes.append(directory)
    writes = _outermost(writes)
    named = [path for path in _outermost(named) if not _covered(path, writes)]
    reads = [path for path in _outermost(reads) if not _covered(path, (*writes, *named))]
    if not reads and not writes and not named:
        return None
    return Fix(
        allow=FixPaths(
            read=_spelled((spelling.entry(path, boundary) for path in reads), boundary),
            write=_spelled(
                (
                    *(spelling.entry(path, boundary, directory=True) for path in writes),
                    *(spelling.entry(path, boundary) for path in named),
                ),
                boundary,
            ),
        ),
        inputs=_inputs(reads, boundary) if boundary.cached else FixInputs(),
        withheld=_spelled(withheld, boundary),
    )


def writable(access: Access, boundary: Boundary) -> str:
    """The directory whose grant would have let a write pass; never one above the project for the project itself."""
    itself = access.intent is Intent.MKDIR or access.path == boundary.project
    return access.path if itself else paths.parent(access.path)


def _inputs(reads: Iterable[str], boundary: Boundary) -> FixInputs:
    files: list[str] = []
    workspace_files: list[str] = []
    for path in reads:
        nested = any(paths.at_or_under(path, other) for other in boundary.nested)
        if paths.under(path, boundary.project) and not nested:
            files.append(spelling.from_project(path, boundary))
        elif paths.under(path, boundary.workspace):
            workspace_files.append(spelling.from_root(path, boundary))
    return FixInputs(files=_spelled(files, boundary), workspace_files=_spelled(workspace_files, boundary))


def _outermost(found: Iterable[str]) -> list[str]:
    distinct = list(dict.fromkeys(found))
    return [path for path in distinct if not any(paths.under(path, other) for other in distinct)]


def _covered(path: str, directories: Iterable[str]) -> bool:
    return any(paths.at_or_under(path, directory) for directory in directories)


def _spelled(entries: Iterable[str], boundary: Boundary) -> tuple[str, ...]:
    return tuple(dict.fromkeys(boundary.mask(entry) for entry in entries))
