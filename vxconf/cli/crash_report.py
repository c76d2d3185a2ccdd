"""EFFECT: writes a report of a mistake in vxconf itself, which its user can send."""

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

#: The most reports that are kept; the oldest are deleted first.
KEPT = 10


def reports_directory() -> Path:
    """The user's directory for logs of vxconf, where the system has it; it may not exist."""
    return platformdirs.user_log_path("vxconf", appauthor=False)


def write_crash_report(fault: BaseException) -> Path | None:
    """Writes the traceback of a fault to a file that only the user can read; no value of a variable is in it.

    Args:
        fault: the exception.

    Returns:
        The path of the report, `None` where none can be written.
    """
    text = (
        f"vxconf {VERSION}, Python {platform.python_version()}, {platform.platform()}\n"
        f"{''.join(traceback.format_exception(fault))}"
    )
    try:
        place = reports_directory()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        report = place / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
        # O_EXCL and O_NOFOLLOW: somebody else may write to a directory that a variable names
        made = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(made, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        for old in sorted(place.glob("*T*-*.txt"))[:-KEPT]:
            old.unlink(missing_ok=True)
    except (OSError, RuntimeError):  # the home directory is not known, or cannot be written to
        return None
    return report
