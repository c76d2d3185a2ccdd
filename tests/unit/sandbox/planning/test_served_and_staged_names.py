from __future__ import annotations

import pickle

import pytest

from sandbox.base import globs
from sandbox.linux.mask.mask_tree import MaskTree
from sandbox.planning.operations import Bind, Cover, Name, Names, Origin
from sandbox.planning.served_and_staged_names import GrantedNames

O = Origin(reason="test")  # noqa: E741  one letter keeps the plans below readable
GRANTED = GrantedNames(
    (
        Cover(path="/ws", origin=O),
        Name(path="/ws/p/dist", origin=O),
        Names(path="/ws/p/gen", pattern="/ws/p/gen/*.py", origin=O),
        Names(path="/ws/p/src", pattern="/ws/p/src/**/*.tsbuildinfo", origin=O),
        Names(path="/ws/p/far", pattern="/ws/p/far/*/x/y", origin=O),
    )
)


@pytest.mark.parametrize("granted", [GRANTED, pickle.loads(pickle.dumps(GRANTED))], ids=["made", "sent"])  # noqa: S301
def test_what_is_granted_served_and_staged(granted: GrantedNames) -> None:
    assert granted
    assert all(
        map(granted.granted, ("/ws/p/dist", "/ws/p/gen/a.py", "/ws/p/src/a.tsbuildinfo", "/ws/p/src/d/e/a.tsbuildinfo"))
    )
    assert not any(
        map(granted.granted, ("/ws/p/dist/a", "/ws/p/gen", "/ws/p/gen/d/a.py", "/ws/p/src/a.ts", "/ws/q/dist"))
    )
    assert granted.served("/ws/p/dist/a/b")
    assert not granted.served("/ws/p/gen/b.txt")
    assert all(map(granted.stages, ("/ws/p", "/ws/p/gen", "/ws/p/src", "/ws/p/src/d", "/ws/p/far/1/x")))
    assert not any(
        map(granted.stages, ("/ws", "/ws/p/dist", "/ws/p/gen/d", "/ws/p/far", "/ws/p/far/1", "/ws/p/far/1/z"))
    )
    assert all(map(granted.leads, ("/ws/p/gen", "/ws/p/src/d/e", "/ws/p/far", "/ws/p/far/1", "/ws/p/far/1/x")))
    assert not any(map(granted.leads, ("/ws/p", "/ws/p/gen/d", "/ws/p/far/1/z", "/ws/p/far/1/x/y")))


def test_what_lands_in_staging() -> None:
    staged = ("/ws/p/tmp", "/ws/p/tmp/a/b", "/ws/p/gen/x.txt", "/ws/p/gen/d/x", "/ws/p/src/a.ts", "/ws/p/far/1/x/z")
    assert all(map(GRANTED.beside, staged))
    assert not any(
        map(GRANTED.beside, ("/ws/p", "/ws/q", "/ws/p/dist", "/ws/p/dist/a", "/ws/p/gen", "/ws/p/far/1", "/"))
    )
    assert not any(map(GRANTED.beside, ("/ws/p/far/1/z", "/ws/other/p/x", "/ws/p/gen/a.py")))


def test_a_pattern_does_not_reach_what_it_is_kept_out_of() -> None:
    walls = ("/ws/p/.git", "/ws/p/sub/nested")
    granted = GrantedNames((Names(path="/ws/p", pattern="/ws/p/**/*.py", without=walls, origin=O),))
    assert granted.granted("/ws/p/sub/a.py")
    assert granted.leads("/ws/p/sub")
    assert not any(map(granted.served, ("/ws/p/.git/a.py", "/ws/p/sub/nested/deep/a.py")))
    assert not any(map(granted.leads, ("/ws/p/.git", "/ws/p/.git/hooks", "/ws/p/sub/nested")))


def test_no_names_are_granted_by_other_operations() -> None:
    assert not GrantedNames((Cover(path="/ws", origin=O),))


@pytest.mark.parametrize(
    ("pattern", "directory", "expected"),
    [
        ("/a/*", "/a", (True, False)),
        ("/a/*/b", "/a", (False, True)),
        ("/a/*/b", "/a/x", (True, False)),
        ("/a/**/b", "/a", (True, True)),
        ("/a/**/b/c", "/a", (False, True)),
        ("/a/**/b/c", "/a/b", (True, True)),
        ("/a/*/", "/a", (True, True)),
        ("/a/{b,c}.txt", "/a", (True, False)),
        ("/a/*", "/b", (False, False)),
        ("a/*", "/a", (False, False)),
    ],
)
def test_where_a_pattern_may_match(pattern: str, directory: str, expected: tuple[bool, bool]) -> None:
    assert globs.matcher((pattern,)).leads(directory) == expected


def test_nothing_is_placed_at_a_served_name_or_below() -> None:
    with pytest.raises(ValueError, match="/ws/dist is served by name"):
        MaskTree(
            (Name(path="/ws/dist", origin=O), Bind(path="/ws/dist/lib", directory=True, origin=O)),
            remember_missing=lambda _path: True,
        )


def test_each_operation_says_what_it_does() -> None:
    assert Name(path="/ws/dist", origin=O).describe() == "serve the name /ws/dist writable, whatever it becomes"
    described = Names(path="/ws/gen", pattern="/ws/gen/*.py", origin=O).describe()
    assert described == "serve every name that matches /ws/gen/*.py writable"
