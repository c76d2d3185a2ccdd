"""The read grants of a request, put into a plan of Linux: paths, and the present hits of patterns. Pure."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract.errors import Refusal
from sandbox.planning.operations import Origin
from sandbox.request import grant_refusals

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.base.host_facts import Files
    from sandbox.planning.mark_tree import MarkTree
    from sandbox.request.request import Request

LINK = Origin(reason="what is granted is reached through this link")


class ReadGrants:
    """Read grants, one after the other, each put into the tree, the inert ones or the refusals."""

    def __init__(self, request: Request, files: Files, tree: MarkTree) -> None:
        self.inert: list[tuple[str, str]] = []
        self.refusals: list[Refusal] = []
        self._files = files
        self._tree = tree
        self._walled = _walled(request)
        self._temp_root = request.facts.temp_root
        self._workspace = request.config.workspace
        self._real: dict[str, bool] = {}
        self._leaving: set[str] = set()

    def grant(self, entry: str, field: str) -> None:
        """Take one entry of the config."""
        if globs.is_plain(entry) and entry[0] == "/":
            self._path(entry, entry.rstrip("/") or "/", field)
            return
        try:
            for grant in grant_refusals.spelled(entry, field):
                if globs.has_wildcard(grant):
                    self._pattern(grant, field)
                else:
                    self._path(grant, globs.path_of(grant), field)
        except Refusal as refusal:
            self.refusals.append(grant_refusals.placed(refusal, field))

    def _canonical(self, path: str) -> str:
        """The path as `paths.canonical` gives it; the directory above is looked at once for all that is in it."""
        above, _, name = path.rpartition("/")
        if above not in self._real:
            self._real[above] = paths.canonical(above or "/", self._files) == (above or "/")
        if self._real[above] and name not in {"", ".", ".."} and self._files.kind(path) is not Kind.LINK:
            return path
        return paths.canonical(path, self._files)

    def _path(self, grant: str, path: str, field: str) -> None:
        if self._canonical(path) != path:
            self.refusals.append(grant_refusals.not_canonical(grant, path, field, self._files))
            return
        if path.startswith(self._temp_root) and grant_refusals.is_others_temporary(
            path, self._temp_root, self._workspace
        ):
            self.refusals.append(grant_refusals.others_temporary(f'grant "{grant}"', self._temp_root, field))
            return
        kind = self._files.kind(path)
        # A loop of links names nothing, and a file is not the directory that was granted.
        if kind is None or kind is Kind.LINK or (grant.endswith("/") and kind is not Kind.DIRECTORY):
            self.inert.append((field, path))
            return
        self._tree.read(path, Origin(field=field))

    def _pattern(self, grant: str, field: str) -> None:
        base = globs.literal_base(grant)
        if paths.canonical(base, self._files) != base:
            self.refusals.append(grant_refusals.not_canonical(grant, base, field, self._files))
            return
        found, origin = False, Origin(field=field)
        for hit in globs.expand(grant, self._files, skip=self._walled, leaving=self._leaving):
            real = self._canonical(hit)
            if self._files.kind(real) not in {Kind.FILE, Kind.DIRECTORY}:
                self._leaving.add(hit)
                continue
            found = True
            self._tree.read(real, origin)
            if real == hit:
                continue
            for place, target in paths.links_on(hit, self._files):
                self._tree.link(place, target, LINK)
        if not found:
            self.inert.append((field, grant))

    def links(self) -> None:
        """Have the links a pattern matches that lead to what another grant opens; call once every grant was taken."""
        for hit in sorted(self._leaving):
            real = self._canonical(hit)
            if real != hit and self._tree.opens(real):
                for place, target in paths.links_on(hit, self._files):
                    self._tree.link(place, target, LINK)


def _walled(request: Request) -> Callable[[str], bool]:
    hidden = frozenset(wall.path for wall in (*request.walls, *request.stores))
    workspace, temp_root = request.config.workspace, request.facts.temp_root

    @functools.cache
    def inside(directory: str) -> bool:
        return directory in hidden or any(above in hidden for above in paths.parents(directory))

    def walled(path: str) -> bool:
        if grant_refusals.is_others_temporary(path, temp_root, workspace):
            return True
        return path in hidden or inside(paths.parent(path))

    return walled
