"""Random operations come to the same under a granted name, beside one, and in a directory that is bound."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox import Session
from tests.conftest import REPOSITORY
from tests.support.named import NamedWorkspace
from tests.support.observers import ANSWERING_LONG

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROGRAM = REPOSITORY / "tests" / "support" / "random_tree.py"


@pytest.fixture(scope="module", params=ANSWERING_LONG)
def shop(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[NamedWorkspace, Path]]:
    base = tmp_path_factory.mktemp("random")
    with Session() as session:
        yield (
            NamedWorkspace(str(base), session, observer=request.param),
            Path(shutil.copy(_PROGRAM, base / "random_tree.py")),
        )


def agree(shop: tuple[NamedWorkspace, Path], kind: str, seed: int, steps: int) -> None:
    workspace, program = shop
    run = f"/usr/bin/python3 {program} {{}}/{kind}{seed} {kind} {seed} {steps}"
    outcome = workspace.run(
        f"mkdir -p dist; {run.format('plain')}; echo ----; {run.format('dist')}; echo ----; {run.format('beside')}"
    )
    assert (outcome.err, outcome.incomplete) == ("", "")
    bound, named, staged = outcome.out.split("----\n")
    assert bound.splitlines() == named.splitlines()
    assert bound.splitlines() == staged.splitlines()
    assert len(bound.splitlines()) >= steps
    assert outcome.leftovers == (workspace.path("beside"),)


@pytest.mark.parametrize("seed", range(6))
def test_a_tree(shop: tuple[NamedWorkspace, Path], seed: int) -> None:
    agree(shop, "tree", seed, 600)


@pytest.mark.parametrize("seed", range(4))
def test_a_file(shop: tuple[NamedWorkspace, Path], seed: int) -> None:
    agree(shop, "file", seed, 400)
