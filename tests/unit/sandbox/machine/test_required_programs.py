"""Which of several installed programs is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox.contract.errors import Unavailable
from sandbox.machine import required_programs

if TYPE_CHECKING:
    from pathlib import Path


def _bwrap(directory: Path, said: str) -> str:
    directory.mkdir()
    program = directory / "bwrap"
    program.write_text(f"#!/bin/sh\n{said}\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("first", "second", "taken"),
    [
        ("echo bubblewrap 0.4.1", "echo bubblewrap 0.11.0", 1),
        ("echo bubblewrap 0.8.0", "echo bubblewrap 0.11.0", 0),
        ("exit 1", "echo bubblewrap 0.10.0", 1),
        # a newer one is nowhere: what is refused is the one that would be taken
        ("echo bubblewrap 0.4.1", "echo bubblewrap 0.7.0", 0),
    ],
)
def test_a_bubblewrap_that_is_too_old_is_passed_over_for_a_newer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str, taken: int
) -> None:
    programs = (_bwrap(tmp_path / "usual", first), _bwrap(tmp_path / "later", second))
    monkeypatch.setattr(required_programs, "_USUAL", (str(tmp_path / "usual"),))
    found = required_programs.find_bwrap(f"relative:{tmp_path / 'later'}", "/workspace")
    assert found == programs[taken]


def test_a_program_of_the_workspace_is_never_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _bwrap(tmp_path / "ws", f"touch {tmp_path}/asked; echo bubblewrap 9.9.9")
    old = _bwrap(tmp_path / "usual", "echo bubblewrap 0.4.1")
    monkeypatch.setattr(required_programs, "_USUAL", (str(tmp_path / "usual"),))
    assert required_programs.find_bwrap(str(tmp_path / "ws"), str(tmp_path / "ws")) == old
    assert not (tmp_path / "asked").exists()
    monkeypatch.setattr(required_programs, "_USUAL", ())
    with pytest.raises(Unavailable):
        required_programs.find_bwrap(str(tmp_path / "ws"), str(tmp_path / "ws"))
