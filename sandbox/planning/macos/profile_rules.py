"""A macOS plan: rules in the order they are written down, of which the last that matches decides; and what follows.

An operation is one of seatbelt's (`file-read*`, `mach-lookup`, ...). Paths are compared with no link left.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract.config import Reach
from sandbox.planning.macos.path_regex import expression, itself
from sandbox.planning.operations import Make, Origin, shown
from sandbox.request.protected_names import ProtectedNames

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.base.host_facts import Files
    from sandbox.planning.operations import Operation

READ = "file-read*"
WRITE = "file-write*"
LOOK = "file-read-metadata"
#: A program is executed without being read, so what is hidden has to be kept from that as well.
EXEC = "process-exec*"

#: Of a rule's filters so many are described; the rest are a count.
_TOLD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a rule is about; one of its filters has to match."""

    def covers(self, path: str, *, directory: bool) -> bool:
        """Whether a path is among what it is about."""
        del path, directory
        return False

    def describe(self) -> str:
        """A noun phrase."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class At(Filter):
    """One path, and nothing below it.

    Attributes:
        only_directories: whether another file there is not meant.
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
    """What a pattern matches, whenever it is made, and everything below that.

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
        """For what it matches, but the directories themselves where it names those."""
        return expression(self.pattern)

    @property
    def directories(self) -> str:
        """For the directories themselves, empty where it names more."""
        return itself(self.pattern) if self.pattern.endswith("/") else ""

    def describe(self) -> str:
        return f"whatever matches {shown(self.pattern)}, and everything in it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression(Filter):
    """Every path a regular expression matches.

    Attributes:
        text: anchored.
        about: what that is, for people.
        only_directories: whether other files are not meant.
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
    """Something that is no path.

    Attributes:
        words: the filter's name and its arguments; what follows the name is a string each, but for symbols that
            begin with a quote character, and filters inside this one.
    """

    words: tuple[str | Plain, ...]

    def describe(self) -> str:
        name, *rest = self.words
        said = " ".join(one.describe() if isinstance(one, Plain) else one.lstrip("'") for one in rest)
        return f"{name} {said}".strip()


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
        """Whether it says anything about an operation."""
        return any(
            one == operation or (one.endswith("*") and operation.startswith(one[:-1])) for one in self.operations
        )

    def covers(self, path: str, *, directory: bool) -> bool:
        """Whether it says anything about a path."""
        return not self.filters or any(one.covers(path, directory=directory) for one in self.filters)


@dataclass(frozen=True, kw_only=True)
class MacPlan:
    """How one attempt is walled in on macOS.

    Attributes:
        rules: in order; what none matches is denied.
        operations: what is made on the host first, and the names that is for.
        inert: grants that name nothing on the host, each as its field and its path.
        executed: names no task makes or changes, wherever it may write.
        pending: what the profile will say of the task's own front once that listens, for people; empty where it has
            none, or listens already.
    """

    rules: tuple[Rule, ...]
    workspace: str
    project: str
    operations: tuple[Operation, ...] = ()
    inert: tuple[tuple[str, str], ...] = ()
    executed: ProtectedNames = field(default_factory=ProtectedNames)
    pending: str = ""

    @cached_property
    def makes(self) -> tuple[Make, ...]:
        """The directories that are made first."""
        return tuple(one for one in self.operations if isinstance(one, Make))

    def decided_by(self, real: str, operation: str, *, directory: bool = True) -> Rule | None:
        """The rule that decides about an operation on a path; none for what is denied because nothing allows it."""
        for rule in reversed(self.rules):
            if rule.about(operation) and rule.covers(real, directory=directory):
                return rule
        return None

    def allows(self, operation: str, real: str, *, directory: bool = True) -> bool:
        """Whether an operation on a path that has no link left is allowed."""
        rule = self.decided_by(real, operation, directory=directory)
        return rule is not None and rule.action == "allow"

    def reach(self, real: str, *, directory: bool = True) -> Reach:
        """What the task can do with a path that has no link left.

        Args:
            real: the path.
            directory: whether a directory is there; some rules are about directories alone.
        """
        if self.allows("file-write-data", real, directory=directory):
            return Reach.READ if self.executed.protects(real) else Reach.WRITE
        return Reach.READ if self.allows(LOOK, real, directory=directory) else Reach.HIDDEN

    def could_be_read(self, _real: str) -> bool:
        """False: a rule covers what is not there as well, and `reach` tells of it."""
        return False

    def beside(self, _real: str) -> bool:
        """False: nothing is kept apart from the host."""
        return False

    def stages(self, _real: str) -> bool:
        """False: nothing is kept apart from the host."""
        return False

    def leads(self, _real: str) -> bool:
        """False: a directory is allowed or it is not."""
        return False

    def access(self, path: str, files: Files) -> Reach:
        """What the task can do with an absolute path as it spells it, links followed as the task would.

        A link has to be readable itself; the directories it lies in need not be.
        """

        def link_at(here: str) -> str | None:
            return files.readlink(here) if files.kind(here) is Kind.LINK else None

        def passes(here: str, text: str | None) -> bool:
            return text is None or self.reach(here, directory=False) is not Reach.HIDDEN

        here = paths.follow(path, link_at=link_at, passes=passes)
        if here is None:
            return Reach.HIDDEN
        kind = files.kind(here)
        made = kind is None and any(paths.at_or_under(one.path, here) for one in self.makes)
        return self.reach(here, directory=made or kind is Kind.DIRECTORY)

    def describe(self) -> tuple[str, ...]:
        """One line for each thing made first and each rule, in order."""
        return (*(one.describe() for one in self.makes), *(rule.describe() for rule in self.rules))


@functools.lru_cache(maxsize=1024)
def _matcher(pattern: str) -> globs.Matcher:
    return globs.matcher((pattern,))


@functools.lru_cache(maxsize=1024)
def _compiled(text: str) -> Callable[[str], object]:
    # `$` of Python matches before a last newline as well
    return re.compile(text.replace("(/|$)", r"(/|\Z)").removesuffix("$") + (r"\Z" if text.endswith("$") else "")).match
