"""Notes on denials outside the project, which fail no task by themselves. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry
from sandbox.judge.hints.credential_hints import credentials
from sandbox.judge.remedies.never_granted import never_granted
from sandbox.judge.remedies.remedy_class import classify, installation, outside_write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sandbox.contract.results import Access
    from sandbox.judge.attempt_denials import Denied
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.is_it_a_denial import Denial


def hidden(found: Sequence[str], boundary: Boundary) -> list[Hint]:
    """Notes on existing paths that were read in vain; a credential store is named and never suggested."""
    kept = [path for path in found if boundary.store(path) is not None]
    plain = [path for path in found if path not in kept]
    notes = []
    closed = _never_granted(plain, "read", boundary)
    if plain:
        remedy = next((path for path in plain if path_as_entry.writable_down(path) and path not in closed), None)
        note = f"outside the project, the task looked for {path_as_entry.listed(plain)}"
        if remedy is not None:
            note += f": {path_as_entry.readable(remedy, boundary)} opens {path_as_entry.shown(remedy)}"
        notes.append(Hint(line=note, class_="grant"))
    return [*notes, *closed.values(), *credentials(kept)]


def _never_granted(found: Iterable[str], kind: Denial, boundary: Boundary) -> dict[str, Hint]:
    """A note for each of the first paths of which no grant is suggested, with the reason."""
    notes = {}
    for path in list(found)[: path_as_entry.NAMED]:
        why = never_granted(path, kind, boundary)
        if why is not None:
            notes[path] = Hint(line=f"{path_as_entry.shown(path)} {why.reason}: {why.remedy}", class_="grant")
    return notes


def refused(outside: Iterable[Denied], boundary: Boundary) -> list[Hint]:
    """Notes on refused writes: the directory to grant, or the task's own temporary one instead."""
    by_class: dict[str, dict[str, Access]] = {"grant": {}, "use-tmpdir": {}, "credential": {}}
    for access, kind in outside:
        told = classify(access, kind, boundary)
        told = "grant" if told == "ignore" else told
        if kind == "write" and told in by_class:
            by_class[told][access.path] = access
    notes = []
    if writes := by_class["grant"]:
        note = f"outside the project, writing to {path_as_entry.listed(writes)} was refused"
        closed = _never_granted(writes, "write", boundary)
        first = next((path for path in writes if path_as_entry.writable_down(path) and path not in closed), None)
        grant = None if first is None else outside_write(writes[first], boundary)
        if grant is not None:
            note += f": allow.write = [{path_as_entry.quoted(grant.entry)}] opens {grant.opened}"
        notes += [Hint(line=note, class_="grant"), *closed.values()]
    if shared := by_class["use-tmpdir"]:
        note = f"writing to {path_as_entry.listed(shared)} was refused: the task has a temporary directory of its own,"
        notes.append(Hint(line=f"{note} so have it write to $TMPDIR", class_="use-tmpdir"))
    return [*notes, *credentials(by_class["credential"])]


def interpreter(programs: Sequence[str], boundary: Boundary) -> list[Hint]:
    """A note for a hermetic task on a program installed below home, which is hidden with all it needs."""
    return [
        Hint(
            line=f"{path_as_entry.shown(path)} is hidden, since the task is hermetic and sees nothing below home:"
            f" allow.read = [{path_as_entry.quoted(installation(path, boundary))}] opens it with what belongs to it",
            class_="grant",
        )
        for path in programs[:1]
    ]
