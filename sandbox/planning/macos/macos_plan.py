"""From a request to the rules of a macOS profile: the system's, those about paths, a tail, the block's other fields.

The tail holds what nothing outranks: names other programs execute, and denials no rule allows again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.contract.errors import RequestRefused
from sandbox.planning.macos import system_rules
from sandbox.planning.macos.path_regex import aliases, carriers, executed
from sandbox.planning.macos.path_rules import Marks
from sandbox.planning.macos.profile_rules import EXEC, READ, WRITE, At, Below, Expression, Filter, MacPlan, Rule
from sandbox.planning.operations import Make, Name, Names, Operation, Origin
from sandbox.request.protected_names import ProtectedNames, existing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.base.host_facts import Files
    from sandbox.request.request import Request
    from sandbox.request.write_grants import WriteGrant

_TEMP = Origin(reason="the task's own temporary directory")
_PROJECT = Origin(reason="the task starts in its project's directory")
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
        ports: on which the task's own front listens; none before it does.
        reached: the host's loopback ports that are granted.
        sockets: directories and files in which sockets are the task's own.

    Raises:
        RequestRefused: with every reason found, in the order of the config.
    """
    config = request.config
    grants, refused = request.writes_now(files)
    marks = Marks(request, files)
    marks.hide()
    marks.enter(config.project, _PROJECT, itself_too=True)
    if temp is not None:
        marks.grant(temp, _TEMP, (READ, WRITE, EXEC))
    granted = _Writes(request, files)
    granted.take(marks, grants)
    for index, entry in enumerate(config.allow_read):
        marks.read(entry, f"allowRead[{index}]")
    for implied in request.reads:
        if files.kind(implied.path) in {Kind.DIRECTORY, Kind.FILE}:
            marks.grant(implied.path, Origin(reason=implied.reason), (READ, EXEC))
    for place, _ in request.links:
        marks.link(place)
    for names in granted.patterns:
        marks.write_pattern(names)
    problems = (*marks.refusals, *refused, *system_rules.unusable(config))
    if problems:
        raise RequestRefused(problems)
    return MacPlan(
        rules=(
            *system_rules.start(hermetic=config.hermetic),
            *marks.rules(),
            *_tail(request, granted.executed, files),
            *system_rules.devices(),
            *system_rules.own(config, ports=ports, reached=reached, sockets=sockets),
        ),
        workspace=config.workspace,
        project=config.project,
        operations=tuple(granted.operations),
        inert=tuple(marks.inert),
        executed=granted.executed,
        pending="" if ports else "outbound to the ports of the task's own front, which are chosen when it starts",
    )


class _Writes:
    """Write grants, and what has to be on the host for them.

    Attributes:
        operations: directories to make, and the names they are for.
        patterns: of names; their rules need to know what else is granted.
        executed: the names no task makes or changes.
    """

    def __init__(self, request: Request, files: Files) -> None:
        self.operations: list[Operation] = []
        self.patterns: list[Names] = []
        self.executed = ProtectedNames()
        self._request = request
        self._files = files

    def take(self, marks: Marks, grants: tuple[WriteGrant, ...]) -> None:
        """Every grant, but for those another covers."""
        files = self._files
        kept = {read.path for read in self._request.reads if files.kind(read.path) is Kind.DIRECTORY}
        whole = [grant.path for grant in grants if grant.kind == "directory"]
        bound: list[str] = []
        names: list[str] = []
        for grant in grants:
            origin = Origin(field=grant.field)
            served = grant.kind in {"name", "pattern"}
            if served and any(paths.at_or_under(grant.path, directory) for directory in whole):
                continue
            if grant.make:
                self.operations.append(Make(path=grant.make, origin=origin, passing=served))
            if grant.kind == "pattern":
                without = {*grant.without, *(path for path in kept if paths.under(path, grant.path))}
                every = tuple(sorted(without))
                one = Names(path=grant.path, pattern=grant.pattern, without=every, origin=origin)
                self.patterns.append(one)
                self.operations.append(one)
                continue
            if served:
                self.operations.append(Name(path=grant.path, origin=origin))
            (names if served else bound).append(grant.path)
            marks.grant(grant.path, origin, (READ, WRITE, EXEC))
        roots = tuple(dict.fromkeys((*bound, *names)))
        config = self._request.config
        self.executed = ProtectedNames(
            roots=roots,
            heads=tuple(dict.fromkeys((*(one.path for one in self.patterns), *map(paths.parent, names)))),
            git_config=config.git_config,
            kept=existing(roots, self._request.workspace_root, files, git_config=config.git_config),
        )


def _tail(request: Request, names: ProtectedNames, files: Files) -> Iterator[Rule]:
    """What nothing outranks."""
    config = request.config
    expressions: list[Filter] = []
    moved: list[Filter] = []
    for anchor in _anchors(names, config.project, request.workspace_root):
        for text in executed(anchor, git_config=names.git_config):
            about = f"names other programs execute, in {anchor}"
            expressions.append(Expression(text=text, about=about))
        moved.append(Expression(text=carriers(anchor), about=f"every .git and .claude in {anchor}"))
    for path in names.kept:
        for place in dict.fromkeys((path, paths.canonical(path, files))):
            expressions.append(Below(path=place))
            above = (one for one in paths.parents(place) if any(paths.under(one, root) for root in names.roots))
            moved.extend(At(path=one) for one in above)
    if expressions:
        filters = tuple(dict.fromkeys(expressions))
        yield Rule(action="deny", operations=(WRITE,), filters=filters, origin=_EXECUTED)
        moves = ("file-write-create", "file-write-unlink")
        yield Rule(action="deny", operations=moves, filters=tuple(dict.fromkeys(moved)), origin=_MOVED)
    for wall in request.walls:
        if wall.closed:
            closed = (
                Below(path=wall.path),
                Expression(text=aliases(wall.path), about=f"every spelling of {wall.path}"),
            )
            origin = Origin(reason=f"{wall.reason} is a wall")
            yield Rule(action="deny", operations=(WRITE,), filters=closed, origin=origin)


def _anchors(names: ProtectedNames, project: str, workspace: str) -> tuple[str, ...]:
    """Directories below which all writable places lie, and no name on the way to one is such a name."""
    found = dict.fromkeys(
        next((above for above in (project, workspace) if paths.at_or_under(place, above)), place)
        for place in (*names.roots, *names.heads)
    )
    return tuple(one for one in found if not any(paths.under(one, other) for other in found))
