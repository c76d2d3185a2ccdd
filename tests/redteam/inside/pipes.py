"""Opens pipes and files that were made outside for writing, by every way that leads to one, and prints what came."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

told: dict[str, str] = {}
#: Nobody waits for a reader: a pipe that nobody reads answers ENXIO.
AT_ONCE = os.O_NONBLOCK


def attempt(label: str, what: Callable[[], int]) -> None:
    try:
        fd = what()
    except OSError as error:
        told[label] = errno.errorcode.get(error.errno or 0, "")
        return
    os.write(fd, b"from the task\n")
    os.close(fd)
    told[label] = "done"


def every_way(label: str, path: str) -> None:
    attempt(f"{label} for writing", lambda: os.open(path, os.O_WRONLY | AT_ONCE))
    attempt(f"{label} for both", lambda: os.open(path, os.O_RDWR | AT_ONCE))
    attempt(f"{label} to append", lambda: os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | AT_ONCE, 0o600))
    directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
    attempt(
        f"{label} in its directory", lambda: os.open(os.path.basename(path), os.O_WRONLY | AT_ONCE, dir_fd=directory)
    )
    for how, flags in (("a path", os.O_PATH), ("reading", os.O_RDONLY | AT_ONCE)):
        held = os.open(path, flags)
        attempt(f"{label} again by {how}", lambda held=held: os.open(f"/proc/self/fd/{held}", os.O_WRONLY | AT_ONCE))  # type: ignore[misc]
    os.symlink(path, f"out/to-{label}")
    attempt(f"{label} by a link", lambda: os.open(f"out/to-{label}", os.O_WRONLY | AT_ONCE))
    os.unlink(f"out/to-{label}")


def own(place: str) -> None:
    """A pipe of the task's own carries what is written to it."""
    os.mkfifo(f"{place}/own")
    reader = os.open(f"{place}/own", os.O_RDONLY | AT_ONCE)
    attempt(f"own in {place}", lambda: os.open(f"{place}/own", os.O_WRONLY | AT_ONCE))
    assert os.read(reader, 99) == b"from the task\n"
    os.unlink(f"{place}/own")


every_way("granted", os.path.abspath("lib/pipe"))
every_way("outside", sys.argv[2])
own(os.environ["TMPDIR"])
own("out")
told["own in the temporary directory"] = told.pop(f"own in {os.environ['TMPDIR']}")
Path("/dev/null").write_text("x", encoding="utf-8")
sys.stdout.write(json.dumps(told))
