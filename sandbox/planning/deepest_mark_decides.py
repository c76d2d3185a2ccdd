"""The rule for grants and walls inside one another: the deepest mark above a path decides about it. Pure.

At one place a grant beats a mark that hides, and a grant to write beats one to read. A pin in a
writable directory beats both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.contract.config import Reach

if TYPE_CHECKING:
    from sandbox.planning.operations import Origin
    from sandbox.planning.path_marks import MarkedPath


@dataclass(slots=True)
class LayoutStep:
    """One place still to be laid out.

    `laid` is what the directories above have put there: the reach of a real mount, or `HIDDEN` for the inside of a
    cover. `content` is what the marks above give it. `held` says whether its directory is held.
    """

    path: str
    node: MarkedPath
    laid: Reach
    content: Reach
    origin: Origin
    held: bool = False


def content_of(task: LayoutStep) -> tuple[Reach, Origin]:
    """The reach that the marks at a place and above it give, and the mark that decides."""
    node, content, origin = task.node, task.content, task.origin
    if node.hide is not None and node.hidden_by is not None:
        content, origin = Reach.HIDDEN, node.hidden_by
    if node.write is not None:
        content, origin = Reach.WRITE, node.write
    elif node.read is not None and content is Reach.HIDDEN:
        content, origin = Reach.READ, node.read
    if node.fresh and task.laid is Reach.HIDDEN:
        # The host's own `/dev` and `/proc` are nobody's to grant.
        content, origin = Reach.HIDDEN, task.origin
    if node.pinned is not None and content is Reach.WRITE:
        content, origin = Reach.READ, node.pinned
    return content, origin
