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
    ".my.cnf",
    ".mylogin.cnf",
    ".config/git/credentials",
    ".password-store",
    ".local/share/keyrings",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".claude",
    ".claude.json",
    ".codex",
    # Histories of shells and of clients hold what was typed, passwords and tokens included.
    ".bash_history",
    ".zsh_history",
    ".zhistory",
    ".sh_history",
    ".ash_history",
    ".history",
    ".local/share/fish/fish_history",
    ".config/nushell/history.txt",
    ".local/share/powershell/PSReadLine/ConsoleHost_history.txt",
    ".psql_history",
    ".mysql_history",
    ".mariadb_history",
    ".sqlite_history",
    ".duckdb_history",
    ".rediscli_history",
    ".dbshell",
    ".mongodb",
    ".python_history",
    ".ipython/profile_default/history.sqlite",
    ".node_repl_history",
    ".irb_history",
    ".lesshst",
    ".viminfo",
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
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/letsencrypt/archive",
    "/etc/letsencrypt/live",
    "/etc/krb5.keytab",
    # Tokens of services and secrets of containers, among them /var/run/secrets/kubernetes.io.
    "/run/secrets",
    "/var/run/secrets",
)
_HOST_KEYS = "/etc/ssh"


def system(files: Files) -> tuple[str, ...]:
    """The system's secrets that exist, canonical: `SYSTEM`, and the private keys this host proves itself with."""
    entries = files.entries(_HOST_KEYS)
    keys = (paths.join(_HOST_KEYS, name) for name in entries if name.startswith("ssh_host_") and name.endswith("_key"))
    there = (paths.canonical(place, files) for place in (*SYSTEM, *keys) if files.kind(place) is not None)
    return tuple(dict.fromkeys(path for path in there if files.kind(path) is not None))


def existing(homes: tuple[str, ...], workspace: str, files: Files) -> Iterator[tuple[str, str]]:
    """The stores that exist, each as its real path and as it is spelled below a home.

    A store that holds the workspace is left out: hiding it would hide the work itself. So is another user's home in the
    workspace, whose files are the project's.

    Args:
        homes: canonical, the user's own first.
        workspace: its root, canonical.
        files: the host's.
    """
    return iter(remembered(files, ("stores", workspace, *homes), lambda: tuple(_existing(homes, workspace, files))))


def _existing(homes: tuple[str, ...], workspace: str, files: Files) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    others = (home for home in homes[1:] if not paths.at_or_under(home, workspace))
    for place in (paths.join(home, store) for home in (*homes[:1], *others) for store in STORES):
        if files.kind(place) is None:
            continue
        real = paths.canonical(place, files)
        if real in seen or files.kind(real) is None or paths.at_or_under(workspace, real):
            continue
        seen.add(real)
        yield real, place


def led_into(path: str, real: str, *, homes: tuple[str, ...], workspace: str, files: Files) -> str:
    """The closed place that links lead a path into, though the path does not name it; empty for none.

    A task that makes a link where others read could choose what they are given. So a store, a system's secret and a
    repository's data are opened by their own names alone.

    Args:
        path: as it is spelled, absolute and normal.
        real: where it leads.
        homes: those in which stores are looked for, canonical, the user's own first.
        workspace: its root, canonical.
        files: the host's.
    """
    if path == real:
        return ""
    named = [(spelled, place) for place, spelled in existing(homes, workspace, files)]
    named += [(place, paths.canonical(place, files)) for place in SYSTEM]
    named += [(place, place) for place in system(files)]
    named += [(wall.path, wall.path) for wall in walls.fixed(workspace, cache_dir=None, files=files)]
    for spelled, place in named:
        if paths.at_or_under(real, place):
            both = (spelled, place)
            return "" if any(paths.at_or_under(path, one) for one in both) else place
    return ""
