"""EFFECT: finds the required programs, bubblewrap and strace, which the engine starts outside the walls."""

from __future__ import annotations

import os
import stat

from sandbox.contract.errors import Unavailable

# The places of distributions come first: a program found earlier on PATH could be a task's own.
_USUAL = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")


def find_strace(path: str, workspace: str) -> str:
    """The absolute path of strace; otherwise as `find_bwrap`."""
    found = _find("strace", path, workspace)
    if not found:
        raise Unavailable("strace is not installed", hint="apt install strace, dnf install strace, ...")
    return found


def find_bwrap(path: str, workspace: str) -> str:
    """The absolute path of bubblewrap.

    Args:
        path: a PATH to look in after the usual places; relative entries and those in the workspace are passed over.
        workspace: canonical.

    Raises:
        Unavailable: there is none.
    """
    found = _find("bwrap", path, workspace)
    if not found:
        raise Unavailable(
            "bubblewrap (bwrap) is not installed", hint="apt install bubblewrap, dnf install bubblewrap, ..."
        )
    return found


def check_bwrap(path: str) -> None:
    """Refuse a bubblewrap that cannot build what a warden enters.

    Raises:
        Unavailable: it is setuid.
    """
    if os.getuid() != 0 and os.stat(path).st_mode & stat.S_ISUID:
        why = f"bubblewrap ({path}) is setuid, and its namespaces then belong to its owner"
        raise Unavailable(why, hint=f"chmod u-s {path}")


def _find(name: str, path: str, workspace: str) -> str:
    inside = workspace.rstrip("/") + "/"
    for directory in (*_USUAL, *path.split(":")):
        if not os.path.isabs(directory):
            continue
        found = os.path.realpath(os.path.join(directory, name))
        if not found.startswith(inside) and os.path.isfile(found) and os.access(found, os.X_OK):
            return found
    return ""
