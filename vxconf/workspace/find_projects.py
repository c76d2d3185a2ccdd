"""The search for the directories of a workspace that are projects; it follows no link.

The search skips hidden directories, `node_modules` and virtual environments. A workspace with more directories than
`BOUND` is refused: each project is a wall to the others, and a project that was missed would be a missing wall.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from sandbox.base.globs import escape, matcher
from vxconf.workspace.members import MemberGlobs, member_globs
from vxconf.workspace.root import CONFIG_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from vxconf.workspace.root import Root

#: The most directories one search looks into.
BOUND = 200_000

_TOML, _JSON = CONFIG_NAMES
_SKIPPED = frozenset({"node_modules", "__pycache__"})


#: Names that are probably meant to be a task file, and are not read.
_MISNAMED = frozenset(
    {
        *("VX.toml", "Vx.toml", "vx.TOML", "VX.TOML", "VX.json", "Vx.json", "vx.JSON", "VX.JSON"),
        *("vx.jsonc", "vx.json5", "vx.yaml", "vx.yml", ".vx.toml", ".vx.json", "vx.toml.txt", "vx.tml"),
    }
)


class Misnamed(NamedTuple):
    """A file that is probably meant to be a task file.

    Attributes:
        path: the absolute path.
        remedy: what to do, as a clause.
    """

    path: str
    remedy: str


class TooManyDirectories(Exception):
    """A search met `BOUND`.

    Attributes:
        directory: the directory the search began in.
    """

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.directory = directory


class ProjectFinder:
    """Finds the projects of one workspace; each directory is searched at most once."""

    def __init__(self, root: Root, *, bound: int = BOUND) -> None:
        self._root = root
        self._bound = bound
        self._below: dict[str, tuple[str, ...]] = {}
        #: The files that are probably meant to be task files, in the directories searched so far.
        self.misnamed: list[Misnamed] = []

    @cached_property
    def members(self) -> MemberGlobs:
        """The members that the workspace's own file names."""
        return member_globs(self._root)

    def all(self) -> tuple[str, ...]:
        """Every project, absolute and canonical, sorted; the root is among them when it is a project.

        Raises:
            TooManyDirectories: the workspace holds more directories than the bound.
        """
        root = self._root.path
        below = self.below(root)
        return (root, *below) if self._is_project(root, _names(root)) else below

    def below(self, directory: str) -> tuple[str, ...]:
        """The projects strictly inside a directory, sorted.

        Raises:
            TooManyDirectories: the directory holds more directories than the bound.
        """
        known = self._below.get(self._root.path)
        if known is not None and directory != self._root.path:
            if directory not in self._holders:
                return ()
            prefix = directory + "/"
            first = bisect_left(known, prefix)
            return known[first : bisect_left(known, directory + "0", first)]  # "0" follows "/"
        if directory not in self._below:
            self._below[directory] = self._walk(directory)
        return self._below[directory]

    @cached_property
    def _holders(self) -> frozenset[str]:
        """Every directory above a project, once the whole workspace was searched."""
        found: set[str] = set()
        for directory in self._below[self._root.path]:
            above = directory.rpartition("/")[0]
            while above and above not in found:
                found.add(above)
                above = above.rpartition("/")[0]
        return frozenset(found)

    def is_project(self, directory: str) -> bool:
        """Whether a canonical directory of the workspace is a project."""
        root = self._root.path
        inside = directory == root or directory.startswith(root + "/")
        return inside and self._is_project(directory, _names(directory))

    def enclosing(self, directory: str) -> str | None:
        """The innermost project that holds a directory, or is it; `None` when no project of the workspace does."""
        root = self._root.path
        while directory == root or directory.startswith(root + "/"):
            if self._is_project(directory, _names(directory)):
                return directory
            directory = os.path.dirname(directory)
        return None

    def _walk(self, start: str) -> tuple[str, ...]:
        found: list[str] = []
        waiting = [start]
        looked = 0
        while waiting:
            directory = waiting.pop()
            looked += 1
            if looked > self._bound:
                raise TooManyDirectories(start)
            try:
                # the list reads the directory to its end, which closes it
                entries = list(os.scandir(directory))
            except OSError:
                # a directory that cannot be listed holds no project anybody could use
                continue
            names = [entry.name for entry in entries]
            if not _MISNAMED.isdisjoint(names):
                self.misnamed += misnamed_in(directory, names)
            if directory != start:
                if "pyvenv.cfg" in names:
                    continue
                if self._is_project(directory, names):
                    found.append(directory)
            waiting += [
                entry.path
                for entry in entries
                if entry.is_dir(follow_symlinks=False) and entry.name[0] != "." and entry.name not in _SKIPPED
            ]
        return tuple(sorted(found))

    def _is_project(self, directory: str, names: list[str]) -> bool:
        if _TOML in names or _JSON in names:
            return True
        manifest, root = self.members.manifest, self._root.path
        if directory == root or (manifest and manifest not in names):
            return False
        # the depth is compared first: most directories lie deeper than any glob reaches
        depth = directory.count("/") - root.count("/")
        return (self._depths is None or depth in self._depths) and self._named(directory)

    @cached_property
    def _named(self) -> Callable[[str], bool]:
        """The test whether the workspace's globs name a directory."""
        root = self._root.path
        anchor = escape(root) + "/"
        included = matcher(tuple(anchor + glob for glob in self.members.include))
        excluded = matcher(tuple(anchor + glob for glob in self.members.exclude))
        return lambda directory: included(directory) and not excluded(directory)

    @cached_property
    def _depths(self) -> frozenset[int] | None:
        """The depths below the root that the workspace's globs reach; `None` for any depth."""
        globs = self.members.include
        if any("**" in glob or "{" in glob for glob in globs):
            return None
        return frozenset(glob.count("/") + 1 for glob in globs)


def misnamed_in(directory: str, names: Iterable[str] | None = None) -> Iterator[Misnamed]:
    """The files of a directory that are probably meant to be its task file; none beside one.

    Args:
        directory: the absolute path.
        names: what the directory holds, if that is known.
    """
    listed = sorted(_names(directory) if names is None else names)
    if _TOML in listed or _JSON in listed:
        return
    for name in listed:
        if name not in _MISNAMED:
            continue
        ending = name.lower().removesuffix(".txt").rpartition(".")[2]
        if ending in {"yaml", "yml"}:
            remedy = "write it as TOML in vx.toml"
        elif ending in {"jsonc", "json5"}:
            remedy = "name it vx.json and leave comments out, or write it as TOML in vx.toml"
        else:
            remedy = f"name it vx.{'json' if ending == 'json' else 'toml'}"
        yield Misnamed(f"{directory.rstrip('/')}/{name}", remedy)


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except (OSError, ValueError):  # a path with NUL in it, which the rules on texts refuse, is no path
        return []
