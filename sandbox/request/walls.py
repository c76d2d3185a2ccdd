"""The walls of a task: nested projects, the repository's data and the caches, which no grant above them opens. Pure.

A repository's data may lie anywhere: a worktree and a submodule keep theirs elsewhere (gitrepository-layout(5)), and a
workspace may be a part of a larger checkout. A task that reads the data reads every project's committed bytes. So the
data is a wall wherever it is, and so is the rest of the checkouts it belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import paths
from sandbox.base.host_facts import Kind, remembered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.base.host_facts import Files

DATA = "the repository's data"
CACHE = "the cache"
UNFINISHED = "the directory of unfinished outputs"
RUN_CACHE = "the cache directory of the run"
NESTED = "the nested project"
CHECKOUT = "the rest of the repository's checkout"

#: The most bytes read of a file that points to a repository, which is one line.
_POINTER = 8192


class Wall(NamedTuple):
    """A place that a grant above it does not open.

    Attributes:
        path: canonical.
        reason: a noun phrase for people.
        closed: no write grant may name it or anything in it either.
    """

    path: str
    reason: str
    closed: bool = False


def fixed(root: str, *, cache_dir: str | None, files: Files) -> tuple[Wall, ...]:
    """The walls every task of a workspace has: its repository's data and its caches, existing or not."""
    return remembered(files, ("fixed walls", root, cache_dir), lambda: _fixed(root, cache_dir, files))


def _fixed(root: str, cache_dir: str | None, files: Files) -> tuple[Wall, ...]:
    found = [
        (paths.join(root, ".git"), DATA, False),
        (paths.join(root, ".vx", "cache"), CACHE, True),
        (paths.join(root, ".vx", "tmp"), UNFINISHED, True),
    ]
    if cache_dir is not None:
        found.append((paths.canonical(cache_dir, files), RUN_CACHE, True))
    inside = [wall for wall in _both_ends(found, files) if paths.under(wall.path, root)]
    known = {wall.path for wall in inside}
    data = [Wall(path=path, reason=DATA) for path in repository_data(root, files) if path not in known]
    return (*inside, *data)


def nested(project: str, projects: Iterable[str], files: Files) -> tuple[Wall, ...]:
    """The projects strictly inside a directory, as walls, sorted."""
    places = sorted(paths.canonical(path, files) for path in projects)
    found = ((path, NESTED, False) for path in places if paths.under(path, project))
    return tuple(_both_ends(found, files))


def around(root: str, home: str, files: Files) -> tuple[Wall, ...]:
    """Checkouts the workspace is a part of or shares its repository with, outermost first.

    A checkout that holds the home directory is left out: hiding it would hide the user's whole account.
    """
    return remembered(files, ("walls around", root, home), lambda: _around(root, home, files))


def _around(root: str, home: str, files: Files) -> tuple[Wall, ...]:
    places: list[str] = []
    top = _top(root, files)
    if top is not None and top != root:
        places.append(top)
    places += (paths.parent(data) for data in repository_data(root, files) if paths.name(data) == ".git")
    wanted = [
        path
        for path in dict.fromkeys(places)
        if not paths.at_or_under(path, root) and not paths.at_or_under(home, path)
    ]
    return tuple(Wall(path=path, reason=CHECKOUT) for path in sorted(wanted, key=len))


def repository_data(root: str, files: Files) -> tuple[str, ...]:
    """The directories that hold the data of the repository a workspace belongs to, canonical.

    They are the checkout's own, the one it shares with other worktrees, and a `.git` that holds either. Of directories
    in one another only the outermost is kept. Outside a repository there are none.
    """
    top = _top(root, files)
    if top is None:
        return ()
    entry = paths.join(top, ".git")
    own = paths.canonical(entry, files)
    if files.kind(own) is not Kind.DIRECTORY:
        own = _pointed(own, top, files) or own
    found = [own]
    shared = _line(files.read(paths.join(own, "commondir"), _POINTER))
    if shared:
        found.append(_from(own, shared, files))
    for path in tuple(found):
        holder = next((above for above in paths.parents(path) if paths.name(above) == ".git"), None)
        if holder is not None:
            found.append(holder)
    kept = [path for path in dict.fromkeys(found) if path != "/" and not paths.at_or_under(root, path)]
    return tuple(path for path in kept if not any(paths.under(path, other) for other in kept))


def _top(root: str, files: Files) -> str | None:
    """The nearest directory at or above the workspace that git would take for a checkout."""
    for directory in (root, *paths.parents(root)):
        entry = paths.canonical(paths.join(directory, ".git"), files)
        kind = files.kind(entry)
        if kind is Kind.DIRECTORY and files.kind(paths.join(entry, "HEAD")) is not None:
            return directory
        if kind is Kind.FILE and _pointed(entry, directory, files):
            return directory
    return None


def _pointed(pointer: str, directory: str, files: Files) -> str:
    """The directory a `.git` file names, empty when it names none."""
    text = _line(files.read(pointer, _POINTER))
    if not text.startswith("gitdir:"):
        return ""
    target = text.removeprefix("gitdir:").strip()
    return _from(directory, target, files) if target else ""


def _from(directory: str, target: str, files: Files) -> str:
    return paths.canonical(target if target.startswith("/") else paths.join(directory, target), files)


def _line(raw: bytes) -> str:
    return raw.split(b"\n", 1)[0].decode("utf-8", "surrogateescape").strip()


def _both_ends(found: Iterable[tuple[str, str, bool]], files: Files) -> Iterator[Wall]:
    # A wall that is a link hides both its name and the place it leads to.
    seen: set[str] = set()
    for path, reason, closed in found:
        for place in (path, paths.canonical(path, files)):
            if place not in seen:
                seen.add(place)
                yield Wall(path=place, reason=reason, closed=closed)
