"""The places where programs and the system keep credentials, which no task reads that does not name them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.base.host_facts import remembered
from sandbox.request import walls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.base.host_facts import Files

#: Every known store, below the home directory.
STORES = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".config/gcloud",
    ".config/gh",
    ".docker/config.json",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".bunfig.toml",
    ".config/.bunfig.toml",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".config/hub",
    ".config/containers/auth.json",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".pgpass",
)


#: The files a system keeps from all but root; root may be the user who runs a task.
SYSTEM = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/master.passwd",
)
_HOST_KEYS = "/etc/ssh"


def system(files: Files) -> tuple[str, ...]:
    """The system's secrets that exist, canonical: `SYSTEM`, and the private keys this host proves itself with."""
    entries = files.entries(_HOST_KEYS)
    keys = (paths.join(_HOST_KEYS, name) for name in entries if name.startswith("ssh_host_") and name.endswith("_key"))
    there = (paths.canonical(place, files) for place in (*SYSTEM, *keys) if files.kind(place) is not None)
    return tuple(dict.fromkeys(path for path in there if files.kind(path) is not None))


def existing(home: str, workspace: str, files: Files) -> Iterator[tuple[str, str]]:
    """The stores that exist, each as its real path and its name below home.

    A store that holds the workspace is left out: hiding it would hide the work itself.
    """
    return iter(remembered(files, ("stores", home, workspace), lambda: tuple(_existing(home, workspace, files))))


def _existing(home: str, workspace: str, files: Files) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for store in STORES:
        place = paths.join(home, store)
        if files.kind(place) is None:
            continue
        real = paths.canonical(place, files)
        if real in seen or files.kind(real) is None or paths.at_or_under(workspace, real):
            continue
        seen.add(real)
        yield real, store


def led_into(path: str, real: str, *, home: str, workspace: str, files: Files) -> str:
    """The closed place that links lead a path into, though the path does not name it; empty for none.

    A task that makes a link where others read could choose what they are given. So a store, a system's secret and a
    repository's data are opened by their own names alone.

    Args:
        path: as it is spelled, absolute and normal.
        real: where it leads.
        home: the home directory, canonical.
        workspace: its root, canonical.
        files: the host's.
    """
    if path == real:
        return ""
    named = [(paths.join(home, name), place) for place, name in existing(home, workspace, files)]
    named += [(place, paths.canonical(place, files)) for place in SYSTEM]
    named += [(place, place) for place in system(files)]
    named += [(wall.path, wall.path) for wall in walls.fixed(workspace, cache_dir=None, files=files)]
    for spelled, place in named:
        if paths.at_or_under(real, place):
            both = (spelled, place)
            return "" if any(paths.at_or_under(path, one) for one in both) else place
    return ""
