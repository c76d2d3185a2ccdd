"""A file system in memory, for rooms that take `Files`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from sandbox.base import paths
from sandbox.base.host_facts import Kind, Listing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@dataclass
class MemoryFiles:
    """Directories, files, links and others by absolute path; parents come with what is in them."""

    kinds: dict[str, Kind] = field(default_factory=lambda: {"/": Kind.DIRECTORY})
    links: dict[str, str] = field(default_factory=dict)
    children: dict[str, set[str]] = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)
    looked: int = 0

    @classmethod
    def of(cls, *names: str, links: Mapping[str, str] | None = None, texts: Mapping[str, str] | None = None) -> Self:
        """Names ending in `/` are directories, in `=` are sockets, the rest are files; `texts` are files with text."""
        files = cls()
        for name in names:
            if name.endswith("/"):
                files.add(name.rstrip("/") or "/", Kind.DIRECTORY)
            elif name.endswith("="):
                files.add(name[:-1], Kind.OTHER)
            else:
                files.add(name, Kind.FILE)
        for place, text in (links or {}).items():
            files.add(place, Kind.LINK)
            files.links[place] = text
        for place, text in (texts or {}).items():
            files.add(place, Kind.FILE)
            files.texts[place] = text.encode()
        return files

    def add(self, path: str, kind: Kind) -> None:
        while path != "/":
            known = self.kinds.setdefault(path, kind)
            assert known is kind, f"{path} is a {known.value}"
            directory, _, name = path.rpartition("/")
            self.children.setdefault(directory or "/", set()).add(name)
            path, kind = directory or "/", Kind.DIRECTORY

    def kind(self, path: str) -> Kind | None:
        self.looked += 1
        return self.kinds.get(path)

    def readlink(self, path: str) -> str:
        return self.links[path]

    def entries(self, path: str) -> tuple[str, ...]:
        names = tuple(sorted(self.children.get(path, ())))
        self.looked += len(names)
        return names

    def below(self, directory: str, enters: Callable[[str], bool]) -> Iterator[Listing]:
        todo = [directory] if self.kind(directory) is Kind.DIRECTORY else []
        while todo:
            here = todo.pop()
            names = self.entries(here)
            inside = [name for name in names if self.kind(paths.join(here, name)) is Kind.DIRECTORY]
            yield Listing(here, names, inside)
            todo += [path for name in inside if enters(path := paths.join(here, name))]

    def read(self, path: str, limit: int) -> bytes:
        return self.texts.get(path, b"")[:limit]
