"""The spots of names in directories in which granted names may stand: what each means, and where it is. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple


class NameKind(Enum):
    """The meaning of a name; as for the mask (`sandbox.linux.mask.served.name_lookup`)."""

    PLACED = auto()
    HOST = auto()
    STAGED = auto()
    WAY = auto()
    NOTHING = auto()


@dataclass(slots=True)
class Shown:
    """A name the task sees: what it is, and which file was there when it was last looked at."""

    kind: NameKind
    key: tuple[int, int]
    directory: bool


@dataclass(slots=True)
class Mixed:
    """A directory in which granted names may stand.

    Attributes:
        path: as the task sees it.
        cover: a writable descriptor of it.
        placed: names that the plan places in it.
        names: what else the task sees in it.
    """

    path: str
    cover: int
    placed: frozenset[str]
    names: dict[str, Shown] = field(default_factory=dict)


class NameSpot(NamedTuple):
    """A name, and the directory of the host's or of the staging area that holds it, or would.

    Attributes:
        fd: that directory, valid until the call is answered; -1 for `PLACED` and `NOTHING`, and where it is gone.
        name: the name in it.
        path: as the task sees it.
        mixed: the directory that shows the name, `None` for a name below a granted or staged directory.
        top: the granted or staged directory above such a name, with which one mount is shared; else an empty string.
        exists: whether the task sees something there.
    """

    kind: NameKind
    fd: int
    name: str
    path: str
    mixed: Mixed | None
    top: str
    exists: bool
