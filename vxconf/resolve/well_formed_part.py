"""The well-formed part of a task that has mistakes, so that one mistake does not hide the next. Pure.

A task with mistakes is never run. Its well-formed part is only judged and explained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vxconf.diagnostics.diagnostic import dotted
from vxconf.schema import _generated_validator

if TYPE_CHECKING:
    from collections.abc import Collection

    from vxconf.diagnostics.diagnostic import FieldPath

_BLOCK = ("exec", "sandbox")
# lists whose entries are known by their index in the file, so that an entry at fault keeps its place
_KEPT = frozenset({"read", "write", "network", "systemInfo", "unixSockets", "machLookup"})


def well_formed_part(name: str, task: object, mistakes: Collection[str]) -> dict[str, Any]:
    """The data of a task without what is at fault; an entry at fault is `None` where its place counts.

    Args:
        name: the task's name.
        task: the task's data as parsed.
        mistakes: the dotted paths of the mistakes that the schema and the host patterns found.
    """
    path = ("tasks", name)
    found: Any = _without(task, path, mistakes) if isinstance(task, dict) else {}
    run = found.get("exec")
    if isinstance(run, dict):
        if dotted((*path, *_BLOCK)) in mistakes:
            run["sandbox"] = {}  # it was meant to be a block
        run.setdefault("command", "")
    return found if _passes(found) else {}


def _without(value: Any, path: FieldPath, mistakes: Collection[str]) -> Any:
    if isinstance(value, dict):
        inner = ((key, one, (*path, key)) for key, one in value.items())
        return {key: _without(one, at, mistakes) for key, one, at in inner if dotted(at) not in mistakes}
    if isinstance(value, list):
        entries = [None if dotted((*path, index)) in mistakes else entry for index, entry in enumerate(value)]
        return entries if path[-1] in _KEPT else [entry for entry in entries if entry is not None]
    return value


def _passes(task: dict[str, Any]) -> bool:
    """Whether what is left is what the schema takes; a mistake without a place of its own would still be in it."""
    run = task.get("exec")
    whole = _without_gaps(task | ({"exec": run | {"command": run["command"] or "true"}} if run is not None else {}))
    try:
        _generated_validator.validate({"tasks": {"task": whole}})
    except _generated_validator.Invalid:
        return False
    return True


def _without_gaps(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_gaps(one) for key, one in value.items()}
    return [entry for entry in value if entry is not None] if isinstance(value, list) else value
