"""Notes on denials outside the project, which fail no task by themselves. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.intents import Intent
from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry
from sandbox.judge.hints.credential_hints import credentials
from sandbox.judge.remedies.never_granted import never_granted
from sandbox.judge.remedies.remedy_class import classify, nameable, writable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.contract.results import Access
    from sandbox.judge.attempt_denials import Denied
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.is_it_a_denial import Denial


def hidden(outside: Iterable[Denied], boundary: Boundary) -> list[Hint]:
    """Notes on existing paths that were read in vain, files first; a credential store is named and never suggested."""
    found = dict.fromkeys(a.path for a, kind in outside if kind == "read" and a.exists and not _installed(a, boundary))
    kept = [path for path in found if boundary.store(path) is not None]
    plain = sorted((path for path in found if path not in kept), key=boundary.directory)
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
    by_class: dict[str, dict[str, str]] = {"grant": {}, "use-tmpdir": {}, "credential": {}}
    for access, kind in outside:
        told = classify(access, kind, boundary)
        told = "grant" if told == "ignore" else told
        if kind == "write" and told in by_class:
            by_class[told][access.path] = writable(access, boundary)
    notes = []
    if writes := by_class["grant"]:
        note = f"outside the project, writing to {path_as_entry.listed(writes)} was refused"
        closed = _never_granted(writes, "write", boundary)
        first = next((path for path in writes if path_as_entry.writable_down(path) and path not in closed), None)
        note += "" if first is None else _opening(first, writes[first], boundary)
        notes += [Hint(line=note, class_="grant"), *closed.values()]
    if shared := by_class["use-tmpdir"]:
        note = f"writing to {path_as_entry.listed(shared)} was refused: the task has a temporary directory of its own,"
        notes.append(Hint(line=f"{note} so have it write to $TMPDIR", class_="use-tmpdir"))
    return [*notes, *credentials(by_class["credential"])]


def _opening(path: str, directory: str, boundary: Boundary) -> str:
    """The end of a note: the grant for a write, of its directory where that can be granted."""
    # A directory the task makes itself cannot be a mount.
    itself = directory == path and nameable(path, boundary)
    whole = not itself and not boundary.refuses_writing(directory)
    if whole and never_granted(directory, "write", boundary) is None:
        grant = path_as_entry.quoted(path_as_entry.entry(directory, boundary, directory=True))
        return f": allow.write = [{grant}] opens {path_as_entry.shown(directory)} and everything in it"
    if nameable(path, boundary):
        entry = path_as_entry.quoted(path_as_entry.entry(path, boundary))
        return f": allow.write = [{entry}] opens {path_as_entry.shown(path)}"
    return ""


def interpreter(found: Iterable[Denied], boundary: Boundary) -> list[Hint]:
    """A note for a hermetic task on a program installed below home, which is hidden with all it needs."""
    if not boundary.hermetic:
        return []
    programs = dict.fromkeys(
        access.path for access, _ in found if _installed(access, boundary) and boundary.store(access.path) is None
    )
    return [
        Hint(
            line=f"{path_as_entry.shown(path)} is hidden, since the task is hermetic and sees nothing below home:"
            f" allow.read = [{path_as_entry.quoted(_installation(path, boundary))}] opens it with what belongs to it",
            class_="grant",
        )
        for path in list(programs)[:1]
    ]


def _installed(access: Access, boundary: Boundary) -> bool:
    """Whether a hermetic task looked for a program below home."""
    path = access.path
    if not boundary.hermetic or not paths.under(path, boundary.home) or paths.under(path, boundary.workspace):
        return False
    return access.intent is Intent.EXEC or paths.name(paths.parent(path)) == "bin"


def _installation(path: str, boundary: Boundary) -> str:
    """The directory a program was installed into with what it needs; itself where it stands alone."""
    prefix = paths.parent(paths.parent(path))
    shared = (boundary.home, paths.join(boundary.home, ".local"))
    whole = paths.name(paths.parent(path)) == "bin" and prefix not in shared
    return path_as_entry.entry(prefix if whole else path, boundary, directory=whole)
