"""A macOS plan: rules in the order they are written down, and every answer that follows from them. Pure.

The last rule that matches decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.contract.config import Reach
from sandbox.planning.macos.profile_rules import LOOK
from sandbox.planning.operations import Make
from sandbox.request.protected_names import ProtectedNames

if TYPE_CHECKING:
    from sandbox.base.host_facts import Files
    from sandbox.planning.macos.profile_rules import Rule
    from sandbox.planning.operations import Operation


@dataclass(frozen=True, kw_only=True)
class MacPlan:
    """The rules that wall one attempt in on macOS.

    Attributes:
        rules: in order; an operation that none matches is denied.
        operations: directories made on the host first, and the names they are for.
        inert: grants that name nothing on the host, each as its field and its path.
        executed: names no task makes or changes, wherever it may write.
        pending: the rule about the task's own proxy that is added once the proxy listens, for people; empty where there
            is none, or where it listens already.
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
        """The rule that decides about an operation on a path; `None` where no rule matches, which denies it."""
        for rule in reversed(self.rules):
            if rule.about(operation) and rule.covers(real, directory=directory):
                return rule
        return None

    def allows(self, operation: str, real: str, *, directory: bool = True) -> bool:
        """Whether an operation on a path that has no link left is allowed."""
        rule = self.decided_by(real, operation, directory=directory)
        return rule is not None and rule.action == "allow"

    def reach(self, real: str, *, directory: bool = True) -> Reach:
        """The most the task can do with a path that has no link left.

        Args:
            real: the path.
            directory: whether a directory is there; some rules are about directories alone.
        """
        if self.allows("file-write-data", real, directory=directory):
            return Reach.READ if self.executed.protects(real) else Reach.WRITE
        return Reach.READ if self.allows(LOOK, real, directory=directory) else Reach.HIDDEN

    def could_be_read(self, _real: str) -> bool:
        """False: a rule covers paths that are not there as well, and `reach` tells of it."""
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
        """The most the task can do with an absolute path as it spells it, links followed as the task would.

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
