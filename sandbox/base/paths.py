"""Path algebra on absolute strings: no pathlib, which normalises what the kernel distinguishes.

A path here is absolute, `/`-separated and without `.`, `..` or doubled separators unless said
otherwise. Nothing touches the machine; links are read through the `Files` handed in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base.host_facts import Kind, remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.base.host_facts import Files

    #: Where a path leads, and the links met on the way there: the place of each, and its text.
    _Way = tuple[str, tuple[tuple[str, str], ...]]

#: The most links followed in one path before it counts as a loop, as in the kernel (path_resolution(7)).
LINK_HOPS = 40

#: The most components of a path whose directories are each followed by themselves: every one is a call and is kept.
_DEEPEST = 40


def parts(path: str) -> list[str]:
    """The names a path is made of, `.` and empty ones left out, `..` kept."""
    return [part for part in path.split("/") if part not in {"", "."}]


def normal(path: str) -> str:
    """The path without `.`, `..` and doubled separators, links not looked at."""
    kept: list[str] = []
    for part in parts(path):
        if part != "..":
            kept.append(part)
        elif kept:
            kept.pop()
    return "/" + "/".join(kept)


def join(directory: str, *names: str) -> str:
    """A path below a directory, one component for each name."""
    return "/".join(("" if directory == "/" else directory, *names)) or "/"


def parent(path: str) -> str:
    """The directory a path is in; the root is in itself."""
    return path.rpartition("/")[0] or "/"


def name(path: str) -> str:
    """The last component, empty for the root."""
    return path.rpartition("/")[2]


def parents(path: str) -> Iterator[str]:
    """Every directory above a path, the nearest first and the root last."""
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


def at_or_under(path: str, directory: str) -> bool:
    """Whether a path is a directory or something in it."""
    return path == directory or under(path, directory)


def under(path: str, directory: str) -> bool:
    """Whether a path is something in a directory, but not the directory itself."""
    if directory == "/":
        return path != "/"
    return path.startswith(directory + "/")


def relative(path: str, directory: str) -> str:
    """A path at or under a directory, as seen from there; `.` for the directory itself."""
    if path == directory:
        return "."
    return path[1:] if directory == "/" else path[len(directory) + 1 :]


def canonical(path: str, files: Files) -> str:
    """The path with every link of its existing part resolved and the missing rest re-appended.

    A path that needs more than `LINK_HOPS` links comes back as it was, normalised.
    """
    return _way(path, files)[0]


def links_on(path: str, files: Files) -> tuple[tuple[str, str], ...]:
    """The links met on the way to a path, the last component included: where each is, and its text.

    The places are canonical. Empty for a path that runs into a loop.
    """
    return _way(path, files)[1]


def _way(path: str, files: Files) -> _Way:
    """The way to a path, kept where the file system never changes."""
    return remembered(files, ("way", path), lambda: _way_by_directory(path, files))


def _way_by_directory(path: str, files: Files) -> _Way:
    """The way to the directory a path is in, and one look at the last component.

    A project's paths are many, and most of the way to them is the way to the project. A path that is itself a link is
    walked from the root: the links above it count towards `LINK_HOPS`. Below a loop a path is as it was, normalised.
    """
    if not hasattr(files, "kept") or path.count("/") > _DEEPEST:
        return _walk(path, files)
    above, _, last = path.rpartition("/")
    if not above and last in {"", "."}:
        return "/", ()
    place, links = _way(above, files)
    if last in {"", "."}:
        return place, links
    if last == "..":
        return parent(place), links
    here = join(place, last)
    return _walk(path, files) if files.kind(here) is Kind.LINK else (here, links)


def follow(path: str, *, link_at: Callable[[str], str | None], passes: Callable[[str, str | None], bool]) -> str | None:
    """Follow a path component by component, as somebody does who sees less than the host has.

    Args:
        path: absolute.
        link_at: the text of the link that is seen at a place whose parents hold none, `None` for anything else.
        passes: whether the way leads on through a place, told the text of the link there.

    Returns:
        The place, with no link left; `None` where the way ends before, or needs more than `LINK_HOPS` links.
    """
    here, hops = "/", 0
    todo = parts(path)[::-1]
    while todo:
        part = todo.pop()
        if part == "..":
            here = parent(here)
            continue
        here = join(here, part)
        text = link_at(here)
        if not passes(here, text):
            return None
        if text is None:
            continue
        hops += 1
        if hops > LINK_HOPS:
            return None
        here = "/" if text.startswith("/") else parent(here)
        todo.extend(parts(text)[::-1])
    return here


def _walk(path: str, files: Files) -> _Way:
    """The way to a path, followed from the root."""
    met: list[tuple[str, str]] = []

    def link_at(place: str) -> str | None:
        if files.kind(place) is not Kind.LINK:
            return None
        met.append((place, files.readlink(place)))
        return met[-1][1]

    found = follow(path, link_at=link_at, passes=lambda _place, _text: True)
    return (normal(path), ()) if found is None else (found, tuple(met))
