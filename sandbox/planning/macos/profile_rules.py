"""The rules of a macOS profile, and the subjects that each can have. Pure.

An operation is one of seatbelt's (`file-read*`, `mach-lookup`, ...). Paths are compared with no link left.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sandbox.base import globs, paths
from sandbox.planning.macos.pattern_regex import expression, itself
from sandbox.planning.operations import Origin, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


READ = "file-read*"
WRITE = "file-write*"
LOOK = "file-read-metadata"
#: The operation of executing a program, which does not read it, so that hidden programs are kept from it as well.
EXEC = "process-exec*"

#: The most filters of a rule that are described; the rest are a count.
_TOLD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The subject of a rule; one of its filters has to match."""

    def covers(self, path: str, *, directory: bool) -> bool:
        """Whether a path is among the filter's subjects."""
        del path, directory
        return False

    def describe(self) -> str:
        """A noun phrase."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class At(Filter):
    """One path, and nothing below it.

    Attributes:
        only_directories: whether only a directory there is meant.
    """

    path: str
    only_directories: bool = False

    def covers(self, path: str, *, directory: bool) -> bool:
        return path == self.path and (directory or not self.only_directories)

    def describe(self) -> str:
        return f"{shown(self.path)} itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Below(Filter):
    """One path, and everything below it."""

    path: str

    def covers(self, path: str, *, directory: bool) -> bool:
        del directory
        return paths.at_or_under(path, self.path)

    def describe(self) -> str:
        return f"{shown(self.path)} and everything in it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching(Filter):
    """Every path a pattern matches, whenever it is made, and everything below.

    Attributes:
        pattern: absolute, in grant syntax; one that ends in `/` matches directories.
    """

    pattern: str

    def covers(self, path: str, *, directory: bool) -> bool:
        matches = _matcher(self.pattern.rstrip("/"))
        if matches(path):
            return directory or not self.pattern.endswith("/")
        return any(map(matches, paths.parents(path)))

    @property
    def expression(self) -> str:
        """The expression for the matches; of a pattern of directories, without the directories themselves."""
        return expression(self.pattern)

    @property
    def directories(self) -> str:
        """The expression for the directories themselves; empty for a pattern that matches other files too."""
        return itself(self.pattern) if self.pattern.endswith("/") else ""

    def describe(self) -> str:
        return f"whatever matches {shown(self.pattern)}, and everything in it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression(Filter):
    """Every path a regular expression matches.

    Attributes:
        text: anchored.
        about: those paths as a noun phrase, for people.
        only_directories: whether only directories are meant.
    """

    text: str
    about: str
    only_directories: bool = False

    def covers(self, path: str, *, directory: bool) -> bool:
        if self.only_directories and not directory:
            return False
        return _compiled(self.text)(path) is not None

    def describe(self) -> str:
        return self.about


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(Filter):
    """A subject that is no path.

    Attributes:
        words: the filter's name and its arguments. Each argument is a string, a symbol that begins with a quote
            character, or a filter inside this one.
    """

    words: tuple[str | Plain, ...]

    def describe(self) -> str:
        name, *rest = self.words
        said = " ".join(one.describe() if isinstance(one, Plain) else one.lstrip("'") for one in rest)
        return f"{name} {said}".strip()


def plain(*words: str | Plain) -> Plain:
    """The filter of these words."""
    return Plain(words=words)


def each(name: str, values: Iterable[str]) -> tuple[Plain, ...]:
    """A filter of one name for each value."""
    return tuple(plain(name, value) for value in values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of a profile.

    Attributes:
        operations: seatbelt's names.
        filters: of which one has to match; none match everything.
    """

    action: Literal["allow", "deny"]
    operations: tuple[str, ...]
    filters: tuple[Filter, ...] = ()
    origin: Origin = field(default_factory=Origin)

    def describe(self) -> str:
        """One line for people."""
        told = [one.describe() for one in self.filters[:_TOLD]]
        more = len(self.filters) - len(told)
        what = " or ".join((*told, *([f"{more} more"] if more else []))) or "anything"
        return f"{self.action} {' '.join(self.operations)} of {what}"

    def about(self, operation: str) -> bool:
        """Whether the rule says anything about an operation."""
        return any(
            one == operation or (one.endswith("*") and operation.startswith(one[:-1])) for one in self.operations
        )

    def covers(self, path: str, *, directory: bool) -> bool:
        """Whether the rule says anything about a path."""
        return not self.filters or any(one.covers(path, directory=directory) for one in self.filters)


@functools.lru_cache(maxsize=1024)
def _matcher(pattern: str) -> globs.Matcher:
    return globs.matcher((pattern,))


@functools.lru_cache(maxsize=1024)
def _compiled(text: str) -> Callable[[str], object]:
    # `$` of Python matches before a last newline as well.
    return re.compile(text.replace("(/|$)", r"(/|\Z)").removesuffix("$") + (r"\Z" if text.endswith("$") else "")).match
