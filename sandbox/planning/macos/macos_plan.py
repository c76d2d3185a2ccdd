"""From a request to the rules of a macOS profile. Pure.

The rules come in this order: the system's, those about paths, a tail, and those of the block's other fields. The tail
holds rules that nothing outranks: protected names, and denials no rule allows again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.contract.errors import RequestRefused
from sandbox.planning.macos.macos_path_reach import MacPlan
from sandbox.planning.macos.network_rules import network_rules
from sandbox.planning.macos.path_rules import Marks
from sandbox.planning.macos.pattern_regex import aliases, carriers, executed
from sandbox.planning.macos.process_start_rules import device_rules, start_rules
from sandbox.planning.macos.profile_rules import EXEC, READ, WRITE, At, Below, Expression, Filter, Rule
from sandbox.planning.macos.service_rules import service_rules, unusable_names
from sandbox.planning.macos.terminal_rules import others_terminals, pty_rules
from sandbox.planning.macos.unix_socket_rules import unix_socket_rules
from sandbox.planning.operations import Make, Name, Names, Origin
from sandbox.planning.uncovered_write_grants import protected, write_places
from sandbox.request.protected_names import CARRIERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.base.host_facts import Files
    from sandbox.planning.operations import Operation
    from sandbox.request.protected_names import ProtectedNames
    from sandbox.request.request import Request
    from sandbox.request.write_grant_shapes import WriteGrant

_TEMP = Origin(reason="the task's own temporary directory")
_PROJECT = Origin(reason="the task starts in its project's directory")
_NAMED = Origin(reason="a grant names the very file that says what tasks are granted")
_CARRIED = ", ".join(sorted(CARRIERS))
_EXECUTED = Origin(reason="other programs execute what these names say")
_MOVED = Origin(reason="a directory that holds such a name is neither moved away nor into place")


def plan(
    request: Request,
    files: Files,
    *,
    temp: str | None = None,
    ports: tuple[int, ...] = (),
    reached: tuple[int, ...] = (),
    sockets: Iterable[str] = (),
) -> MacPlan:
    """Lay down the rules of one attempt; nothing is created.

    Args:
        request: what may be reached.
        files: the host's file system, as it is now.
        temp: the task's own temporary directory, canonical.
        ports: on which the task's own proxy listens; none before it does.
        reached: the host's loopback ports that are granted.
        sockets: directories and files in which sockets are the task's own.

    Raises:
        RequestRefused: with every reason found, in the order of the config.
    """
    config = request.config
    grants, refused = request.writes_now(files)
    marks = _marked(request, files, temp)
    written = _write(request, files, marks, grants)
    _read(request, files, marks)
    for names in written.patterns:
        marks.write_pattern(names)
    problems = (*marks.refusals, *refused, *unusable_names(config))
    if problems:
        raise RequestRefused(problems)
    return MacPlan(
        rules=(
            *start_rules(hermetic=config.hermetic),
            others_terminals(),
            *marks.rules(),
            *_tail(request, written.executed, files),
            *device_rules(),
            *network_rules(config, ports=ports, reached=reached),
            *unix_socket_rules(config, sockets),
            *service_rules(config),
            *pty_rules(config),
        ),
        workspace=config.workspace,
        project=config.project,
        operations=written.operations,
        inert=tuple(marks.inert),
        executed=written.executed,
        pending="" if ports else "outbound to the ports of the task's own proxy, which are chosen when it starts",
    )


def _marked(request: Request, files: Files, temp: str | None) -> Marks:
    """The marks of every task, before its grants."""
    marks = Marks(request, files)
    marks.hide()
    marks.enter(request.config.project, _PROJECT, itself_too=True)
    if temp is not None:
        marks.grant(temp, _TEMP, (READ, WRITE, EXEC))
    return marks


def _read(request: Request, files: Files, marks: Marks) -> None:
    """Mark every read grant, and everything that is read without one."""
    for index, entry in enumerate(request.config.allow_read):
        marks.read(entry, f"allowRead[{index}]")
    for implied in request.reads:
        if files.kind(implied.path) in {Kind.DIRECTORY, Kind.FILE}:
            marks.grant(implied.path, Origin(reason=implied.reason), (READ, EXEC))
    for place, _ in request.links:
        marks.link(place)


class _Written(NamedTuple):
    """The consequences of the write grants.

    Attributes:
        operations: directories to make, and the names they are for.
        patterns: of names; their rules need to know what else is granted.
        executed: the names no task makes or changes.
    """

    operations: tuple[Operation, ...]
    patterns: tuple[Names, ...]
    executed: ProtectedNames


def _write(request: Request, files: Files, marks: Marks, grants: tuple[WriteGrant, ...]) -> _Written:
    """Mark every write grant, but for those another covers."""
    operations: list[Operation] = []
    places = write_places(request, files, grants)
    for place in places:
        if place.grant.make:
            operations.append(Make(path=place.grant.make, origin=place.origin, passing=place.named is not None))
        if place.named is not None:
            operations.append(place.named)
        if not isinstance(place.named, Names):
            marks.grant(place.grant.path, place.origin, (READ, WRITE, EXEC))
    patterns = tuple(place.named for place in places if isinstance(place.named, Names))
    executed = protected(
        request,
        files,
        grants,
        bound=(place.grant.path for place in places if place.named is None),
        names=(place.grant.path for place in places if isinstance(place.named, Name)),
        heads=(names.path for names in patterns),
    )
    return _Written(tuple(operations), patterns, executed)


def _tail(request: Request, names: ProtectedNames, files: Files) -> Iterator[Rule]:
    """The rules that nothing outranks."""
    config = request.config
    expressions: list[Filter] = []
    moved: list[Filter] = []
    for anchor in _anchors(names, config.project, request.workspace_root):
        for text in executed(anchor, git_config=names.git_config):
            about = f"names other programs execute, in {anchor}"
            expressions.append(Expression(text=text, about=about))
        moved.append(Expression(text=carriers(anchor), about=f"every {_CARRIED} in {anchor}"))
    for path in sorted(names.kept):
        for place in dict.fromkeys((path, paths.canonical(path, files))):
            expressions.append(Below(path=place))
            above = (one for one in paths.parents(place) if any(paths.under(one, root) for root in names.roots))
            moved.extend(At(path=one) for one in above)
    if expressions:
        filters = tuple(dict.fromkeys(expressions))
        yield Rule(action="deny", operations=(WRITE,), filters=filters, origin=_EXECUTED)
        moves = ("file-write-create", "file-write-unlink")
        yield Rule(action="deny", operations=moves, filters=tuple(dict.fromkeys(moved)), origin=_MOVED)
    if names.named:
        own = tuple(At(path=path) for path in names.named)
        yield Rule(action="allow", operations=(WRITE,), filters=own, origin=_NAMED)
    for wall in request.walls:
        if wall.closed:
            closed = (
                Below(path=wall.path),
                Expression(text=aliases(wall.path), about=f"every spelling of {wall.path}"),
            )
            origin = Origin(reason=f"{wall.reason} is a wall")
            yield Rule(action="deny", operations=(WRITE,), filters=closed, origin=origin)


def _anchors(names: ProtectedNames, project: str, workspace: str) -> tuple[str, ...]:
    """Directories that all writable places lie below, with no protected name on the way to one."""
    found = dict.fromkeys(
        next((above for above in (project, workspace) if paths.at_or_under(place, above)), place)
        for place in (*names.roots, *names.heads)
    )
    return tuple(one for one in found if not any(paths.under(one, other) for other in found))
