"""From a request to the operations of a Linux sandbox. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.contract.errors import Refusal, RequestRefused
from sandbox.planning.held_directories_without_fuse import hold
from sandbox.planning.hidden_places import hide
from sandbox.planning.mark_tree import MarkTree
from sandbox.planning.operations import Name, Names, Origin
from sandbox.planning.path_reach import Plan
from sandbox.planning.read_grants import LINK, ReadGrants
from sandbox.planning.served_and_staged_names import GrantedNames
from sandbox.planning.uncovered_write_grants import protected, write_places
from sandbox.request.protected_names import ProtectedNames

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.base.host_facts import Files
    from sandbox.planning.uncovered_write_grants import WritePlace
    from sandbox.request.request import Request
    from sandbox.request.write_grant_shapes import WriteGrant

_OUTSIDE = Origin(reason="what is outside the workspace may be read")
_TEMP = Origin(reason="the task's own temporary directory")
_PROJECT = Origin(reason="the task starts in its project's directory")


def plan(
    request: Request, files: Files, *, temp: str | None = None, served: bool = True, existing: bool = True
) -> Plan:
    """Lay out the file system of one attempt; nothing is created.

    Args:
        request: what may be reached.
        files: the host's file system, as it is now.
        temp: the task's own temporary directory, canonical.
        served: whether something serves granted names; where nothing does, their directories are held.
        existing: whether existing protected names are looked for, at any depth, so that the plan lays them over; no
            refusal depends on it.

    Raises:
        RequestRefused: with every reason found, in the order of the config.
    """
    config = request.config
    tree = MarkTree(files)
    hide(request, files, tree, temp)
    tree.way(config.project, _PROJECT)
    if temp is not None:
        tree.write(temp, _TEMP, directory=True)
    grants, refused = request.writes_now(files)
    executed = _write(request, files, tree, grants, served=served, existing=existing)
    if not served:
        refused = (*refused, *hold(request, files, tree, executed))
    reads = ReadGrants(request, files, tree)
    for index, entry in enumerate(config.allow_read):
        reads.grant(entry, f"allowRead[{index}]")
    for implied in request.reads:
        if files.kind(implied.path) in {Kind.DIRECTORY, Kind.FILE}:
            tree.read(implied.path, Origin(reason=implied.reason))
    reads.links()
    for place, target in request.links:
        tree.link(place, target, LINK)
    if reads.refusals or refused:
        raise RequestRefused((*reads.refusals, *refused))
    try:
        operations = tree.operations(_OUTSIDE, executed)
    except Refusal as refusal:
        raise RequestRefused((refusal,)) from refusal
    return Plan(
        operations=operations,
        workspace=config.workspace,
        project=config.project,
        inert=tuple(reads.inert),
        executed=executed,
    )


def _write(
    request: Request, files: Files, tree: MarkTree, grants: tuple[WriteGrant, ...], *, served: bool, existing: bool
) -> ProtectedNames:
    """Grant every write grant, but for those another covers; the names that stay protected."""
    places = write_places(request, files, grants)
    named = _serve(tree, places)
    names = [one.path for one in named if isinstance(one, Name)]
    heads = tuple(dict.fromkeys(one.path for one in named if isinstance(one, Names)))
    granted = GrantedNames(named, executed=ProtectedNames(heads=heads, git_config=request.config.git_config))
    bound = _bind(tree, places, granted)
    executed = protected(request, files, grants, bound=bound, names=names, heads=heads, search=existing)
    # The server of names keeps protected names in them as they are. Where nothing serves names, mounts have to.
    over = bound if served else [*bound, *(path for path in names if files.kind(path) is Kind.DIRECTORY)]
    _pin(files, tree, over, executed)
    return executed


def _serve(tree: MarkTree, places: Iterable[WritePlace]) -> list[Name | Names]:
    """Grant names and patterns; the operation of each."""
    named: list[Name | Names] = []
    for place in places:
        if isinstance(place.named, Name):
            tree.name(place.named.path, place.origin, make=place.grant.make)
        elif place.named is not None:
            tree.pattern(place.named, make=place.grant.make, instead=place.grant.instead)
        named += [place.named] if place.named is not None else []
    return named


def _bind(tree: MarkTree, places: Iterable[WritePlace], granted: GrantedNames) -> list[str]:
    """Grant directories and files, but for those inside granted names; the paths that were granted."""
    bound: list[str] = []
    for place in places:
        grant = place.grant
        if place.named is not None:
            continue
        if any(map(granted.granted, paths.parents(grant.path))):
            tree.make(grant.make, place.origin)
            continue
        bound.append(grant.path)
        tree.write(grant.path, place.origin, directory=grant.kind == "directory", make=bool(grant.make))
    return bound


def _pin(files: Files, tree: MarkTree, over: list[str], executed: ProtectedNames) -> None:
    """Keep protected names as they are in places that are mounted writable."""
    for path in sorted(executed.kept):
        # A link cannot be mounted over; the place it leads to can.
        real = paths.canonical(path, files)
        if files.kind(real) in {Kind.FILE, Kind.DIRECTORY}:
            # The outermost grant holds the path: a grant inside another is no mount of its own.
            holder = min((grant for grant in over if paths.under(real, grant)), key=len, default=None)
            if holder is not None:
                tree.pin(real, Origin(reason=_kept_because(path, executed)), below=holder)


def _kept_because(path: str, executed: ProtectedNames) -> str:
    name = paths.name(path)
    if executed.says_grants(path):
        return f"{name} says what tasks are granted"
    return f"other programs execute what {name} says"
