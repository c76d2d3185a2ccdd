"""EFFECT: finds the required programs, bubblewrap and strace, which the engine starts outside the walls."""

from __future__ import annotations

import functools
import os
import re
import stat
import subprocess

from sandbox.contract.errors import Unavailable

#: The first bubblewrap with `--disable-userns` (its release notes for 0.8.0).
OLDEST_BWRAP = (0, 8)

# The places of distributions come first: a program found earlier on PATH could be a task's own.
_SECONDS = 10
_USUAL = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")


def find_strace(path: str, workspace: str) -> str:
    """The absolute path of strace; otherwise as `find_bwrap`."""
    found = _find("strace", path, workspace)
    if not found:
        raise Unavailable("strace is not installed", hint="apt install strace, dnf install strace, ...")
    return found


def find_bwrap(path: str, workspace: str) -> str:
    """The absolute path of bubblewrap; one that is too old is passed over where a newer one is installed as well.

    Args:
        path: a PATH to look in after the usual places; relative entries and those in the workspace are passed over.
        workspace: canonical.

    Raises:
        Unavailable: there is none.
    """
    every = _every("bwrap", path, workspace)
    if not every:
        raise Unavailable(
            "bubblewrap (bwrap) is not installed", hint="apt install bubblewrap, dnf install bubblewrap, ..."
        )
    # most machines have one, which is not asked
    return every[0] if len(every) == 1 else next((one for one in every if _is_new(one)), every[0])


def version(text: str) -> tuple[int, ...]:
    """The first two numbers of what a program says of its version; none where it says nothing."""
    found = re.search(r"(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else ()


def _is_new(path: str) -> bool:
    state = os.stat(path)
    return _said_version(path, state.st_mtime_ns, state.st_ino) >= OLDEST_BWRAP


@functools.lru_cache(maxsize=16)
def _said_version(path: str, _changed: int, _inode: int) -> tuple[int, ...]:
    try:
        done = subprocess.run(
            (path, "--version"), capture_output=True, timeout=_SECONDS, check=False, env={"LC_ALL": "C"}
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return version(done.stdout.decode("utf-8", "replace"))


def check_bwrap(path: str) -> None:
    """Refuse a bubblewrap that cannot build what a warden enters.

    Raises:
        Unavailable: it is setuid.
    """
    if os.getuid() != 0 and os.stat(path).st_mode & stat.S_ISUID:
        why = f"bubblewrap ({path}) is setuid, and its namespaces then belong to its owner"
        raise Unavailable(why, hint=f"chmod u-s {path}")


def _find(name: str, path: str, workspace: str) -> str:
    return next(iter(_every(name, path, workspace)), "")


def _every(name: str, path: str, workspace: str) -> tuple[str, ...]:
    """The programs of a name outside the workspace, each once, the usual places first."""
    inside = workspace.rstrip("/") + "/"
    found: dict[str, None] = {}
    for directory in (*_USUAL, *path.split(":")):
        if not os.path.isabs(directory):
            continue
        one = os.path.realpath(os.path.join(directory, name))
        if not one.startswith(inside) and os.path.isfile(one) and os.access(one, os.X_OK):
            found[one] = None
    return tuple(found)
