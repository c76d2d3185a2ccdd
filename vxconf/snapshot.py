"""One look at the file system: each name is asked for once, however many grants lead through it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.host import HostFiles

if TYPE_CHECKING:
    from sandbox.facts import Kind


class Snapshot(HostFiles):
    """The host's files as they were when each was first asked for."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind | None] = {}
        self._links: dict[str, str] = {}
        self._entries: dict[str, tuple[str, ...]] = {}
        self._texts: dict[tuple[str, int], bytes] = {}

    def kind(self, path: str) -> Kind | None:
        """The kind of the name itself."""
        try:
            return self._kinds[path]
        except KeyError:
            found = self._kinds[path] = super().kind(path)
            return found

    def readlink(self, path: str) -> str:
        """The text of a link."""
        if path not in self._links:
            self._links[path] = super().readlink(path)
        return self._links[path]

    def entries(self, path: str) -> tuple[str, ...]:
        """Sorted names in a directory; empty when it cannot be listed."""
        if path not in self._entries:
            self._entries[path] = super().entries(path)
        return self._entries[path]

    def read(self, path: str, limit: int) -> bytes:
        """The first bytes of a plain file."""
        if (path, limit) not in self._texts:
            self._texts[path, limit] = super().read(path, limit)
        return self._texts[path, limit]
