"""Names that other programs execute or obey when they meet them: no task may make or change one. Pure.

A shell, an editor, an agent or git runs what such a file says, outside every sandbox. Three things keep a task from
writing one in a directory it may write: what exists down to a few levels below the workspace root is laid over
read-only, its directories pinned so that they cannot be renamed away; a call that would make or change one, at any
depth, is refused; and what was made all the same is taken away when the run ends.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.contract.intents import Intent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.base.host_facts import Files

#: Files by name, and whatever is in a directory of that name. Every name in this file is compared without regard to
#: case: some file systems do not have any.
FILES = frozenset(
    {
        ".gitconfig",
        ".gitmodules",
        ".bashrc",
        ".bash_profile",
        ".zshrc",
        ".zprofile",
        ".profile",
        ".ripgreprc",
        ".mcp.json",
    }
)
#: Directories, whole.
DIRECTORIES = ((".vscode",), (".idea",), (".claude", "commands"), (".claude", "agents"))
#: Entries of a repository's directory: what it runs, and the settings that name what it runs.
HOOKS = "hooks"
SETTINGS = frozenset({"config", "config.worktree"})
#: Says where the settings and hooks of a repository are instead. A linked checkout's own is git's business.
ELSEWHERE = "commondir"
#: How many levels below the workspace root existing ones are looked for.
LEVELS = 3
#: Directory entries looked at in one run; a task that may write more has what is deeper judged at the call alone.
ENTRIES = 250_000

_GIT = ".git"
# a submodule's repository lies in its parent's; what is in these is no repository
_MODULES = "modules"
NO_REPOSITORY = frozenset({"refs", "logs", "objects", "info", "lfs", "rr-cache", "worktrees"})
_WORKTREES = "worktrees"
_HOLD_REPOSITORIES = frozenset({_MODULES, _WORKTREES})
#: What is none itself, but brings one along when it is renamed or linked into place. One that is a file or a link says
#: where another is.
CARRIERS = frozenset({_GIT, ".claude"})

_MAKES_NEW = frozenset({Intent.CREATE, Intent.MKDIR, Intent.LINK})
_NEEDS_TARGET = frozenset({Intent.WRITE, Intent.REMOVE, Intent.ATTRIBUTES})
_CHANGES = frozenset({*_MAKES_NEW, *_NEEDS_TARGET, Intent.RENAME})


class ProtectedNames(NamedTuple):
    """The names of one run; it can be pickled, and needs no library where it is used.

    Attributes:
        roots: canonical paths in which the task may write, or which it may.
        heads: directories in which it may write what a pattern matches, and which hold more than that.
        git_config: whether a repository's own settings may be written.
        kept: what existed at the start, and is laid over where it is no link.
    """

    roots: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    git_config: bool = False
    kept: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anywhere to make one."""
        return bool(self.roots or self.heads)

    def protects(self, path: str) -> bool:
        """Whether a path is such a name, or in one, inside what the task may write."""
        return path in self.kept or any(
            named_below(path, root, git_config=self.git_config)
            for root in (*self.roots, *self.heads)
            if paths.under(path, root)
        )

    def refuses(self, operation: str, intent: Intent, path: str, *, exists: bool, brings: bool = False) -> bool:
        """Whether a call that means to change a path is refused for what the path is called.

        Args:
            operation: the call.
            intent: what it means to do.
            path: with no link left.
            exists: whether the host has it.
            brings: whether a directory is renamed to it, with all that is in there.
        """
        if operation in {"link", "linkat"} and intent is Intent.PROBE:
            # a second name of the same file would be one nobody looks at
            return exists and self.protects(path)
        if intent not in _CHANGES or (intent in _MAKES_NEW and exists) or (intent in _NEEDS_TARGET and not exists):
            return False
        if self.protects(path):
            return True
        if intent in {Intent.MKDIR, Intent.ATTRIBUTES} or not carries(path, brings=brings):
            return False
        if intent is Intent.REMOVE and not operation.startswith("rename"):
            return False
        return any(paths.under(path, root) for root in (*self.roots, *self.heads))


def carries(path: str, *, brings: bool) -> bool:
    """Whether what is renamed or linked to a path may bring such names along."""
    parts = [folded(part) for part in paths.parts(path)]
    if not parts or parts[-1] in CARRIERS:
        return bool(parts)
    # where repositories are kept in one: a directory may be a whole one, or hold some
    return brings and any(
        first == _GIT and second in _HOLD_REPOSITORIES and NO_REPOSITORY.isdisjoint(parts[at + 2 :])
        for at, (first, second) in enumerate(itertools.pairwise(parts))
    )


def folded(name: str) -> str:
    """A name as a file system without case compares it, at its most generous."""
    if name.isascii():
        return name.lower()
    import unicodedata

    plain = unicodedata.normalize("NFKD", name).casefold()
    # such file systems pass characters over that show nothing
    return "".join(c for c in plain if unicodedata.category(c) not in {"Cf", "Mn"})


def named_below(path: str, directory: str, *, git_config: bool) -> bool:
    """Whether such a name ends in a path below a directory; its beginning may be above."""
    parts = [folded(part) for part in paths.parts(path)]
    start = len(paths.parts(directory))
    return any(end > start for end in _ends(parts, git_config=git_config))


def _ends(parts: list[str], *, git_config: bool) -> Iterator[int]:
    """How many components each such name and what leads to it take."""
    for at, part in enumerate(parts):
        if part in FILES:
            yield at + 1
        for directory in DIRECTORIES:
            if tuple(parts[at : at + len(directory)]) == directory:
                yield at + len(directory)
        if part == _GIT:
            end = _repository_entry(parts, at + 1, git_config=git_config)
            if end:
                yield end


def _repository_entry(parts: list[str], at: int, *, git_config: bool) -> int:
    """Where a repository's hooks or settings end, `at` being the first component in it; 0 for anything else."""
    if at < len(parts) and parts[at] == _WORKTREES:
        at += 2
        if at < len(parts) and parts[at] == ELSEWHERE:
            return 0
    elif at < len(parts) and parts[at] == _MODULES:
        # modules/NAME/..., and a name may have several components
        for index in range(at + 2, len(parts)):
            if parts[index - 1] in NO_REPOSITORY:
                return 0
            if _is_entry(parts[index], git_config=git_config):
                return index + 1
        return 0
    return at + 1 if at < len(parts) and _is_entry(parts[at], git_config=git_config) else 0


def _is_entry(name: str, *, git_config: bool) -> bool:
    return name in {HOOKS, ELSEWHERE} or (name in SETTINGS and not git_config)


def existing(roots: Iterable[str], workspace: str, files: Files, *, git_config: bool) -> tuple[str, ...]:
    """Such names that exist in directories of the workspace, sorted.

    They are looked for down to `LEVELS` below its root, and in the directories themselves wherever they lie.
    `node_modules` and what git ignores are looked through as anything else, and a link counts by its name.
    """
    found: set[str] = set()
    looked = 0
    for root in _outermost(roots):
        todo = [root] if paths.at_or_under(root, workspace) and files.kind(root) is Kind.DIRECTORY else []
        while todo:
            directory = todo.pop()
            depth = len(paths.parts(directory)) - len(paths.parts(workspace))
            # what is granted is looked into wherever it lies
            if depth >= LEVELS and directory != root and folded(paths.name(directory)) not in CARRIERS:
                continue
            names = files.entries(directory)
            looked += len(names)
            if looked > ENTRIES:
                return tuple(sorted(found))
            for name in names:
                path = paths.join(directory, name)
                if named_below(path, directory, git_config=git_config):
                    found.add(path)
                elif files.kind(path) is Kind.DIRECTORY:
                    if folded(paths.name(directory)) not in CARRIERS:
                        todo.append(path)
                elif folded(name) in CARRIERS:
                    # a file or a link that says where a repository is
                    found.add(path)
    return tuple(sorted(found))


def _outermost(directories: Iterable[str]) -> list[str]:
    distinct = list(dict.fromkeys(directories))
    return [path for path in distinct if not any(paths.under(path, other) for other in distinct)]
