"""Marks on paths, as a plan collects them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sandbox.planning.operations import Names, Origin

#: The ways to hide. `content`: a directory stays without its content. `absent`: a name does not exist. `blank`: a name
#: stays, with nothing in it. `over`: as `blank`, laid over even where a cover around it would be surer.
Hide = Literal["content", "absent", "blank", "over"]


@dataclass(slots=True)
class MarkedPath:
    """Every mark on one path."""

    children: dict[str, MarkedPath] = field(default_factory=dict)
    read: Origin | None = None
    write: Origin | None = None
    way: Origin | None = None
    link: tuple[str, Origin] | None = None
    hide: Hide | None = None
    hidden_by: Origin | None = None
    always: bool = False  # the cover is laid whether or not anything hides it already
    made: bool = False  # a directory by the time the plan is carried out
    name: Origin | None = None  # served, whatever it becomes
    patterns: tuple[Names, ...] = ()  # of names served, from here on
    fresh: bool = False  # what stands there is the sandbox's own
    leads: Origin | None = None  # something is placed below, for this reason
    pinned: Origin | None = None  # read-only though what is around it may be written
    holds: Origin | None = None  # something below is pinned
    held: Origin | None = None  # writable for the names granted in it

    @property
    def granted(self) -> Origin | None:
        """The grant that names this very path."""
        return self.write or self.read
