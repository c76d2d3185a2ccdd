"""The grants that are never suggested, whatever the task asked for, and the reason each comes with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sandbox.base.host_facts import Kind
from sandbox.contract.intents import Intent
from sandbox.judge.remedies.never_granted import MOST, below, never_granted
from sandbox.request.walls import DATA, Wall
from tests.unit.sandbox.judge.test_fix import P, access, boundary, fixed, told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.base.host_facts import Listing
    from sandbox.judge.is_it_a_denial import Denial

NAMES = (
    ("vx.toml", "says what tasks may do"),
    ("sub/vx.json", "says what tasks may do"),
    ("VX.TOML", "says what tasks may do"),
    (".vx/workspace.toml", "says what tasks may do"),
    (".env", "may hold secrets"),
    ("conf/.env.local", "may hold secrets"),
    (".ENVRC", "may hold secrets"),
    (".env/bin/python", "may hold secrets"),
    (".git/index", "a repository's data"),
    ("vendor/x/.git", "a repository's data"),
    ("node_modules/.bin/tsc", "find the programs they start"),
    ("node_modules/.bin", "find the programs they start"),
    ("../../node_modules/.bin/x", "find the programs they start"),
    (".venv/bin/python", "find the programs they start"),
    (".bashrc", "other programs execute or obey"),
    ("sub/.vscode/tasks.json", "other programs execute or obey"),
    (".git/hooks/pre-commit", "other programs execute or obey"),
    (".", "the project itself"),
    ("../..", "holds the project"),
)


def _path(name: str) -> str:
    return (
        "/ws"
        if name == "../.."
        else f"/ws/{name[6:]}"
        if name.startswith("../../")
        else P
        if name == "."
        else f"{P}/{name}"
    )


@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize(("name", "reason"), NAMES)
def test_a_grant_of_such_a_name_is_never_suggested_and_says_why(name: str, reason: str, kind: Denial) -> None:
    found = never_granted(_path(name), kind, boundary())
    assert found is not None
    assert reason in found.reason
    assert found.remedy


@pytest.mark.parametrize(
    "name", ["env", "a.env", "src/vx.toml.md", "git/x", "node_modules/x/index.js", ".github/x.yml"]
)
def test_a_name_that_resembles_one_may_be_suggested(name: str) -> None:
    assert never_granted(f"{P}/{name}", "write", boundary()) is None


@pytest.mark.parametrize(
    ("real", "reason"),
    [
        (f"{P}/vx.toml", "says what tasks may do"),
        (f"{P}/.env.local", "may hold secrets"),
        (f"{P}/.git/index", "a repository's data"),
        (f"{P}/node_modules/.bin/x", "find the programs they start"),
        ("/home/mel/.ssh/id", "holds credentials"),
        (P, "is the project itself"),
    ],
)
def test_a_link_to_such_a_place_is_never_suggested_and_says_where_it_leads(real: str, reason: str) -> None:
    edge = boundary(canonical=lambda path: real if path == f"{P}/plain" else path)
    found = never_granted(f"{P}/plain", "write", edge)
    assert found is not None
    assert f"leads to {real}" in found.reason
    assert reason in found.reason


def test_a_credential_store_and_a_repository_elsewhere_are_never_suggested() -> None:
    edge = boundary(walls=(Wall(path="/srv/data", reason=DATA),))
    store, data = never_granted("/home/mel/.ssh/id", "read", edge), never_granted("/srv/data/x", "read", edge)
    assert store is not None
    assert data is not None
    assert ("credentials" in store.reason, "repository" in data.reason) == (True, True)


@pytest.mark.parametrize("held", [".env", "deep/er/.env.local", "lib/.git"])
@pytest.mark.parametrize("intent", [Intent.OPEN, Intent.ATTRIBUTES])
def test_a_directory_that_holds_one_is_not_suggested_whole(held: str, intent: Intent) -> None:
    place = f"{P}/conf"
    edge = boundary(directory=lambda path: path == place, tree=lambda _path: (f"{place}/a", f"{place}/{held}"))
    fix = fixed(edge, access(intent, place))
    assert fix is not None
    assert (fix.allow.read, fix.allow.write, fix.withheld) == ((), (), (place,))
    assert f"holds {held}" in fix.by_hand[0].reason


def test_several_names_in_a_directory_that_holds_one_stay_names() -> None:
    place = f"{P}/conf"
    edge = boundary(directory=lambda path: path == place, tree=lambda _path: (f"{place}/.env",))
    fix = fixed(edge, *(access(Intent.CREATE, f"{place}/{name}", exists=False) for name in ("a", "b")))
    assert fix is not None
    assert fix.allow.write == ("conf/a", "conf/b")


def test_what_lies_behind_a_wall_in_a_directory_does_not_count_and_programs_count_for_writing_alone() -> None:
    place = f"{P}/conf"
    inside = (f"{place}/kit/.env", f"{place}/node_modules/.bin")
    edge = boundary(directory=lambda path: path == place, tree=lambda _path: inside)
    assert never_granted(place, "read", edge) is not None
    edge = replace(edge, walls=(Wall(path=f"{place}/kit", reason="the nested project"),))
    assert never_granted(place, "read", edge) is None
    assert never_granted(place, "write", edge) is not None


class _Tree:
    """A directory of many names, one of them a directory of installed packages."""

    def __init__(self, count: int) -> None:
        self._names = {
            "/d": ("node_modules", "s", *map(str, range(count))),
            "/d/s": ("x",),
            "/d/node_modules": (".bin", "a"),
        }
        self._names["/d/node_modules/a"] = (".env",)

    def kind(self, path: str) -> Kind | None:
        return Kind.DIRECTORY if path in self._names else Kind.FILE

    def readlink(self, _path: str) -> str:
        raise OSError

    def entries(self, path: str) -> tuple[str, ...]:
        return self._names.get(path, ())

    def below(self, _directory: str, _enters: Callable[[str], bool]) -> Iterator[Listing]:
        raise NotImplementedError

    def read(self, _path: str, _limit: int) -> bytes:
        return b""


def test_a_directory_is_looked_through_but_for_installed_packages_and_one_too_large_is_unknown() -> None:
    found = below("/d", _Tree(1))
    assert found is not None
    assert set(found) == {
        f"/d/{name}" for name in ("0", "s", "s/x", "node_modules", "node_modules/.bin", "node_modules/a")
    }
    assert below("/d", _Tree(MOST)) is None
    place = f"{P}/conf"
    why = never_granted(place, "read", boundary(directory=lambda path: path == place, tree=lambda _path: None))
    assert why is not None
    assert "too much" in why.reason


def test_a_note_on_such_a_path_outside_the_project_says_the_same() -> None:
    (found, why) = told(boundary(P), access(Intent.OPEN, "/ws/.env"))
    assert "allow.read" not in found
    assert "may hold secrets" in why
    assert '"../../.env"' in why
