"""Where programs keep credentials: read by no task that does not name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox import paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.facts import Files

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


def existing(home: str, workspace: str, files: Files) -> Iterator[tuple[str, str]]:
    """The stores that exist, each as its real path and its name below home.

    A store that holds the workspace is left out: hiding it would hide the work itself.
    """
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
