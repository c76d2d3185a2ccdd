"""Stages and shares: each test has a stage, and a share is the tests its user is there for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.conftest import REPOSITORY
from tests.support import shares

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class _Item:
    nodeid: str
    marks: tuple[str, ...] = ()

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None


def _takers(nodeid: str, *marks: str) -> list[str]:
    item = cast("Any", _Item(nodeid, marks))
    return [share for share in shares.SHARES[1:] if shares.takes(share, item)]


def _each(test: str) -> Iterable[list[str]]:
    return (
        _takers(f"tests/kernel/test_a.py::{test}[{name}-0]", "one_observer") for name in ("mask", "notify", "strace")
    )


def test_a_test_of_a_wall_runs_as_everybody() -> None:
    assert _takers("tests/redteam/test_a.py::test_b[notify]") == ["root", "ordinary", "no-fuse"]


def test_a_test_of_a_report_runs_once_whatever_it_observes() -> None:
    assert _takers("tests/kernel/test_a.py::test_b[mask]", "one_user", "one_observer") == ["ordinary"]


def test_a_further_form_is_left_to_the_runs_of_all() -> None:
    assert _takers("tests/kernel/test_a.py::test_b[mask]", "further", "one_user") == []
    assert shares.takes(shares.ALL, cast("Any", _Item("tests/kernel/test_a.py::test_b", ("further",))))


@pytest.mark.parametrize("test", [f"test_{number}" for number in range(20)])
def test_each_observer_has_one_user_and_each_user_an_observer(test: str) -> None:
    found = list(_each(test))
    assert [len(takers) for takers in found] == [1, 1, 1]
    assert {taker for takers in found for taker in takers} == {"root", "ordinary"}


def test_every_pair_of_user_and_observer_comes_up() -> None:
    pairs = {(index, *takers) for number in range(20) for index, takers in enumerate(_each(f"test_{number}"))}
    assert len(pairs) == 6


def test_all_is_everything() -> None:
    assert shares.takes(shares.ALL, cast("Any", _Item("tests/kernel/test_a.py::test_b", ("one_user",))))


def test_every_file_of_one_user_is_there() -> None:
    assert [name for name in sorted(shares.ONE_USER) if not (REPOSITORY / "tests" / name).is_file()] == []


def test_every_test_is_below_what_a_stage_collects() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    places = {name: re.search(rf"^{name} = (.*)$", makefile, re.MULTILINE) for name in ("UNIT", "KERNEL")}
    unit, kernel = ([REPOSITORY / place for place in found[1].split()] for found in places.values() if found)
    files = set((REPOSITORY / "tests").rglob("test_*.py"))
    assert [file for file in files if not any(file.is_relative_to(place) for place in (*unit, *kernel))] == []
    # the others hold no test that is marked `kernel`
    marked = [place for place in (*unit, *kernel) if place.name in ("kernel", "redteam", "property")]
    assert set(marked) == set(kernel)
