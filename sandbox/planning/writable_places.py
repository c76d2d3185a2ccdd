"""The places of a plan beneath which a task may change something, for a wall that knows places and no mounts. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from sandbox.base import paths
from sandbox.planning.operations import Bind, Cover, Name, Names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.planning.operations import Operation

#: `everything`: any change; `contents`: what is in files, pipes and devices; `names`: names are made, removed, moved.
Changes = Literal["everything", "contents", "names"]

# the sandbox's own devices, terminals and shared memory; nothing of the host's lies there but the null device's kind
_DEVICES = "/dev"


class WritablePlace(NamedTuple):
    """A place, and what may be changed at it and beneath it."""

    path: str
    changes: Changes


def writable_places(operations: Iterable[Operation], *, masked: bool, answered: bool) -> tuple[WritablePlace, ...]:
    """The places of a plan that a task may change, each once for each kind of change.

    Args:
        operations: parents before children.
        masked: whether a mask stands, which answers itself for names in it; what it does not show is not changed there.
        answered: whether the warden opens for the task what it may write beneath a directory of granted names.
    """
    found = [WritablePlace(_DEVICES, "everything")]
    covers: list[str] = []
    for operation in operations:
        match operation:
            case Bind(path=path, directory=directory, writable=True):
                found.append(WritablePlace(path, "everything" if directory else "contents"))
            case Cover(path=path) if masked and not any(paths.at_or_under(path, above) for above in covers):
                covers.append(path)
                found.append(WritablePlace(path, "names"))
            case _:
                found += _of_names(operation, "names" if answered else "everything")
    return tuple(dict.fromkeys(found))


def _of_names(operation: Operation, changes: Changes) -> Iterator[WritablePlace]:
    """The directory that granted names stand in: a file that is yet to be made is no place."""
    if isinstance(operation, Name):
        yield WritablePlace(paths.parent(operation.path), changes)
    elif isinstance(operation, Names):
        yield WritablePlace(operation.path, changes)
