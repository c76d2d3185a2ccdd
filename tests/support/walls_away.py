"""Sessions without one of the walls, in which an attack is to succeed: that wall alone keeps it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.session import start_supervisor

if TYPE_CHECKING:
    import pytest

#: Every kernel without Landlock answers so.
NO_LANDLOCK = "from sandbox.linux.kernel import landlock; landlock.version = lambda: 0"


def take_away(monkeypatch: pytest.MonkeyPatch, wall: str) -> None:
    """Has every session that starts from now on run a statement first, which takes a wall away."""
    boot, wall = start_supervisor._BOOT, wall.replace("{", "{{").replace("}", "}}")
    monkeypatch.setattr(start_supervisor, "_BOOT", boot.replace("; main(", f"\n{wall}\nmain("))
