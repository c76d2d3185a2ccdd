"""The places and names that a request's write grants give on either platform, and what is protected in them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.planning.operations import Name, Names, Origin
from sandbox.request.find_protected_names import existing
from sandbox.request.protected_names import POLICY, ProtectedNames, is_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.base.host_facts import Files
    from sandbox.request.request import Request
    from sandbox.request.write_grant_shapes import WriteGrant


@dataclass(frozen=True, slots=True)
class WritePlace:
    """One write grant that no other one covers.

    Attributes:
        named: the operation of a grant of a name or a pattern; `None` for a directory or a file.
    """

    grant: WriteGrant
    named: Name | Names | None

    @property
    def origin(self) -> Origin:
        """The origin of everything that follows from the grant."""
        return Origin(field=self.grant.field)


def write_places(request: Request, files: Files, grants: tuple[WriteGrant, ...]) -> tuple[WritePlace, ...]:
    """Every write grant in the order of the config, but for names and patterns in a directory that is granted whole.

    Args:
        request: what may be reached.
        files: the host's file system, as it is now.
        grants: from `Request.writes_now`.
    """
    # A linked package is a place of its own: a pattern that begins around it stays out of it.
    packages = {read.path for read in request.reads if files.kind(read.path) is Kind.DIRECTORY}
    whole = [grant.path for grant in grants if grant.kind == "directory"]
    found: list[WritePlace] = []
    for grant in grants:
        if grant.kind not in {"name", "pattern"}:
            found.append(WritePlace(grant, None))
        elif not any(paths.at_or_under(grant.path, directory) for directory in whole):
            found.append(WritePlace(grant, _named(grant, packages)))
    return tuple(found)


def _named(grant: WriteGrant, packages: Iterable[str]) -> Name | Names:
    origin = Origin(field=grant.field)
    if grant.kind == "name":
        return Name(path=grant.path, origin=origin)
    without = {*grant.without, *(path for path in packages if paths.under(path, grant.path))}
    return Names(path=grant.path, pattern=grant.pattern, without=tuple(sorted(without)), origin=origin)


def protected(
    request: Request,
    files: Files,
    grants: Iterable[WriteGrant],
    *,
    bound: Iterable[str],
    names: Iterable[str],
    heads: Iterable[str],
    search: bool = True,
) -> ProtectedNames:
    """The protected names in the places a task may write.

    Args:
        request: what may be reached.
        files: the host's file system, as it is now.
        grants: every write grant, from `Request.writes_now`.
        bound: directories and files that may be written.
        names: paths granted by name.
        heads: directories that patterns begin in.
        search: whether those that exist are looked for.
    """
    names, git_config = tuple(names), request.config.git_config
    roots = tuple(dict.fromkeys((*bound, *names)))
    behind = frozenset(_behind_links(request, files))
    each = (one.path for one in grants if one.kind in {"name", "file"})
    named = tuple(path for path in each if is_policy(path) or path in behind)
    walls = tuple(wall.path for wall in (*request.walls, *request.stores))
    found = existing(roots, files, git_config=git_config, without=walls).names if search else ()
    return ProtectedNames(
        roots=roots,
        # A directory made beside a name may be moved into the name, with everything in it.
        heads=tuple(dict.fromkeys((*heads, *map(paths.parent, names)))),
        git_config=git_config,
        kept=behind.union(found).difference(named),
        policy=behind,
        named=named,
        without=walls,
    )


def _behind_links(request: Request, files: Files) -> Iterator[str]:
    """The files that say what tasks of this project, and of those around and inside it, are granted, behind links."""
    known = (request.config.project, request.workspace_root, *request.workspace.nested, *sorted(request.keyed or ()))
    for directory in dict.fromkeys(known):
        for name in POLICY:
            path = paths.join(directory, *name)
            real = paths.canonical(path, files)
            if real != path and files.kind(real) is Kind.FILE:
                yield real
