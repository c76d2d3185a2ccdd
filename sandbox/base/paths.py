"""Path algebra on absolute strings: no pathlib, which normalises what the kernel distinguishes.

A path here is absolute, `/`-separated and without `.`, `..` or doubled separators unless said
otherwise. Nothing touches the machine; links are read through the `Files` handed in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox.base.host_facts import Kind, remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.base.host_facts import Files

#: The most links followed in one path before it counts as a loop, as in the kernel (path_resolution(7)).
LINK_HOPS = 40


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
        path = parent(path)
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
    return remembered(files, ("canonical", path), lambda: _canonical(path, files))


def _canonical(path: str, files: Files) -> str:
    known = _known_above("canonical", path, files)
    if known is not None:
        return known if _is_same(path) else join(known, name(path))
    found = _walk(path, files)
    return normal(path) if found is None else found[0]


def links_on(path: str, files: Files) -> tuple[tuple[str, str], ...]:
    """The links met on the way to a path, the last component included: where each is, and its text.

    The places are canonical. Empty for a path that runs into a loop.
    """
    return remembered(files, ("links", path), lambda: _links_on(path, files))


def _links_on(path: str, files: Files) -> tuple[tuple[str, str], ...]:
    known: tuple[tuple[str, str], ...] | None = _known_above("links", path, files)
    if known is not None:
        return known
    found = _walk(path, files)
    return () if found is None else found[1]


def _known_above(what: str, path: str, files: Files) -> Any:
    """The result kept for the directory a path is in, where the last component adds no link; else `None`.

    A project's paths are many, and most of the way to them is the way to the project.
    """
    above = path.rpartition("/")[0]
    kept = getattr(files, "kept", {})
    real = kept.get(("canonical", above))
    if (
        real is None
        or name(path) == ".."
        or not (_is_same(path) or files.kind(join(real, name(path))) is not Kind.LINK)
    ):
        return None
    return kept.get((what, above))


def _is_same(path: str) -> bool:
    """Whether a path's last component is empty or `.`."""
    return name(path) in {"", "."}


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


def _walk(path: str, files: Files) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    met: list[tuple[str, str]] = []

    def link_at(place: str) -> str | None:
        if files.kind(place) is not Kind.LINK:
            return None
        met.append((place, files.readlink(place)))
        return met[-1][1]

    found = follow(path, link_at=link_at, passes=lambda _place, _text: True)
    return None if found is None else (found, tuple(met))
