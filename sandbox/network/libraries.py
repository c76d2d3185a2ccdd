"""EFFECT: where the library lies that a front reads HTTP heads with: its process has no site-packages of its own."""

from __future__ import annotations

import os
import sys

_LIBRARY = "h11"
_INSTALLED = ("site-packages", "dist-packages")


def directory() -> str:
    """The absolute directory a front imports the library from, empty where it is not installed.

    Beside this package, else where packages are installed, else wherever this process would find it; never where
    it was merely started, which may be a workspace.
    """
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    places = [place for place in sys.path if os.path.isabs(place) and not _is_here(place)]
    installed = [place for place in places if os.path.basename(place) in _INSTALLED]
    for place in (own, *installed, *places):
        if os.path.isfile(os.path.join(place, _LIBRARY, "__init__.py")):
            return place
    return ""


def protected() -> tuple[str, ...]:
    """What no task may write: a front executes it."""
    place = directory()
    return (os.path.join(place, _LIBRARY),) if place else ()


def _is_here(place: str) -> bool:
    try:
        return os.path.samefile(place, ".")
    except OSError:
        return False
