"""The names a plan serves, those staged beside them, and directories that lead to them: shared rules. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import globs, paths
from sandbox.planning.operations import Name, Names
from sandbox.request.protected_names import ProtectedNames

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.planning.operations import Operation

_REMEMBERED = 4096


class GrantedNames:
    """The names a plan serves; the value can be pickled and needs no library where it is used.

    Args:
        operations: a plan's; all but `Name` and `Names` are passed over.
        executed: names no pattern stands for, whatever it matches.
    """

    def __init__(self, operations: Iterable[Operation] = (), *, executed: ProtectedNames | None = None) -> None:
        self._executed = executed or ProtectedNames()
        self._held: dict[str, set[str]] = {}
        patterns: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for operation in operations:
            if isinstance(operation, Name):
                self._held.setdefault(paths.parent(operation.path), set()).add(paths.name(operation.path))
            elif isinstance(operation, Names):
                patterns.setdefault((operation.path, operation.without), []).append(operation.pattern)
        self._patterns = tuple(
            (head, frozenset(without), globs.matcher(those)) for (head, without), those in patterns.items()
        )
        # A directory that holds such a place is not served whole, or the place would be served as well.
        self._holders = {
            without: frozenset(above for path in without for above in paths.parents(path))
            for _, without, _ in self._patterns
        }
        self._asked: dict[str, tuple[bool, bool]] = {}

    def __bool__(self) -> bool:
        """Whether any name is served at all."""
        return bool(self._held or self._patterns)

    def literal(self, directory: str) -> frozenset[str]:
        """The names directly in `directory` that are granted by name."""
        return frozenset(self._held.get(directory, ()))

    def granted(self, path: str) -> bool:
        """Whether `path` itself is a granted name; names below one do not count."""
        if paths.name(path) in self._held.get(paths.parent(path), ()):
            return True
        return any(
            matches(path) and path not in self._holders[without] and not self._executed.protects(path)
            for head, without, matches in self._patterns
            if path != head and paths.at_or_under(path, head) and not _excluded(path, without)
        )

    def served(self, path: str) -> bool:
        """Whether `path` is a granted name or below one."""
        return self.granted(path) or any(map(self.granted, paths.parents(path)))

    def stages(self, directory: str) -> bool:
        """Whether a granted name may stand directly in `directory`, so that other names there are staged."""
        return directory in self._held or self._leads(directory)[0]

    def beside(self, path: str, *, within: str = "/") -> bool:
        """Whether a name the task makes at `path` is staged, in a directory that may hold a granted name or below one.

        Where the plan places something at `path`, the plan decides instead. `within` is the deepest directory above
        `path` that it places.
        """
        if self.served(path):
            return False
        return any(
            self.stages(paths.parent(place)) and (place == path or not self.leads(place)) and not self._leads_on(place)
            for place in (path, *paths.parents(path))
            if paths.under(place, within)
        )

    def _leads_on(self, place: str) -> bool:
        return any(paths.at_or_under(head, place) for head, _, _ in self._patterns)

    def leads(self, directory: str) -> bool:
        """Whether a pattern may match a name in `directory`, or further below.

        A directory that only leads there, and is no granted name itself, is shown only where it leads to a match.
        """
        return any(self._leads(directory))

    def _leads(self, directory: str) -> tuple[bool, bool]:
        answer = self._asked.get(directory)
        if answer is None:
            answers = [
                those.leads(directory)
                for head, without, those in self._patterns
                if paths.at_or_under(directory, head) and not _excluded(directory, without)
            ]
            answer = any(here for here, _ in answers), any(deeper for _, deeper in answers)
            if len(self._asked) >= _REMEMBERED:
                self._asked.clear()
            self._asked[directory] = answer
        return answer


def _excluded(path: str, without: frozenset[str]) -> bool:
    return bool(without) and (path in without or any(above in without for above in paths.parents(path)))
