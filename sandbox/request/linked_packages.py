"""The directories a task may read since its packages are linked: `node_modules`, `.venv`, workspace members in them.

Rule 1: no link opens the task's own project or what holds it, a repository's data or a cache or what holds one, or a
credential store. An installed link must not hand back what no grant gives.

Rule 2: a task with a cache gets, of the workspace, only directories of projects its key answers for. The others are
withheld: a read there fails, is reported, and the report says how to have the key answer for it.

Rule 3: a link opens only a directory that says of itself that it is what is linked: a package of that name, installed
packages, an environment. It opens no hidden part of the task's own project.

Rule 4: a granted package's own `node_modules` is searched in the same way; a withheld package's is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.request import package_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sandbox.base.host_facts import Files

#: The most bytes of a `.pth` or `direct_url.json` that are read.
_SMALL = 65536
_INTERPRETERS = "python3."


class LinkedProjects(Protocol):
    """The projects of the workspace, as far as linked packages need them; directories are canonical."""

    def is_project(self, directory: str) -> bool:
        """Whether a directory is a project."""

    def below(self, directory: str) -> tuple[str, ...]:
        """The projects strictly inside a directory."""


@dataclass(frozen=True, slots=True)
class ListedProjects:
    """Projects given as a list, canonical."""

    directories: tuple[str, ...] = ()

    def is_project(self, directory: str) -> bool:
        """Whether a directory is a project."""
        return directory in self.directories

    def below(self, directory: str) -> tuple[str, ...]:
        """The projects strictly inside a directory."""
        return tuple(path for path in self.directories if paths.under(path, directory))


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """A linked package that is not opened: the task's cache key does not answer for it, or it is no such package.

    Attributes:
        dir: its directory, canonical.
        name: as installed, such as `@acme/dates`.
        target: the directory as seen from the workspace root; absolute outside.
        link: where it is linked, canonical but for the link itself.
        project: whether a project is at the directory.
        owner: the project it is, or is part of, as seen from the workspace root; empty outside of any.
        unnamed: whether nothing in the directory says that it is the package it is linked as.
    """

    dir: str
    name: str
    target: str
    link: str
    project: bool
    owner: str = ""
    unnamed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedDirectory:
    """A linked directory that may be read; `place` is where it was found linked, or the directory itself."""

    path: str
    place: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The facts that decide about a link's target; every path canonical.

    Attributes:
        closed: walls that every task has.
        stores: credential stores.
        around: checkouts around the workspace, which a key does not answer for either.
        keyed: directories of the projects the key answers for; `None` for a task without a cache.
    """

    project: str
    root: str
    home: str
    temp_root: str
    closed: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    around: tuple[str, ...] = ()
    keyed: frozenset[str] | None = None

    def never(self, target: str) -> bool:
        """Whether no link may open a directory, whatever the cache key says."""
        if paths.at_or_under(self.project, target) or paths.at_or_under(self.root, target):
            return True
        if paths.at_or_under(self.home, target):
            return True
        if any(paths.at_or_under(target, wall) or paths.at_or_under(wall, target) for wall in self.closed):
            return True
        kept = (*self.stores, self.temp_root) if not paths.under(target, self.root) else self.stores
        return any(paths.at_or_under(target, store) for store in kept)

    def answered(self, target: str) -> bool:
        """Whether a key answers for what is in a directory, or none has to."""
        if self.keyed is None or target in self.keyed:
            return True
        return not any(paths.at_or_under(target, place) for place in (self.root, *self.around))


@dataclass(slots=True)
class Search:
    """One search for linked packages; results are in `granted` and `withheld`, in the order they were met.

    Attributes:
        asked: directories an interpreter asks for whenever it starts, whether or not anything is imported from them.
    """

    limits: Limits
    files: Files
    projects: LinkedProjects
    granted: dict[str, LinkedDirectory] = field(default_factory=dict)
    withheld: dict[str, Withheld] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    _looked: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Look through the project and the workspace root."""
        limits = self.limits
        for base in dict.fromkeys((limits.project, limits.root)):
            self._modules(paths.join(base, "node_modules"))
        for base in dict.fromkeys((limits.project, limits.root)):
            self._environment(paths.join(base, ".venv"))

    def _whole(self, place: str, reason: str, is_one: Callable[[str, Files], bool]) -> str | None:
        """Take the directory at a place, which may be a link to another such; its real path when it may be read."""
        real = paths.canonical(place, self.files)
        if self.files.kind(real) is not Kind.DIRECTORY:
            return None
        if real == place or self._covers(real):
            if not self._covers(real):
                self._grant(real, place, reason)
            return real
        held = self.projects.below(self.limits.project)
        if any(paths.at_or_under(real, other) or paths.at_or_under(other, real) for other in held):
            return None
        return self._target(real, place, paths.name(place), reason, named=is_one(real, self.files))

    def _modules(self, place: str) -> None:
        """Look through a `node_modules`: each package linked in it, one level deep and one in each scope."""
        todo = [place]
        while todo:
            here = todo.pop(0)
            real = self._whole(here, f"the dependencies in {here}", package_names.is_modules)
            if real is None or real in self._looked:
                continue
            self._looked.add(real)
            for name, link in self._packages(real):
                target = paths.canonical(link, self.files)
                if self.files.kind(target) is not Kind.DIRECTORY or self._covers(target):
                    continue
                named = package_names.is_node_package(target, name, here, self.files)
                if self._target(target, link, name, f"the package {name} linked in {here}", named=named) is not None:
                    todo.append(paths.join(target, "node_modules"))

    def _packages(self, modules: str) -> Iterator[tuple[str, str]]:
        for name in self.files.entries(modules):
            entry = paths.join(modules, name)
            if name.startswith("."):
                continue
            kind = self.files.kind(entry)
            if kind is Kind.LINK:
                yield name, entry
            elif kind is Kind.DIRECTORY and name.startswith("@"):
                for inner in self.files.entries(entry):
                    if self.files.kind(paths.join(entry, inner)) is Kind.LINK:
                        yield f"{name}/{inner}", paths.join(entry, inner)

    def _environment(self, place: str) -> None:
        """Look through a virtual environment: each workspace member installed in it to be edited."""
        real = self._whole(place, f"the environment in {place}", package_names.is_environment)
        if real is None or real in self._looked:
            return
        self._looked.add(real)
        libraries = paths.join(real, "lib")
        for version in self.files.entries(libraries):
            if version.startswith(_INTERPRETERS):
                self._site(paths.join(libraries, version, "site-packages"), place)

    def _site(self, site: str, place: str) -> None:
        names = self.files.entries(site)
        members: list[str] = []
        for name in names:
            if name.endswith(".dist-info"):
                record = paths.join(site, name, "direct_url.json")
                directory = _editable(self.files.read(record, _SMALL))
                if directory:
                    target = paths.canonical(directory, self.files)
                    members.append(target)
                    self._member(target, record, (name.partition("-")[0],), place)
        for name in names:
            if name.endswith(".pth"):
                known = package_names.names_of_search_path(name, site, self.files)
                for line in _search_paths(self.files.read(paths.join(site, name), _SMALL)):
                    target = paths.canonical(line if line.startswith("/") else paths.join(site, line), self.files)
                    self.asked.append(target)
                    # A member's own record has decided about its sources already.
                    if not any(paths.at_or_under(target, member) for member in members):
                        self._member(target, paths.join(site, name), known, place)

    def _member(self, target: str, record: str, names: tuple[str, ...], place: str) -> None:
        if self.files.kind(target) is not Kind.DIRECTORY or self._covers(target):
            return
        found = next((name for name in names if package_names.is_python_package(target, name, self.files)), None)
        name = found or (names[0] if names else paths.name(record).removesuffix(".pth"))
        reason = f"the package {name} installed in {place} to be edited"
        answered = self._in_keyed_sources(target)
        self._target(target, record, name, reason, named=found is not None, answered=answered)

    def _target(
        self, target: str, link: str, name: str, reason: str, *, named: bool, answered: bool = False
    ) -> str | None:
        """Grant or withhold a directory; its path when it is granted.

        Args:
            target: canonical.
            link: where it is linked.
            name: as installed.
            reason: a clause for people.
            named: whether the directory says that it is what is linked.
            answered: whether the key is known to answer for it.
        """
        if self.limits.never(target) or self._is_own(target):
            return None
        if named and (answered or self.limits.answered(target)):
            self._grant(target, link, reason)
            return target
        inside = paths.at_or_under(target, self.limits.root)
        self.withheld.setdefault(
            target,
            Withheld(
                dir=target,
                name=name,
                target=paths.relative(target, self.limits.root) if inside else target,
                link=link,
                project=self.projects.is_project(target),
                owner=self._owner(target) if inside else "",
                unnamed=not named,
            ),
        )
        return None

    def _is_own(self, target: str) -> bool:
        """Whether a directory is a part of the task's own project, which its own grants give, and no project in it."""
        inside = any(paths.at_or_under(target, other) for other in self.projects.below(self.limits.project))
        return paths.at_or_under(target, self.limits.project) and not inside

    def _owner(self, target: str) -> str:
        root = self.limits.root
        above = (path for path in (target, *paths.parents(target)) if paths.at_or_under(path, root))
        found = next((path for path in above if self.projects.is_project(path)), None)
        # A task of the project itself makes the key answer for nothing more.
        return "" if found in (None, self.limits.project) else paths.relative(found, root)

    def _in_keyed_sources(self, target: str) -> bool:
        """Whether the sources a search path names belong to a project the key answers for."""
        return any(
            paths.under(target, project)
            and not any(paths.at_or_under(target, other) for other in self.projects.below(project))
            for project in self.limits.keyed or ()
        )

    def _grant(self, path: str, place: str, reason: str) -> None:
        self.granted.setdefault(path, LinkedDirectory(path=path, place=place, reason=reason))

    def _covers(self, path: str) -> bool:
        return path in self.granted or any(above in self.granted for above in paths.parents(path))


def _editable(raw: bytes) -> str:
    """The directory a distribution is edited in, by its `direct_url.json`; empty when it is a copy."""
    if b"editable" not in raw:
        return ""
    import json
    from urllib.parse import unquote, urlsplit

    try:
        data = json.loads(raw)
        how = data["dir_info"]["editable"]
        url = urlsplit(str(data["url"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    if how is not True or url.scheme != "file" or url.netloc not in {"", "localhost"}:
        return ""
    return unquote(url.path, errors="surrogateescape").rstrip("/") if url.path.startswith("/") else ""


def _search_paths(raw: bytes) -> Iterable[str]:
    """The directories a `.pth` file adds to the search path."""
    for line in raw.decode("utf-8", "surrogateescape").splitlines():
        text = line.strip()
        # A line of a `.pth` file that begins with `import` is a program and names no directory (Python's `site`
        # module).
        if text and not text.startswith(("#", "import ", "import\t")) and "\0" not in text:
            yield text
