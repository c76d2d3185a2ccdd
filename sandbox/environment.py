"""The environment of a sandboxed task: what passes, what it declares, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox import paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Host variables every task gets, besides those whose name starts with LC_.
PASSED = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TERM", "CI")

#: Directories of programs, most specific first, that come before the host's own.
OWN_PROGRAMS = ("node_modules/.bin", ".venv/bin")

#: Where programs are looked for when the host names no usable directory.
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"

#: All name the task's own temporary directory; the latter two only where the host or the task has them.
TEMPORARY = ("TMPDIR", "TMP", "TEMP")

#: A task's own value of these does not survive: they are the sandbox's.
RESERVED = frozenset(TEMPORARY)

DISCOVERY = "GIT_DISCOVERY_ACROSS_FILESYSTEM"


def task_environment(
    host: Mapping[str, str],
    *,
    define: Mapping[str, str],
    pass_through: Iterable[str],
    project: str,
    workspace: str,
    temp: str,
    grants_git: bool = False,
) -> dict[str, str]:
    """Exactly the variables the command starts with.

    Args:
        host: the caller's environment.
        define: variables the task declares; they win over the host's.
        pass_through: names the task takes from the host, as they are.
        project: canonical.
        workspace: canonical.
        temp: the task's own temporary directory.
        grants_git: whether a grant names a `.git`, whose repository git then finds through the mounts between.
    """
    result = {name: value for name, value in host.items() if name in PASSED or name.startswith("LC_")}
    result["PATH"] = search_path(host.get("PATH", ""), project=project, workspace=workspace)
    result |= {name: host[name] for name in pass_through if name in host and name != "PATH"}
    result |= define
    if grants_git:
        result.setdefault(DISCOVERY, "1")
    for name in TEMPORARY:
        result.pop(name, None)
        if name == "TMPDIR" or name in host or name in define:
            result[name] = temp
    return result


def search_path(host: str, *, project: str, workspace: str) -> str:
    """The project's own programs, the workspace's, then the host's absolute directories, each once.

    An empty or relative entry would let the directory a task stands in name its programs.
    """
    own = [paths.join(root, part) for root in (project, workspace) for part in OWN_PROGRAMS]
    usable = [entry for entry in host.split(":") if entry.startswith("/")]
    return ":".join(dict.fromkeys([*own, *(usable or DEFAULT_PATH.split(":"))]))


def names_git(grants: Iterable[str]) -> bool:
    """Whether a grant has `.git` as one of its components."""
    return any(".git" in grant.split("/") for grant in grants)
