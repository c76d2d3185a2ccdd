"""The grants that nobody is advised to give without thought, each with its reason and what to do by hand. Pure.

The fix leaves them out, so `--fix` writes none of them. Hints and the report name them with the same words.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.judge import path_as_entry
from sandbox.request.protected_names import folded, named_below
from sandbox.request.walls import DATA

if TYPE_CHECKING:
    from sandbox.base.host_facts import Files
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.is_it_a_denial import Denial


class NeverGranted(NamedTuple):
    """Why a grant is neither suggested nor written.

    Attributes:
        reason: a clause whose subject is the path.
        remedy: what to do instead, as a clause.
    """

    reason: str
    remedy: str


_SECRETS = ".env"
_GIT = ".git"
#: Directories whose programs are started by name, outside of every sandbox too.
_PROGRAMS = frozenset({("node_modules", ".bin"), (".venv", "bin"), (".venv", "scripts")})
#: Directories of installed packages, in which nobody keeps secrets of their own.
_INSTALLED = frozenset({"node_modules", ".venv"})

#: Directories at the root that are the system's, however deep; in others that is the first level alone.
_SYSTEM = frozenset(
    {"bin", "boot", "dev", "etc", "gnu", "nix", "proc", "run", "sbin", "sys", "usr", "var", "Library", "System"}
)
_DEEP = 2

#: The most paths in a directory that are looked at before it is suggested whole.
MOST = 50_000

_CREDENTIALS = NeverGranted("holds credentials", "pass what the task needs in a variable, by exec.env.passThrough")


def never_granted(path: str, kind: Denial, boundary: Boundary) -> NeverGranted | None:
    """Why no grant of a path is written, or of a directory for what it holds; `None` for one that may be.

    Args:
        path: canonical; a directory stands for everything in it.
        kind: what the grant would be for.
        boundary: the boundary of the attempt.
    """
    real = boundary.canonical(path)
    found = _never_granted(path, kind, boundary)
    if found is not None or real == path:
        return found
    # a link that the task could not see, or made itself, opens what it leads to
    found = _never_granted(real, kind, boundary)
    return found and found._replace(reason=f"leads to {real}, which {found.reason}")


def _never_granted(path: str, kind: Denial, boundary: Boundary) -> NeverGranted | None:
    if boundary.store(path) is not None:
        return _CREDENTIALS
    return _by_place(path, kind, boundary) or _by_name(path, kind, boundary) or _by_content(path, kind, boundary)


def _by_place(path: str, kind: Denial, boundary: Boundary) -> NeverGranted | None:
    if paths.at_or_under(boundary.project, path):
        what = "is the project itself" if path == boundary.project else "holds the project"
        opened = f"{what}, so that a grant of it opens everything in there"
        return NeverGranted(opened, f"name what the task needs of it, or {_line(path, kind, boundary)}")
    if kind == "write" and _systems(path, boundary):
        return NeverGranted("is a place of the system", "have the command write below the project or to $TMPDIR")
    wall = boundary.wall(path)
    if wall is not None and wall.reason == DATA:
        return _repository(path, kind, boundary)
    return None


def _systems(path: str, boundary: Boundary) -> bool:
    """Whether a path lies where the system keeps what every program of the machine uses."""
    if any(paths.at_or_under(path, own) for own in (boundary.workspace, boundary.home)) or boundary.temporary(path):
        return False
    parts = paths.parts(path)
    return len(parts) < _DEEP or parts[0] in _SYSTEM or parts[0].startswith("lib")


def _by_name(path: str, kind: Denial, boundary: Boundary) -> NeverGranted | None:
    by_hand = _line(path, kind, boundary)
    parts = _parts(path, boundary)
    if boundary.says_grants(path):
        return NeverGranted("says what tasks may do", f"have the command leave it alone, or {by_hand}")
    if any(part.startswith(_SECRETS) for part in parts):
        remedy = f"pass single variables by exec.env.passThrough, or, for all of them, {by_hand}"
        return NeverGranted("may hold secrets, by its name", remedy)
    below = "/" + "/".join(parts)
    if named_below(below, "/", git_config=boundary.git_config) or (kind == "write" and boundary.obeyed(path)):
        remedy = by_hand if kind == "read" else "have the command write elsewhere, for no grant allows it"
        return NeverGranted("is a name other programs execute or obey", remedy)
    if _GIT in parts:
        return _repository(path, kind, boundary)
    if not _PROGRAMS.isdisjoint(pairwise(parts)):
        return NeverGranted("is where other tasks and people find the programs they start", by_hand)
    return None


def _repository(path: str, kind: Denial, boundary: Boundary) -> NeverGranted:
    reason = "belongs to a repository's data, which holds every file of every project"
    line = _line(path, kind, boundary)
    whole = next((above for above in (path, *paths.parents(path)) if paths.name(above) == _GIT), path)
    if kind == "write" and whole != path:
        # git locks and renames all over its directory, so no single name in it is of use.
        entry = path_as_entry.quoted(path_as_entry.entry(whole, boundary, directory=True))
        line = f"add allow.write = [{entry}] by hand"
    return NeverGranted(reason, f"if the task is to have it, {line}")


def _by_content(path: str, kind: Denial, boundary: Boundary) -> NeverGranted | None:
    """Why a directory is not granted whole: something in it is never granted, or nobody could look through it."""
    if not boundary.directory(path):
        return None
    remedy = f"name what the task needs in it, or {_line(path, kind, boundary)}"
    found = boundary.tree(path)
    if found is None:
        return NeverGranted("holds too much to be looked through for secrets", remedy)
    for one in found:
        if boundary.wall(one) is not None or boundary.store(one) is not None:
            continue  # a grant above it does not open it
        name = folded(paths.name(one))
        inner = tuple(map(folded, paths.parts(one)[-2:]))
        if name.startswith(_SECRETS) or name == _GIT or (kind == "write" and inner in _PROGRAMS):
            shown = path_as_entry.shown(paths.relative(one, path))
            return NeverGranted(f"holds {shown}, which is granted by its own name alone", remedy)
    return None


def _line(path: str, kind: Denial, boundary: Boundary) -> str:
    """The line that opens a path all the same, as advice."""
    if kind == "read":
        return f"add {path_as_entry.readable(path, boundary)} by hand"
    entry = path_as_entry.entry(path, boundary, directory=boundary.directory(path))
    return f"add allow.write = [{path_as_entry.quoted(entry)}] by hand"


def below(directory: str, files: Files) -> tuple[str, ...] | None:
    """Every path in a directory, links not followed and installed packages not looked into; `None` for too many."""
    todo, found = [directory], []
    while todo:
        here = todo.pop()
        for name in files.entries(here):
            path = paths.join(here, name)
            found.append(path)
            if files.kind(path) is Kind.DIRECTORY and folded(paths.name(here)) not in _INSTALLED:
                todo.append(path)
        if len(found) > MOST:
            return None
    return tuple(found)


def _parts(path: str, boundary: Boundary) -> list[str]:
    """The names of a path that say what it is: those below the project or the workspace, where it is in one."""
    place = next((one for one in (boundary.project, boundary.workspace) if paths.at_or_under(path, one)), "/")
    return [folded(part) for part in paths.parts(paths.relative(path, place))]
