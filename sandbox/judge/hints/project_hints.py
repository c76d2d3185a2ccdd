"""Notes on denials in the project, its walls and its grants. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import globs, paths
from sandbox.contract.results import Hint
from sandbox.judge import grant_spelling
from sandbox.judge.hints import outside_hints
from sandbox.judge.remedy_class import classify, makes_anew, meant
from sandbox.planning.operations import Bind, Cover, Name, Names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sandbox.judge.attempt_denials import Denied
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.failure_facts import Aftermath


def unreadable(cwd: str, boundary: Boundary) -> list[Hint]:
    """A note on the task's own directory, where no grant covers it or leads into it."""
    operations = boundary.plan.operations
    if not any(isinstance(o, Cover) and paths.at_or_under(cwd, o.path) for o in operations):
        return []
    for o in operations:
        granted = isinstance(o, (Bind, Name, Names)) and o.origin.field
        if granted and (paths.at_or_under(cwd, o.path) or paths.at_or_under(o.path, cwd)):
            return []
    here = grant_spelling.quoted(grant_spelling.entry(cwd, boundary))
    line = f"no grant lets the task read its own directory {grant_spelling.shown(cwd)}: allow.read = [{here}]"
    return [Hint(line=line, class_="grant")]


def walls(walled: Iterable[Denied], boundary: Boundary, after: Aftermath) -> list[Hint]:
    """Notes on walls the task looked at, as many tools do; git's complaint of one has a note of its own."""
    met = {wall.path: wall.reason for a, _ in walled if (wall := boundary.wall(a.path)) is not None}
    said = "not a git repository" in after.printed
    return [
        Hint(
            line=f"{grant_spelling.shown(path)} is walled off ({reason}):"
            f" allow.read = [{grant_spelling.quoted(grant_spelling.entry(path, boundary))}] opens it",
            class_="grant",
        )
        for path, reason in met.items()
        if not (said and paths.name(path) == ".git")
    ]


def credentials(counted: Iterable[Denied], boundary: Boundary) -> list[Hint]:
    """A note on credential stores that violations lie in."""
    return outside_hints.credentials(a.path for a, _ in counted if boundary.store(a.path) is not None)


def made_upstream(found: Iterable[Denied], boundary: Boundary) -> list[Hint]:
    """Notes on files that another task makes: it is to be run, whether they are missing or were to be written."""
    notes: dict[str, Hint] = {}
    for access, kind in found:
        if classify(access, kind, boundary) != "run-upstream":
            continue
        task = boundary.declared.maker(access.path) or ""
        if kind == "read":
            note = not_made(access.path, task)
        else:
            what = f"{grant_spelling.shown(access.path)} is an output of {grant_spelling.shown(task)}"
            note = Hint(line=f"{what}: run that task, which alone writes it", class_="run-upstream")
        notes.setdefault(task, note)
    return list(notes.values())


def not_made(path: str, task: str) -> Hint:
    """A note on a file that another task makes, and has not made."""
    line = f"{grant_spelling.shown(path)} is an output of {grant_spelling.shown(task)}, which has not made it: run it"
    return Hint(line=line, class_="run-upstream")


def made_anew(counted: Iterable[Denied], boundary: Boundary) -> list[Hint]:
    """Notes on files that have another name in each run, which a grant of the name would not fit."""
    notes: dict[str, Hint] = {}
    for access, kind in counted:
        if kind != "write" or classify(access, kind, boundary) != "ignore":
            continue
        grant = paths.join(globs.escape(paths.parent(access.path)), makes_anew(access, boundary) or "")
        spelled = grant_spelling.quoted(grant_spelling.pattern(grant, boundary))
        line = f"{grant_spelling.shown(access.path)} has another name in each run: ignore.write = [{spelled}]"
        line += " if the task does without it, else have it made in $TMPDIR"
        notes.setdefault(grant, Hint(line=line, class_="ignore"))
    return list(notes.values())


def misrooted(found: Iterable[Denied], boundary: Boundary) -> list[Hint]:
    """Notes on writes at the workspace root that the project's grants would have taken below the project."""
    for access, kind in found:
        there = meant(access.path, boundary) if kind == "write" else None
        if there is None or boundary.declared.maker(access.path) is not None:
            continue
        line = f"{grant_spelling.shown(access.path)} lies at the workspace root, and the task may write"
        line += f" {grant_spelling.quoted(grant_spelling.entry(there, boundary))} of its project: have it written there"
        return [Hint(line=line, class_="tool-fault")]
    return []


def removed(found: Sequence[str], boundary: Boundary) -> list[Hint]:
    """Notes on granted directories the task tried to remove or rename, which are mounts and stay."""
    notes = []
    for path in dict.fromkeys(found):
        name, whole = grant_spelling.entry(path, boundary), grant_spelling.entry(path, boundary, directory=True)
        line = f"the granted directory {grant_spelling.quoted(whole)} is mounted: what is in it can be removed, as by"
        line += f" rm -rf {grant_spelling.shown(name)}/*, and it stays"
        if boundary.served:
            line += f"; allow.write = [{grant_spelling.quoted(name)}] grants the name, which may go and be made again"
        notes.append(Hint(line=line, class_="grant"))
    return notes
