"""Names that other programs execute or obey when they meet them: no task may make or change one. Pure.

A shell, an editor, an agent or git runs what such a file says, outside every sandbox. What tasks are granted is such a
name too: vxconf obeys it at the next run. A task writes that one only where its block names the very file.

Two things keep a task from writing one in a directory it may write, at any depth. Names that exist are laid over
read-only, and their directories are pinned so that they cannot be renamed away. A name that is there once the task is
gone, and was not before, is taken away (`sandbox.scratch.quarantine`). Where an observer answers calls, a call that
would make or change one is refused as well, which is the early word.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import paths
from sandbox.contract.intents import Intent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

#: Names of files, and of directories with everything in them. All names in this module are compared without regard to
#: case, since some file systems have none.
FILES = frozenset(
    {
        ".gitconfig",
        ".gitmodules",
        ".bashrc",
        ".bash_aliases",
        ".bash_login",
        ".bash_logout",
        ".bash_profile",
        ".zshrc",
        ".zshenv",
        ".zlogin",
        ".zlogout",
        ".zprofile",
        ".profile",
        ".envrc",
        ".vimrc",
        ".gvimrc",
        ".exrc",
        ".ripgreprc",
        ".mcp.json",
    }
)
#: Directories, whole.
DIRECTORIES = (
    (".vscode",),
    (".idea",),
    (".cursor",),
    (".husky",),
    (".claude", "commands"),
    (".claude", "agents"),
)
#: The beginning and the end of the names of files in `.claude` that name programs to run.
CLAUDE, CLAUDE_SETTINGS = ".claude", ("settings", ".json")
#: The files that say what tasks are granted, and what belongs to their workspace.
POLICY = (("vx.toml",), ("vx.json",), (".vx", "workspace.toml"))
#: Entries of a repository's directory: the hooks it runs, and the settings that name programs to run.
HOOKS = "hooks"
SETTINGS = frozenset({"config", "config.worktree"})
#: The file that says where the settings and hooks of a repository are instead (gitrepository-layout(5)). The one of a
#: linked checkout may be made where a repository's settings may be, which say as much.
ELSEWHERE = "commondir"

_GIT = ".git"
# A submodule's repository lies in `modules` of its parent's; a directory of one of these names is no repository.
_MODULES = "modules"
NO_REPOSITORY = frozenset({"refs", "logs", "objects", "info", "lfs", "rr-cache", "worktrees"})
_WORKTREES = "worktrees"
_HOLD_REPOSITORIES = frozenset({_MODULES, _WORKTREES})
#: Names that are not protected themselves, and bring protected ones along when they are renamed or linked into place. A
#: file or a link of such a name says where a repository is.
CARRIERS = frozenset({_GIT, CLAUDE, ".vx"})

_MAKES_NEW = frozenset({Intent.CREATE, Intent.MKDIR, Intent.LINK})
_NEEDS_TARGET = frozenset({Intent.WRITE, Intent.REMOVE, Intent.ATTRIBUTES})
_CHANGES = frozenset({*_MAKES_NEW, *_NEEDS_TARGET, Intent.RENAME})


class ProtectedNames(NamedTuple):
    """The protected names of one run; the value can be pickled and needs no library where it is used.

    Attributes:
        roots: canonical paths the task may write, with everything in them.
        heads: directories that hold more than what the task may write of them: the names a pattern matches.
        git_config: whether a repository's own settings may be written.
        kept: names that existed at the start; each is laid over where it is no link, and so is what is in it.
        policy: the files that links of `POLICY` lead to, whatever those are called; each is in `kept`.
        named: files of `POLICY`, and of `policy`, that a grant of their own names, which the task may write.
        without: walls and credential stores, which the task does not reach although they may lie in what it may write.
    """

    roots: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    git_config: bool = False
    kept: Collection[str] = ()
    policy: Collection[str] = ()
    named: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anywhere a protected name could be made."""
        return bool(self.roots or self.heads)

    def protects(self, path: str) -> bool:
        """Whether a path is a protected name, or in one, inside what the task may write."""
        return self._keeps(path) or any(
            self.reserves(path, root) for root in (*self.roots, *self.heads) if paths.under(path, root)
        )

    def _keeps(self, path: str) -> bool:
        return bool(self.kept) and (path in self.kept or any(above in self.kept for above in paths.parents(path)))

    def says_grants(self, path: str) -> bool:
        """Whether a file says what tasks are granted."""
        return path in self.policy or is_policy(path)

    def holds(self, path: str) -> bool:
        """Whether a name that existed at the start lies below a path."""
        return any(paths.under(one, path) for one in self.kept)

    def reserves(self, path: str, directory: str) -> bool:
        """Whether a path in a directory is a protected name, or in one, wherever the directory lies."""
        if path in self.named:
            return False
        return self._keeps(path) or named_below(path, directory, git_config=self.git_config)

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
            # A hard link would be a second name of the file, at which nobody looks.
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
    """Whether a file or a directory that is renamed or linked to a path may bring protected names along."""
    parts = [folded(part) for part in paths.parts(path)]
    if not parts or parts[-1] in CARRIERS:
        return bool(parts)
    # A directory inside a repository that holds repositories may be a whole one, or hold some.
    return brings and any(
        first == _GIT and second in _HOLD_REPOSITORIES and NO_REPOSITORY.isdisjoint(parts[at + 2 :])
        for at, (first, second) in enumerate(itertools.pairwise(parts))
    )


def is_policy(path: str) -> bool:
    """Whether a path is called as a file that says what tasks are granted."""
    parts = tuple(folded(part) for part in paths.parts(path)[-2:])
    return parts[-1:] in POLICY or parts in POLICY


def leads_to_policy(path: str, real: str) -> bool:
    """Whether links lead a path to a file that says what tasks are granted: a line opens one by its own name alone.

    A task that makes a link where it may write could choose what a line means.
    """
    return path != real and is_policy(real)


def remedy(path: str, *, git_config: bool) -> str:
    """The remedy for a task that makes a protected name, where there is one."""
    if is_policy(path):
        return "have the task leave it alone, or name that very file in allow.write"
    parts = [folded(part) for part in paths.parts(path)]
    in_repository = _GIT in parts and not {HOOKS, *SETTINGS}.isdisjoint(parts[-2:])
    if git_config or not (in_repository or parts[-1:] == ["head"]):
        return ""
    return "set gitConfig = true where the task makes repositories (git init, git clone): its settings, and no hooks"


def grantable(path: str, directory: str, *, git_config: bool) -> bool:
    """Whether a grant may name a path below a directory: it is no protected name but a file of `POLICY`, or none."""
    parts = [folded(part) for part in paths.parts(path)]
    ends = [end for end in _ends(parts, git_config=git_config) if end > len(paths.parts(directory))]
    return not ends or (is_policy(path) and ends == [len(parts)])


def folded(name: str) -> str:
    """A name as a file system without case compares it, at its most generous."""
    if name.isascii():
        return name.lower()
    import unicodedata

    plain = unicodedata.normalize("NFKD", name).casefold()
    # File systems without case pass over characters that show nothing.
    return "".join(c for c in plain if unicodedata.category(c) not in {"Cf", "Mn"})


def named_below(path: str, directory: str, *, git_config: bool) -> bool:
    """Whether a protected name ends in a path below a directory; its beginning may be above."""
    parts = [folded(part) for part in paths.parts(path)]
    start = len(paths.parts(directory))
    return any(end > start for end in _ends(parts, git_config=git_config))


def _ends(parts: list[str], *, git_config: bool) -> Iterator[int]:
    """The number of components that each protected name in a path takes, with the way to it."""
    for at, part in enumerate(parts):
        if part in FILES:
            yield at + 1
        for directory in (*DIRECTORIES, *POLICY):
            if tuple(parts[at : at + len(directory)]) == directory:
                yield at + len(directory)
        if part == CLAUDE and at + 1 < len(parts) and _is_claude_settings(parts[at + 1]):
            yield at + 2
        if part == _GIT:
            end = _repository_entry(parts, at + 1, git_config=git_config)
            if end:
                yield end


def _repository_entry(parts: list[str], at: int, *, git_config: bool) -> int:
    """The end of a repository's hooks or settings in a path, 0 for anything else; `at` is the first part inside it."""
    if at < len(parts) and parts[at] == _WORKTREES:
        at += 2
        if git_config and parts[at : at + 1] == [ELSEWHERE]:
            return 0
    elif at < len(parts) and parts[at] == _MODULES:
        # A path in `modules` is `modules/NAME/...`, and a name may have several components.
        for index in range(at + 2, len(parts)):
            if parts[index - 1] in NO_REPOSITORY:
                return 0
            if _is_entry(parts[index], git_config=git_config):
                return index + 1
        return 0
    return at + 1 if at < len(parts) and _is_entry(parts[at], git_config=git_config) else 0


def _is_claude_settings(name: str) -> bool:
    first, last = CLAUDE_SETTINGS
    return name.startswith(first) and name.endswith(last)


def _is_entry(name: str, *, git_config: bool) -> bool:
    return name in {HOOKS, ELSEWHERE} or (name in SETTINGS and not git_config)
