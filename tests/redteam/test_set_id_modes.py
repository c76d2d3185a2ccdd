"""No file that a task leaves runs as whoever ran the task: no call gives one a set-ID bit, nor a capability."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from sandbox import Session
from tests.redteam.conftest import Box, shown
from tests.support.observers import NEEDS_MASK
from tests.support.walls_away import take_away

if TYPE_CHECKING:
    from pathlib import Path

_SET_ID = stat.S_ISUID | stat.S_ISGID
_NO_FILTER = """from sandbox.linux.kernel import seccomp_filter
from sandbox.linux.warden.mode_calls import ModeCalls
seccomp_filter.set_id = lambda blocks, *, answered: {}
del seccomp_filter.REFUSED["openat2"]
ModeCalls.takes = lambda self, seen: False"""
_NO_SERVER = """from sandbox.linux.mask.served import inode_attributes as one, name_operations as two
from sandbox.linux.names import write_opens as three
one.without_set_id = two.without_set_id = three.without_set_id = lambda mode, kind: mode & 0o7777"""
_CHANGES = ("chmod", "beyond", "fchmod", "fchmodat", "fchmodat2", "relative", "through", "itself", "link")
_MAKES = ("open", "openat", "openat2", "creat", "mknod", "mknodat", "nameless")


def _left(top: Path) -> set[str]:
    """The names of files with a set-ID bit, at any depth."""
    return {path.name for path in top.rglob("*") if path.is_file() and path.lstat().st_mode & _SET_ID}


def test_no_call_leaves_a_set_id_bit(each_box: Box) -> None:
    told, result = each_box.attack("modes", "out")
    assert (result.command_exit_code, result.trace) == (0, "complete"), shown(result)
    assert _left(each_box.project) == set()
    assert {name: told.pop(name) for name in _MAKES if name in told} == {
        name: "ENOSYS" if name == "openat2" else "EPERM" for name in _MAKES
    }
    assert told.pop("capability") == "EPERM"
    assert told.pop("no mode") == told.pop("mkdir") == "done"
    answered = each_box.observer != "strace"
    changed = {told.pop(name) for name in (*_CHANGES, "directory")}
    assert changed == {"done" if answered else "EPERM"}
    assert told.pop("mode of the directory") == ("0o2755" if answered else "0o755")
    assert told.pop("mode of a file") == ("0o755" if answered else "0o644")
    assert told.pop("of the link") == ("ENOTSUP" if answered else "EPERM")
    assert told == {}


@NEEDS_MASK
def test_no_call_leaves_a_set_id_bit_at_a_granted_name(box: Box) -> None:
    box.write = ("made",)
    told, result = box.attack("modes", "made")
    assert result.command_exit_code == 0, shown(result)
    assert _left(box.project) == set()
    assert {told[name] for name in _CHANGES} == {"done"}
    assert told["mode of a file"] == "0o755"


@NEEDS_MASK
def test_the_server_of_names_sets_no_such_bit_either(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    box.write = ("made",)
    take_away(monkeypatch, _NO_FILTER)
    with Session() as box.session:
        told, _ = box.attack("modes", "made")
    # no observer reads an openat2, so that none is made beside granted names
    assert {told[name] for name in (*_CHANGES, *_MAKES) if name != "openat2"} == {"done"}
    assert _left(box.project) == set()


@pytest.mark.parametrize("place", ["out", pytest.param("made", marks=NEEDS_MASK)])
def test_without_these_walls_every_call_leaves_one(box: Box, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    box.write = ("made",) if place == "made" else box.write
    take_away(monkeypatch, f"{_NO_FILTER}\n{_NO_SERVER}")
    with Session() as box.session:
        box.attack("modes", place)
    assert _left(box.project) == {*_CHANGES, *_MAKES} - {"link"} | {"linked"}


def test_tools_that_copy_such_modes_work(box: Box) -> None:
    given = box.project / "lib" / "given"
    given.mkdir()
    (given / "tool").write_text("#!/bin/sh\n", encoding="utf-8")
    (given / "tool").chmod(0o4755)
    given.chmod(0o2775)
    result = box.run(
        "cp -a lib/given out/copied && install -m 4755 lib/given/tool out/installed && "
        "tar -C lib -cf out/t.tar given && mkdir out/x && tar -xpf out/t.tar -C out/x"
    )
    assert result.exit_code == 0, shown(result)
    assert _left(box.project / "out") == set()
    for path in ("copied/tool", "installed", "x/given/tool"):
        assert stat.S_IMODE((box.project / "out" / path).stat().st_mode) == 0o755
    for path in ("copied", "x/given"):
        assert stat.S_IMODE((box.project / "out" / path).stat().st_mode) == 0o2775
