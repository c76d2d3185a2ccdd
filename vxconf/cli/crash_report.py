"""EFFECT: where a mistake of vxconf's own is written down, so that whoever met it can report it."""

from __future__ import annotations

import os
import platform
import time
import traceback
from typing import TYPE_CHECKING

import platformdirs

from vxconf.version import VERSION

if TYPE_CHECKING:
    from pathlib import Path

#: Reports kept; the oldest go first.
KEPT = 10


def reports_directory() -> Path:
    """The user's own place for logs of vxconf, by the custom of the system; it may not exist."""
    return platformdirs.user_log_path("vxconf", appauthor=False)


def write_crash_report(fault: BaseException) -> Path | None:
    """Keeps the traceback of a fault, readable to its user alone; no argument and no value of a variable is in it.

    Args:
        fault: what was raised.

    Returns:
        The report, `None` where none can be kept.
    """
    text = (
        f"vxconf {VERSION}, Python {platform.python_version()}, {platform.platform()}\n"
        f"{''.join(traceback.format_exception(fault))}"
    )
    try:
        place = reports_directory()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        report = place / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
        # new and no link: somebody else may write to a directory that a variable names
        made = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(made, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        for old in sorted(place.glob("*T*-*.txt"))[:-KEPT]:
            old.unlink(missing_ok=True)
    except (OSError, RuntimeError):  # no home is known, or nothing can be written there
        return None
    return report
