"""The directories that are held where nothing serves granted names, and why one cannot be held. Pure.

A held directory is bound writable, so that a granted name in it may be made, replaced and removed. Its other entries at
the start are laid over, hidden or read-only as they would be anyway. Held directories are weaker than served names. A
mount over a directory entry goes when the host renames over the entry, and there is none over an entry that comes
later. So an observer answers for a held directory at each call as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal
from sandbox.planning.operations import Name, Names, shown
from sandbox.planning.served_and_staged_names import GrantedNames

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.base.host_facts import Files
    from sandbox.planning.mark_tree import MarkTree
    from sandbox.request.protected_names import ProtectedNames
    from sandbox.request.request import Request
    from sandbox.request.walls import Wall


def hold(request: Request, files: Files, tree: MarkTree, executed: ProtectedNames) -> tuple[Refusal, ...]:
    """Mark every directory that holds granted names, or hits of a pattern; the reasons why some cannot be held."""
    served = tree.served
    granted = GrantedNames(served, executed=executed)
    refused: list[Refusal] = []
    for directory, operation in _holders(served, files, granted).items():
        if granted.served(directory):
            continue
        refusal, make = _judge(request, files, directory, operation)
        if refusal is not None:
            refused.append(refusal)
        else:
            tree.hold(directory, operation.origin, make=make)
    return tuple(refused)


def _holders(served: Iterable[Name | Names], files: Files, granted: GrantedNames) -> dict[str, Name | Names]:
    """The directories to hold, each with the first grant that needs it."""
    found: dict[str, Name | Names] = {}
    for operation in served:
        if isinstance(operation, Name):
            found.setdefault(paths.parent(operation.path), operation)
            continue
        found.setdefault(operation.path, operation)
        for directory in _of_hits(operation, files, granted):
            found.setdefault(directory, operation)
    return found


def _of_hits(names: Names, files: Files, granted: GrantedNames) -> Iterator[str]:
    """The directories that hold the present hits of a pattern, as far as no link leads there."""

    def walled(path: str) -> bool:
        return any(paths.at_or_under(path, wall) for wall in names.without)

    for directory in dict.fromkeys(map(paths.parent, globs.expand(names.pattern, files, skip=walled))):
        if granted.leads(directory) and paths.canonical(directory, files) == directory:
            yield directory


def _judge(
    request: Request, files: Files, directory: str, operation: Name | Names
) -> tuple[Refusal | None, tuple[str, ...]]:
    """The reason why a directory cannot be held, else the directories to make in it so that they can be laid over."""
    missing: list[str] = []
    for wall in (*request.walls, *request.stores):
        if paths.at_or_under(directory, wall.path):
            return _refusal(directory, "is" if directory == wall.path else "is in", wall, operation), ()
        if not paths.under(wall.path, directory):
            continue
        first = paths.join(directory, paths.parts(wall.path)[len(paths.parts(directory))])
        kind = files.kind(first)
        if kind is Kind.LINK:
            return _refusal(directory, "holds the link to", wall, operation), ()
        if kind is None and wall.closed:
            missing.append(first)
    return None, tuple(dict.fromkeys(missing))


def _refusal(directory: str, verb: str, wall: Wall, operation: Name | Names) -> Refusal:
    named = isinstance(operation, Name)
    grant = globs.escape(operation.path) if isinstance(operation, Name) else operation.pattern
    instead = f'write "{grant}/" for a directory' if named else "grant a directory, with a trailing slash"
    return Refusal(
        f'write grant "{grant}" needs /dev/fuse: its directory {shown(directory)} {verb} {wall.reason} {wall.path}',
        field=operation.origin.field,
        code=refusal_codes.WALLED,
        hint=f"make /dev/fuse available to this user, or {instead}",
    )
