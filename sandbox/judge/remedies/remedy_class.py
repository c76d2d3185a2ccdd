"""The cure of one denial. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import paths
from sandbox.contract.intents import Intent
from sandbox.judge import path_as_entry
from sandbox.judge.remedies.never_granted import never_granted
from sandbox.judge.remedies.one_time_names import makes_anew
from sandbox.planning.operations import Bind, Name, Names

if TYPE_CHECKING:
    from sandbox.contract.results import Access, DenialClass
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.is_it_a_denial import Denial


def classify(access: Access, kind: Denial, boundary: Boundary) -> DenialClass:
    """The cure of a denial: see `sandbox.contract.results.DenialClass`."""
    path = access.path
    if boundary.store(path) is not None:
        return "credential"
    if access.refused or (kind == "write" and boundary.obeyed(path)) or not path_as_entry.writable_down(path):
        return "tool-fault"
    if boundary.declared.maker(path) is not None and (kind == "write" or not access.exists):
        return "run-upstream"
    if kind == "read":
        # A grant of a path that is not there shows nothing, however often it is looked for.
        return "grant" if access.exists else "ignore"
    return _classify_write(access, boundary)


def _classify_write(access: Access, boundary: Boundary) -> DenialClass:
    path = access.path
    if boundary.temporary(path):
        return "use-tmpdir"
    if meant(path, boundary) is not None:
        return "tool-fault"
    if boundary.output(path) is None and makes_anew(access, boundary) is not None:
        return "ignore"
    if boundary.refuses_writing(writable(access, boundary)) and not nameable(path, boundary):
        return "tool-fault"
    return "grant"


def writable(access: Access, boundary: Boundary) -> str:
    """The directory whose grant would have let a write pass; never one above the project for the project itself."""
    itself = access.intent is Intent.MKDIR or access.path == boundary.project
    return access.path if itself else paths.parent(access.path)


def makes_itself(access: Access, boundary: Boundary) -> bool:
    """Whether an access makes a directory the host has not: a mount would stand where `mkdir` wants to make it."""
    return access.intent is Intent.MKDIR and not access.exists and nameable(access.path, boundary)


def nameable(path: str, boundary: Boundary) -> bool:
    """Whether a write grant of this name alone can be given."""
    held = (boundary.project, boundary.workspace, boundary.home, *(wall.path for wall in boundary.walls))
    closed = any(wall.closed and paths.at_or_under(path, wall.path) for wall in boundary.walls)
    return boundary.served and not closed and not any(paths.at_or_under(place, path) for place in held)


def meant(path: str, boundary: Boundary) -> str | None:
    """The path in the project a write at the workspace root was meant for: one that its write grants cover."""
    if boundary.workspace == boundary.project or not paths.under(path, boundary.workspace):
        return None
    if paths.under(path, boundary.project):
        return None
    there = paths.join(boundary.project, paths.relative(path, boundary.workspace))
    return there if any(_covers(operation, there) for operation in boundary.plan.operations) else None


def _covers(operation: object, path: str) -> bool:
    match operation:
        case Bind(writable=True, path=place) | Name(path=place):
            return paths.at_or_under(path, place)
        case Names(path=place):
            return paths.under(path, place)
        case _:
            return False


def installation(path: str, boundary: Boundary) -> str:
    """The entry for the directory a program was installed into with what it needs; itself where it stands alone."""
    prefix = paths.parent(paths.parent(path))
    shared = (boundary.home, paths.join(boundary.home, ".local"))
    whole = paths.name(paths.parent(path)) == "bin" and prefix not in shared
    return path_as_entry.entry(prefix if whole else path, boundary, directory=whole)


class OutsideWrite(NamedTuple):
    """The grant for a write outside the project.

    Attributes:
        entry: as the project's file would spell it.
        opened: what it opens, for people.
    """

    entry: str
    opened: str


def outside_write(access: Access, boundary: Boundary) -> OutsideWrite | None:
    """The grant for a write outside the project: of its directory where that can be given, else of its name."""
    path, directory = access.path, writable(access, boundary)
    if not boundary.refuses_writing(directory) and never_granted(directory, "write", boundary) is None:
        entry = path_as_entry.entry(directory, boundary, directory=True)
        return OutsideWrite(entry, f"{path_as_entry.shown(directory)} and everything in it")
    # A name outside the project can be granted where something has it already.
    if nameable(path, boundary) and access.exists and never_granted(path, "write", boundary) is None:
        return OutsideWrite(path_as_entry.entry(path, boundary), path_as_entry.shown(path))
    return None
