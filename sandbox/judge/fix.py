"""The fewest entries that would have let an attempt pass, spelled for the project's file. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox.base import globs, paths
from sandbox.contract.intents import Intent
from sandbox.contract.results import Access, Fix, FixInputs, FixPaths, WithheldGrant
from sandbox.judge import path_as_entry
from sandbox.judge.remedies.never_granted import NeverGranted, never_granted
from sandbox.judge.remedies.numbered_names import numbered
from sandbox.judge.remedies.one_time_names import makes_anew, no_pattern
from sandbox.judge.remedies.remedy_class import classify, installation, makes_itself, nameable, outside_write

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from sandbox.judge.attempt_denials import Denied
    from sandbox.judge.beside_failure import BesideFailure
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.is_it_a_denial import Denial

#: The number of names in one directory from which on the directory is the smaller grant.
SEVERAL = 2


def fix(
    counted: Sequence[Denied],
    boundary: Boundary,
    *,
    names: Collection[str] = (),
    survived: bool = True,
    beside: BesideFailure | None = None,
) -> Fix | None:
    """The entries for these violations, in the order they were met; `None` when no entry helps against any.

    What nobody is advised to grant is withheld with its reason: named, never suggested. A write that no grant allows
    has no entry. Neither has a path that is no text, or one that is another task's to make.

    Args:
        counted: the violations' accesses.
        boundary: the boundary they were compared with.
        names: paths whose own grant is the cure, whatever they are.
        survived: whether the command itself passed; a denied write of a failed one is not to be ignored.
        beside: what the notes tell of besides the violations.
    """
    found = _by_remedy(counted, boundary, survived=survived)
    if beside is not None:
        found.beside(beside, boundary)
    directories, single = _writes(found, boundary, names)
    written = (*directories, *single)
    patterns = [grant for grant in found.patterns if not _covered(globs.literal_base(grant), frozenset(written))]
    reads = _reads(found, boundary, written)
    read, alone = numbered(reads, boundary), numbered(single, boundary)
    fixed = Fix(
        allow=FixPaths(
            read=_spelled(
                (
                    *(path_as_entry.entry(path, boundary, directory=boundary.directory(path)) for path in read.single),
                    *(path_as_entry.pattern(grant, boundary) for grant in read.patterns),
                ),
                boundary,
            ),
            write=_spelled(
                (
                    *(path_as_entry.entry(path, boundary, directory=True) for path in directories),
                    *(path_as_entry.entry(path, boundary) for path in alone.single),
                    *(path_as_entry.pattern(grant, boundary) for grant in (*alone.patterns, *patterns)),
                ),
                boundary,
            ),
        ),
        ignore=_ignored(found, boundary, written=written, reads=reads),
        inputs=_inputs([path for path in reads if path_as_entry.unkeyed(path, boundary)], boundary),
        withheld=_spelled(found.withheld, boundary),
        by_hand=tuple(_said(path, why, boundary) for path, why in found.withheld.items()),
    )
    return fixed if fixed != Fix() else None


@dataclass(slots=True)
class _Found:
    """Denials by their remedy; patterns are absolute."""

    reads: dict[str, Access] = field(default_factory=dict)
    writes: dict[str, Access] = field(default_factory=dict)
    patterns: dict[str, None] = field(default_factory=dict)
    ignored_reads: list[str] = field(default_factory=list)
    ignored_writes: list[str] = field(default_factory=list)
    withheld: dict[str, NeverGranted] = field(default_factory=dict)

    def withholds(self, path: str, kind: Denial, boundary: Boundary) -> bool:
        """Whether a grant of a path is never suggested; the path is then kept with the reason."""
        why = never_granted(path, kind, boundary)
        if why is not None:
            self.withheld.setdefault(path, why)
        return why is not None

    def made_anew(self, access: Access, boundary: Boundary, *, survived: bool) -> None:
        """Take a write of a file with another name in each run, which a command that passed does without."""
        names = makes_anew(access, boundary)
        if names is None or (not survived and not nameable(access.path, boundary)):
            self.writes.setdefault(access.path, access)
        elif names.taken:
            self.withheld.setdefault(access.path, no_pattern(names, boundary))
        elif survived:
            self.ignored_writes.append(names.pattern)
        else:
            self.patterns[names.pattern] = None

    def beside(self, told: BesideFailure, boundary: Boundary) -> None:
        """Take what a failed task is told of besides its violations: it may be why the command failed."""
        missing = () if told.missing is None or told.missing.task else (told.missing.path,)
        for index, path in enumerate((*told.reads, *missing)):
            # Of directories the one that the note names is granted, where no file is.
            if index == 0 or not boundary.directory(path):
                access = Access(pid=0, operation="open", intent=Intent.OPEN, asked=path, path=path, exists=True)
                if path_as_entry.writable_down(path):
                    self.reads.setdefault(path, access)
        for write in told.writes:
            grant = (
                outside_write(write, boundary) if classify(write, "write", boundary) in {"grant", "ignore"} else None
            )
            if grant is not None:
                line = f"allow.write = [{path_as_entry.quoted(grant.entry)}]"
                why = NeverGranted("lies outside the project", f"if the task is to write there, add {line} by hand")
                self.withheld.setdefault(write.path, why)
                break  # the one that the note names
        for wall in told.walls:
            entry = path_as_entry.quoted(path_as_entry.entry(wall.path, boundary))
            why = NeverGranted(f"is walled off ({wall.reason})", f"add allow.read = [{entry}] by hand")
            self.withheld.setdefault(wall.path, never_granted(wall.path, "read", boundary) or why)
        for path in told.programs[:1]:
            line = f"allow.read = [{path_as_entry.quoted(installation(path, boundary))}]"
            why = NeverGranted("is a program with an installation around it", f"add {line} by hand")
            self.withheld.setdefault(path, why)


def _by_remedy(counted: Sequence[Denied], boundary: Boundary, *, survived: bool) -> _Found:
    """Denials sorted by their remedy."""
    found = _Found()
    for access, kind in counted:
        told = classify(access, kind, boundary)
        # A read is withheld once it is known which directories other entries show anyway.
        closed = told in {"credential", "tool-fault"} or (kind == "write" and told != "run-upstream")
        passing = told == "ignore" and survived
        if closed and not passing and found.withholds(access.path, kind, boundary):
            continue
        match told:
            case "grant" | "use-tmpdir" if kind == "read":
                found.reads.setdefault(access.path, access)
            case "ignore" if kind == "read":
                found.ignored_reads.append(globs.escape(access.path))
            case "ignore":
                found.made_anew(access, boundary, survived=survived)
            case "grant" | "use-tmpdir":
                found.writes.setdefault(access.path, access)
            case _:
                continue
    return found


def _ignored(found: _Found, boundary: Boundary, *, written: tuple[str, ...], reads: list[str]) -> FixPaths:
    """The entries to ignore, without those that the entries to read and write give anyway."""
    writable, granted = frozenset(written), frozenset((*written, *reads))
    # A written entry has the directories on its way made, so that they are there to be read.
    shown = granted.union(above for path in written for above in paths.parents(path))
    looked = [
        grant
        for grant in found.ignored_reads
        if globs.unescape(grant) not in shown and not _covered(globs.unescape(grant), granted)
    ]
    made = [grant for grant in found.ignored_writes if not _covered(globs.literal_base(grant), writable)]
    return FixPaths(
        read=_spelled((path_as_entry.pattern(grant, boundary) for grant in looked), boundary),
        write=_spelled((path_as_entry.pattern(grant, boundary) for grant in made), boundary),
    )


def _writes(found: _Found, boundary: Boundary, names: Collection[str]) -> tuple[list[str], list[str]]:
    """The directories to grant whole, and the names to grant alone."""
    writes = found.writes
    made = frozenset(path for path, access in writes.items() if path not in names and makes_itself(access, boundary))
    whole: dict[str, None] = {}
    alone: dict[str, str] = {}
    for path, access in writes.items():
        if any(above in made for above in paths.parents(path)):
            continue
        if path in names:
            alone[path] = ""
            continue
        directory = None if path in made else _whole(path, access, boundary)
        if directory is not None and (directory == path or never_granted(directory, "write", boundary) is None):
            whole[directory] = None
        elif nameable(path, boundary):
            alone[path] = paths.parent(path)
        elif directory is not None:
            found.withholds(directory, "write", boundary)
    whole.update((directory, None) for directory in _crowded(alone.values(), boundary))
    directories = _outermost(whole)
    held = frozenset(directories)
    return directories, [path for path in _outermost(alone) if not _covered(path, held)]


def _crowded(directories: Iterable[str], boundary: Boundary) -> Iterator[str]:
    """The directories of several names to grant, each once, where a grant of the directory can be given."""
    for directory, count in Counter(directories).items():
        if count < SEVERAL or not paths.under(directory, boundary.project) or boundary.refuses_writing(directory):
            continue
        if never_granted(directory, "write", boundary) is None:
            yield directory


def _whole(path: str, access: Access, boundary: Boundary) -> str | None:
    """The directory to grant for one write; `None` where its own name is the better grant, or the only one."""
    if access.intent is Intent.MKDIR or path == boundary.project:
        wanted: str | None = path
    else:
        wanted = boundary.output(path)
    if wanted is None and (makes_anew(access, boundary) is not None or not nameable(path, boundary)):
        wanted = paths.parent(path)
    return None if wanted is None or boundary.refuses_writing(wanted) else wanted


def _reads(found: _Found, boundary: Boundary, written: tuple[str, ...]) -> list[str]:
    """The paths to grant, without directories that another grant shows on its way.

    A directory that was opened is read for its entries, so it stands for the reads below it.
    """
    held = frozenset(written)
    distinct = [path for path in found.reads if not _covered(path, held)]
    to_written = {above for path in written for above in paths.parents(path)}
    to_any = to_written.union(above for path in distinct for above in paths.parents(path))
    asked = [
        path for path in distinct if path not in (to_any if found.reads[path].intent is Intent.PROBE else to_written)
    ]
    return _outermost(path for path in asked if not found.withholds(path, "read", boundary))


def _said(path: str, why: NeverGranted, boundary: Boundary) -> WithheldGrant:
    target, reason, remedy = map(boundary.mask, (path, why.reason, why.remedy))
    return WithheldGrant(target=target, reason=reason, remedy=remedy)


def _inputs(reads: Iterable[str], boundary: Boundary) -> FixInputs:
    files: list[str] = []
    workspace_files: list[str] = []
    found = numbered(reads, boundary)
    for grant in found.patterns:
        base = globs.literal_base(grant)
        inside = paths.at_or_under(base, boundary.project) and not _covered(base, frozenset(boundary.nested))
        place = boundary.project if inside else boundary.workspace
        if paths.at_or_under(base, place):
            (files if inside else workspace_files).append(paths.relative(grant, globs.escape(place)))
    for path in found.single:
        nested = any(paths.at_or_under(path, other) for other in boundary.nested)
        inside = paths.at_or_under(path, boundary.project) and not nested
        if inside:
            files.append(path_as_entry.from_project(path, boundary))
        elif paths.under(path, boundary.workspace):
            workspace_files.append(path_as_entry.from_root(path, boundary))
    return FixInputs(files=_spelled(files, boundary), workspace_files=_spelled(workspace_files, boundary))


def _outermost(found: Iterable[str]) -> list[str]:
    distinct = dict.fromkeys(found)
    return [path for path in distinct if not any(above in distinct for above in paths.parents(path))]


def _covered(path: str, places: frozenset[str]) -> bool:
    return path in places or any(above in places for above in paths.parents(path))


def _spelled(entries: Iterable[str], boundary: Boundary) -> tuple[str, ...]:
    return tuple(dict.fromkeys(boundary.mask(entry) for entry in entries))
