"""The search for the workspace root above a directory, and the rule that chose it.

The rules are tried in order, each over all directories upwards, nearest first: a lower rule never wins over a higher
one. `/`, the home directory and the directories above it are never a workspace: a sandbox hides the workspace, and
would hide the user's whole account.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, NamedTuple

from vxconf.document.read_file import ReadError, read_file

if TYPE_CHECKING:
    from collections.abc import Callable

Rule = Literal["workspace.toml", "pnpm", "package.json", "uv", "git", "project"]

#: The file a rule looks for, relative to the root.
MARKERS: dict[Rule, str] = {
    "workspace.toml": ".vx/workspace.toml",
    "pnpm": "pnpm-workspace.yaml",
    "package.json": "package.json",
    "uv": "pyproject.toml",
    "git": ".git",
}

#: The reason a rule gives, as the end of a sentence that begins "the workspace root is DIR: ".
REASONS: dict[Rule, str] = {
    "workspace.toml": "it holds .vx/workspace.toml",
    "pnpm": "it holds pnpm-workspace.yaml",
    "package.json": "its package.json has workspaces",
    "uv": "its pyproject.toml has [tool.uv.workspace]",
    "git": "it is the top level of a git repository",
    "project": "nothing above the project marks a workspace",
}

CONFIG_NAMES = ("vx.toml", "vx.json")


class Root(NamedTuple):
    """A workspace root.

    Attributes:
        path: the canonical directory.
        rule: the rule that chose it.
        problem: the reason why the directory cannot be a workspace, or an empty string.
    """

    path: str
    rule: Rule
    problem: str = ""

    @property
    def marker(self) -> str:
        """The absolute path the rule found; for `project` the task file, or the root itself where there is none."""
        names = (MARKERS[self.rule],) if self.rule in MARKERS else CONFIG_NAMES
        found = (os.path.join(self.path, name) for name in names)
        return next((marker for marker in found if os.path.lexists(marker)), self.path)

    @property
    def reason(self) -> str:
        """The reason for the choice, as a clause."""
        return REASONS[self.rule]


class RootFinder:
    """Finds workspace roots; each rule looks at a directory once, however many searches start below it."""

    def __init__(self, home: str) -> None:
        """Takes the canonical home directory."""
        self._home = home
        self._asked: dict[tuple[Rule, str], bool] = {}
        self._known: dict[str, Root] = {}

    def find(self, start: str) -> Root:
        """The workspace a canonical directory belongs to."""
        root = self._known.get(start)
        if root is not None:
            return root
        above = self._known.get(start.rpartition("/")[0])
        if above is not None and not self._found("workspace.toml", start):
            root = self._known[start] = above
            return root
        root = self._find(start)
        if root.rule == "workspace.toml":
            # the first rule beats all others, so its root holds for every directory on the way
            for directory in _upwards(start):
                self._known[directory] = root
                if directory == root.path:
                    break
        return root

    def _find(self, start: str) -> Root:
        upwards = _upwards(start)
        for rule, _ in _RULES:
            for directory in upwards:
                if not self._found(rule, directory):
                    continue
                if not _forbidden(directory, self._home):
                    return Root(path=directory, rule=rule)
                if rule == "workspace.toml":
                    # marks of the other rules mean something else there (dotfiles under git, a stray package.json)
                    return Root(path=directory, rule=rule, problem=_problem(directory, self._home))
        project = next((directory for directory in upwards if has_config(directory)), start)
        problem = _problem(project, self._home) if _forbidden(project, self._home) else ""
        return Root(path=project, rule="project", problem=problem)

    def _found(self, rule: Rule, directory: str) -> bool:
        key = (rule, directory)
        answer = self._asked.get(key)
        if answer is None:
            answer = self._asked[key] = _TESTS[rule](directory)
        return answer


def has_config(directory: str) -> bool:
    """Whether a directory has an entry of a task file's name, whatever its kind."""
    return any(os.path.lexists(os.path.join(directory, name)) for name in CONFIG_NAMES)


def _upwards(directory: str) -> list[str]:
    found = [directory]
    while directory != "/":
        directory = directory.rpartition("/")[0] or "/"
        found.append(directory)
    return found


def _forbidden(directory: str, home: str) -> bool:
    return directory in {"/", home} or home.startswith(directory + "/")


def _problem(directory: str, home: str) -> str:
    if directory == "/":
        return "the workspace root would be /, the whole file system"
    if directory == home:
        return f"the workspace root would be the home directory {directory}"
    return f"the workspace root would be {directory}, which holds the home directory"


def _has_workspace_toml(directory: str) -> bool:
    return os.path.lexists(f"{directory}/.vx/workspace.toml")


def _has_pnpm(directory: str) -> bool:
    return os.path.isfile(os.path.join(directory, "pnpm-workspace.yaml"))


def _has_npm(directory: str) -> bool:
    raw = _peek(os.path.join(directory, "package.json"), b'"workspaces"')
    if raw is None:
        return False
    import json

    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and isinstance(data.get("workspaces"), list | dict)


def _has_uv(directory: str) -> bool:
    raw = _peek(os.path.join(directory, "pyproject.toml"), b"workspace")
    if raw is None:
        return False
    import tomllib

    try:
        data = tomllib.loads(raw.decode())
    except (ValueError, RecursionError):
        return False
    tool = data.get("tool")
    uv = tool.get("uv") if isinstance(tool, dict) else None
    return isinstance(uv, dict) and isinstance(uv.get("workspace"), dict)


def _has_git(directory: str) -> bool:
    # a worktree and a submodule have a file `.git`
    return os.path.exists(os.path.join(directory, ".git"))


def _peek(path: str, needle: bytes) -> bytes | None:
    """The bytes of a file that can be read and holds `needle`, else `None`."""
    try:
        raw = read_file(path)
    except ReadError:
        return None
    return raw if needle in raw else None


_RULES: tuple[tuple[Rule, Callable[[str], bool]], ...] = (
    ("workspace.toml", _has_workspace_toml),
    ("pnpm", _has_pnpm),
    ("package.json", _has_npm),
    ("uv", _has_uv),
    ("git", _has_git),
)
_TESTS = dict(_RULES)
