"""The files that say what tasks are granted: no task writes one that its block does not name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sandbox.contract.errors import RequestRefused
from sandbox.planning import uncovered_write_grants
from sandbox.request import find_protected_names, protected_names
from tests.conftest import Link, make_tree
from tests.redteam.conftest import PYTHON, Box, shown, violated
from tests.support.observers import NEEDS_MASK

if TYPE_CHECKING:
    from pathlib import Path

_KEPT = {"vx.toml": "mine\n", "sub/vx.json": "mine\n", "sub/.vx/workspace.toml": "mine\n"}
#: Each leaves a file that was not there.
_MADE = {
    "made": "mkdir new; echo evil > new/vx.toml",
    "made in capitals": "echo evil > VX.json",
    "renamed": "echo evil > x; mv x lib/vx.toml",
    "linked": "echo evil > x; ln x lib/vx.json",
    "pointed to": "echo evil > x; ln -s ../x lib/vx.json",
    "in a directory": "mkdir -p new/.vx; echo evil > new/.vx/workspace.toml",
    "in a directory that becomes one": "mkdir a; echo evil > a/workspace.toml; mv a lib/.vx",
    "through a link to one": "mkdir a; echo evil > a/workspace.toml; ln -s ../a lib/.vx",
}


def _policies(project: Path) -> dict[str, str]:
    """Every policy file of a project, with its content."""
    found = {}
    for here, directories, files in os.walk(project, followlinks=True):
        for name in (*directories, *files):
            path = os.path.join(here, name)
            if os.path.isfile(path) and protected_names.is_policy(path):
                with open(path, encoding="utf-8") as file:
                    found[os.path.relpath(path, project)] = file.read()
    return found


def test_no_policy_is_changed_taken_away_or_made(each_box: Box) -> None:
    make_tree(each_box.project, dict(_KEPT))
    each_box.write = ("",)
    attacks = [
        *(f"echo evil > {name}; rm -f {name}; mv {name} x; echo evil > y; mv y {name}" for name in _KEPT),
        "mv sub sub2; mv sub/.vx sub/x; rm -rf sub",
        "ln vx.toml z && echo evil > z",
        *_MADE.values(),
    ]
    result = each_box.run("; ".join(f"({attack})" for attack in attacks) + "; true")
    assert _policies(each_box.project) == _KEPT, shown(result)
    assert (result.command_exit_code, result.exit_code) == (0, 1), shown(result)
    assert any("says what tasks are granted" in violation.line for violation in result.violations), shown(result)


@NEEDS_MASK
def test_neither_a_pattern_nor_a_name_around_it_grants_one(box: Box) -> None:
    make_tree(box.project, {**_KEPT, "other.toml": "x\n"})
    box.write = ("*.toml", "{vx,y}.*", "sub", "new", "**/.vx/*", "lib")
    made = ("mkdir new && echo evil > new/vx.toml", "mkdir -p lib/.vx && echo evil > lib/.vx/workspace.toml")
    result = box.run("; ".join((*(f"echo evil > {name}" for name in _KEPT), *made, "echo ok > other.toml", "true")))
    assert _policies(box.project) == _KEPT, shown(result)
    assert (box.project / "other.toml").read_text() == "ok\n"
    assert ("write", "new/vx.toml") in violated(result, box.project), shown(result)


@pytest.mark.parametrize("write", [("vx.toml",), ("", "vx.toml"), ("", "lib/", "vx.toml")])
def test_a_line_that_names_the_very_file_opens_it_and_no_other(box: Box, write: tuple[str, ...]) -> None:
    make_tree(box.project, {**_KEPT, "lib/vx.toml": "mine\n"})
    box.write = write
    result = box.run("echo changed > vx.toml")
    assert (result.exit_code, result.violations) == (0, ()), shown(result)
    result = box.run("rm vx.toml; echo made > vx.toml; echo evil > lib/vx.toml; echo evil > sub/vx.json; true")
    assert _policies(box.project) == {**_KEPT, "lib/vx.toml": "mine\n", "vx.toml": "made\n"}, shown(result)
    assert result.exit_code == 1, shown(result)


@pytest.mark.parametrize("grant", ["vx.toml/", "vx.toml/x", ".vscode/vx.toml", "vx.json/*"])
def test_what_only_lies_around_such_a_name_is_not_granted(box: Box, grant: str) -> None:
    box.write = (grant,)
    with pytest.raises(RequestRefused):
        box.request()


@pytest.mark.parametrize("attack", ["echo evil > vx.toml", *_MADE.values()])
@pytest.mark.parametrize("walled", [True, False])
def test_mounts_and_the_look_afterwards_hold_it_by_themselves(
    box: Box, attack: str, monkeypatch: pytest.MonkeyPatch, *, walled: bool
) -> None:
    """Nobody watches here; without the names in the plan, what is attempted succeeds."""
    make_tree(box.project, dict(_KEPT))
    box.write, box.observer = ("",), "none"
    if not walled:
        monkeypatch.setattr(protected_names, "POLICY", ())
        monkeypatch.setattr(find_protected_names, "CARRIERS", frozenset())
    result = box.run(attack)
    monkeypatch.undo()
    assert (_policies(box.project) == _KEPT) is walled, shown(result)


#: What each link of such a name leads to, whose own name says nothing.
_BEHIND = {"shared/deep/mine.toml": "mine\n", "shared/conf/ws.toml": "mine\n"}
_REWRITES = {
    "written": "echo evil > $F",
    "replaced": "echo evil > $D/new; mv $D/new $F",
    "taken away and made": "rm -f $F; echo evil > $F",
    "exchanged": "echo evil > $D/new; $EXCHANGE $D/new $F",
    "by a second name": "ln $F $D/second && echo evil > $D/second",
    "with its directory": "mv $D ${D}2; mkdir -p $D; echo evil > $F",
}


def _behind(box: Box) -> None:
    """The policies of the box's project and of its workspace, behind links."""
    links = {
        "apps/shop/vx.toml": Link("shared/deep/mine.toml"),
        ".vx/workspace.toml": Link("../apps/shop/shared/conf/ws.toml"),
    }
    make_tree(box.project, dict(_BEHIND))
    make_tree(box.root, links)


def _rewrite(way: str, file: str) -> str:
    command = _REWRITES[way].replace("$F", file).replace("$D", os.path.dirname(file))
    exchange = "import ctypes, os, sys; a, b = map(os.fsencode, sys.argv[1:]); "
    exchange += "ctypes.CDLL(None).renameat2(-100, a, -100, b, 2)"
    return command.replace("$EXCHANGE", f"{PYTHON} -c '{exchange}'")


def _found_behind(box: Box) -> set[str]:
    files = ("apps/shop/vx.toml", ".vx/workspace.toml")
    return {(box.root / name).read_text() if (box.root / name).exists() else "gone" for name in files}


@pytest.mark.parametrize("write", ["shared/", pytest.param("shared", marks=NEEDS_MASK)])
def test_the_file_behind_a_link_is_kept_under_whatever_name(each_box: Box, write: str) -> None:
    if each_box.observer == "strace" and not write.endswith("/"):
        pytest.skip("nobody serves names there")
    _behind(each_box)
    each_box.write = (write,)
    attacks = [_rewrite(way, name) for name in _BEHIND for way in _REWRITES]
    result = each_box.run("; ".join(f"({attack})" for attack in (*attacks, "true")) + "; echo x > shared/free")
    assert _found_behind(each_box) == {"mine\n"}, shown(result)
    assert (each_box.project / "shared/free").read_text() == "x\n", shown(result)
    assert (result.command_exit_code, result.exit_code) == (0, 1), shown(result)
    assert any("says what tasks are granted" in violation.line for violation in result.violations), shown(result)


@pytest.mark.parametrize("attack", _REWRITES)
@pytest.mark.parametrize("walled", [True, False])
def test_mounts_alone_keep_the_file_behind_a_link(
    box: Box, attack: str, monkeypatch: pytest.MonkeyPatch, *, walled: bool
) -> None:
    _behind(box)
    box.write, box.observer = ("shared/",), "none"
    if not walled:
        monkeypatch.setattr(uncovered_write_grants, "_behind_links", lambda *_arguments: ())
    result = box.run(_rewrite(attack, "shared/deep/mine.toml"))
    monkeypatch.undo()
    assert ((box.project / "vx.toml").read_text() == "mine\n") is walled, shown(result)


def test_a_line_that_names_the_file_behind_a_link_opens_it(box: Box) -> None:
    _behind(box)
    box.write = ("shared/", "shared/deep/mine.toml")
    result = box.run("echo changed > shared/deep/mine.toml")
    assert (result.exit_code, (box.project / "vx.toml").read_text()) == (0, "changed\n"), shown(result)


def test_no_fix_grants_the_file_behind_a_link(box: Box) -> None:
    _behind(box)
    result = box.run("echo evil > shared/deep/mine.toml; true")
    assert result.fix is not None
    assert result.fix.allow.write == (), shown(result)
    assert any("mine.toml" in path for path in result.fix.withheld), shown(result)
