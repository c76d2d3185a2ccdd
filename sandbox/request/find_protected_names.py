"""The protected names that exist in directories, at any depth, and the directories nobody could look into. Pure.

A directory becomes a bare repository by what is in it, whatever it is called (gitrepository-layout(5)): git obeys the
settings and runs the hooks beside `HEAD`, `objects` and `refs`, or beside `HEAD` and a file that says where those are.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import paths
from sandbox.base.host_facts import remembered
from sandbox.request.protected_names import (
    CARRIERS,
    CLAUDE,
    DIRECTORIES,
    ELSEWHERE,
    FILES,
    HOOKS,
    POLICY,
    SETTINGS,
    folded,
    named_below,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from sandbox.base.host_facts import Files, Listing

_OF_REPOSITORY = frozenset({HOOKS, ELSEWHERE, *SETTINGS})
#: The last component of every protected name, but for those that only `.claude` has.
_LAST = FILES | CARRIERS | _OF_REPOSITORY | {parts[-1] for parts in (*DIRECTORIES, *POLICY)}
_HEAD, _DATA, _LINKED = "head", frozenset({"objects", "refs"}), (".git", "worktrees")


class FoundNames(NamedTuple):
    """The result of a search.

    Attributes:
        names: protected names; of one in another only the outer.
        closed: directories that could not be looked into.
        bare: the file `HEAD` of every bare repository, by its directory.
    """

    names: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    bare: Mapping[str, str] = MappingProxyType({})


def existing(
    directories: Iterable[str], files: Files, *, git_config: bool, without: Collection[str] = ()
) -> FoundNames:
    """The protected names in directories that the task may write, sorted.

    `node_modules` and directories that git ignores are looked through as any other, and a link counts by its name.

    Args:
        directories: each is looked through by itself, but for what is in another of them.
        files: the file system.
        git_config: whether a repository's own settings may be written.
        without: directories further down that the task does not reach.
    """
    roots = tuple(sorted(set(directories)))
    closed = frozenset((*roots, *without))
    each = [_remembered(root, files, closed, git_config=git_config) for root in roots]
    return FoundNames(
        tuple(sorted({name for found in each for name in found.names})),
        tuple(sorted({path for found in each for path in found.closed})),
        {directory: head for found in each for directory, head in found.bare.items()},
    )


def _remembered(root: str, files: Files, closed: frozenset[str], *, git_config: bool) -> FoundNames:
    key = ("executed names", root, str(git_config), *sorted(path for path in closed if paths.under(path, root)))
    return remembered(
        files, key, lambda: search(root, files, git_config=git_config, enters=lambda path: path not in closed)
    )


def search(root: str, files: Files, *, git_config: bool, enters: Callable[[str], bool]) -> FoundNames:
    """The protected names below one directory.

    Args:
        root: the directory.
        files: the file system.
        git_config: whether a repository's own settings may be written.
        enters: whether a directory is looked into.
    """
    names: set[str] = set()
    closed: list[str] = []
    bare: dict[str, str] = {}
    for listing in files.below(root, lambda path: path not in names and enters(path)):
        if listing.closed:
            closed.append(listing.path)
        last = _worth_a_look(listing)
        if last and (head := _head(listing, git_config=git_config)):
            bare[listing.path] = paths.join(listing.path, head)
        names.update(_named(listing, last, bare=listing.path in bare, git_config=git_config))
    return FoundNames(tuple(names), tuple(closed), bare)


def _worth_a_look(listing: Listing) -> list[str]:
    """The names that may be protected: most are not, and there may be a million of them."""
    obeyed = folded(paths.name(listing.path)) == CLAUDE
    return [name for name in listing.names if obeyed or not name.isascii() or name.lower() in _LAST]


def _named(listing: Listing, last: Iterable[str], *, bare: bool, git_config: bool) -> Iterator[str]:
    """The protected names directly in a directory."""
    for name in last:
        path, plain = paths.join(listing.path, name), folded(name)
        if (
            named_below(path, listing.path, git_config=git_config)
            or (bare and plain in _OF_REPOSITORY and not (git_config and plain in SETTINGS))
            # A file or a link of such a name says where a repository, or what else it stands for, is.
            or (plain in CARRIERS and name not in listing.directories)
        ):
            yield path


def _head(listing: Listing, *, git_config: bool) -> str:
    """The `HEAD` of a directory that git takes for a repository whatever it is called, empty where it does not."""
    present = {folded(name): name for name in listing.names}
    if not (present.keys() >= _DATA or ELSEWHERE in present):
        return ""
    # Git makes such a directory for a linked checkout, and whoever may write settings needs no other.
    linked = git_config and tuple(folded(part) for part in paths.parts(listing.path)[-3:-1]) == _LINKED
    return "" if linked else present.get(_HEAD, "")
