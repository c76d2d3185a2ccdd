"""EFFECT: the directory of h11 and dnspython, for the proxy's process, which has no site-packages of its own."""

from __future__ import annotations

import os
import sys

_LIBRARIES = ("h11", "dns")
_INSTALLED = ("site-packages", "dist-packages")


def directory() -> str:
    """The absolute directory that a proxy imports its libraries from, empty where they are not installed together.

    It is looked for beside this package, then where packages are installed, then wherever this process would find it;
    never in the current directory, which may be a workspace.
    """
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    places = [place for place in sys.path if os.path.isabs(place) and not _is_here(place)]
    installed = [place for place in places if os.path.basename(place) in _INSTALLED]
    for place in (own, *installed, *places):
        if all(os.path.isfile(os.path.join(place, name, "__init__.py")) for name in _LIBRARIES):
            return place
    return ""


def protected() -> tuple[str, ...]:
    """The paths that no task may write, since a proxy executes what is there."""
    place = directory()
    return tuple(os.path.join(place, name) for name in _LIBRARIES) if place else ()


def _is_here(place: str) -> bool:
    try:
        return os.path.samefile(place, ".")
    except OSError:
        return False
