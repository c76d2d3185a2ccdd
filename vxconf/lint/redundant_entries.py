"""The test whether an entry of a block is redundant: without it the task has the same access to every path; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.errors import RequestRefused
from sandbox.planning.linux_plan import plan
from sandbox.planning.operations import Make, Name, Names
from vxconf.resolve.judge_block import judge_block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.base.host_facts import Files
    from sandbox.planning.path_reach import Plan
    from sandbox.request.request import Request
    from vxconf.document.document import Document
    from vxconf.resolve.judge_block import JudgedBlock
    from vxconf.resolve.task_model import Entry, SandboxModel

#: A name at which no plan places anything; it stands for every name without a place of its own.
_OTHER = "\x01"


class RedundantEntries:
    """The redundant entries of one block, found by comparing its plan with the plan without the entry."""

    def __init__(self, block: SandboxModel, judged: JudgedBlock, document: Document) -> None:
        """Takes the block as the file says it, the block judged, and the file that holds it."""
        self._block = block
        self._judged = judged
        self._document = document
        self._whole = _planned(judged.bare, judged.files)

    def __contains__(self, entry: Entry) -> bool:
        """Whether no access changes when an entry of `allow.read` or `allow.write` is removed."""
        if self._whole is None:
            return False
        block, files = self._block, self._judged.files
        rest = block._replace(
            read=tuple(one for one in block.read if one != entry),
            write=tuple(one for one in block.write if one != entry),
        )
        left = _planned(judge_block(rest, self._document, self._judged.where).bare, files)
        return left is not None and _same(self._whole, left, files)


def _planned(request: Request | None, files: Files) -> Plan | None:
    try:
        return plan(request, files) if request is not None else None
    except RequestRefused:
        return None


def _same(one: Plan, other: Plan, files: Files) -> bool:
    """Whether two plans give the same access to each place of theirs, and to a name without a place beside it."""
    if set(_by_name(one)) != set(_by_name(other)) or set(one.executed.kept) != set(other.executed.kept):
        return False
    placed = dict.fromkeys(
        operation.path for operation in (*one.operations, *other.operations) if not isinstance(operation, Make)
    )
    return all(
        one.access(path, files) == other.access(path, files)
        for place in placed
        for path in (place, paths.join(place, _OTHER))
    )


def _by_name(plan_: Plan) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for operation in plan_.operations:
        if isinstance(operation, Names):
            yield operation.path, operation.pattern, operation.without
        elif isinstance(operation, Name):
            yield operation.path, "", ()
