"""The programs around pytest: which tests are tried once more, and how what a search finds is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

_CONFTEST = """
import hypothesis
hypothesis.settings.register_profile("repository", database=None, derandomize=True)
hypothesis.settings.register_profile("search", database=None)
hypothesis.settings.load_profile("repository")
"""
_TESTS = """
import os, pathlib, pytest
from hypothesis import given, strategies as st

@pytest.fixture(scope="module")
def world():
    return object()

def test_passes_the_second_time():
    seen = pathlib.Path(__file__).with_name("seen")
    before = seen.exists()
    seen.touch()
    assert before

def test_fails_every_time():
    assert "broken" not in os.environ.get("WORLD", "")

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(4))
def test_a_group(number):
    here = pathlib.Path(__file__).parent
    with open(here / "workers", "a") as file:
        print(os.environ.get("PYTEST_XDIST_WORKER", "alone"), file=file)
    assert number or (here / "grouped").exists() or (here / "grouped").touch()

@given(number=st.integers(min_value=0), text=st.text())
def test_a_law(world, number, text):
    assert number < 1000 or "lawless" not in os.environ.get("WORLD", "")
"""


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(_CONFTEST, encoding="utf-8")
    (tmp_path / "test_it.py").write_text(_TESTS, encoding="utf-8")
    return tmp_path


def _run(script: str, world: str, tests: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    told = {"WORLD": world, "SECOND_TRIES": str(tests / "second-tries")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    return subprocess.run(
        (sys.executable, _SCRIPTS / script, *arguments, str(tests)),
        cwd=tests,
        env={**kept, **told},
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "status", "told"),
    [
        ("", 0, ["test_a_group[0]", "test_passes_the_second_time"]),
        ("lawless", 1, ["test_a_group[0]", "test_passes_the_second_time"]),
    ],
)
def test_what_passes_alone_is_listed_and_a_law_gets_no_second_try(
    tests: Path, world: str, status: int, told: list[str]
) -> None:
    done = _run("pytest-again", world, tests, "-q", "-n", "2", "--dist", "loadgroup")
    assert done.returncode == status, done.stdout
    noted = tests / "second-tries"
    listed = noted.read_text(encoding="utf-8").split() if noted.exists() else []
    assert sorted(line.rpartition("::")[2] for line in listed) == told
    # a group is one worker's, and a test of it that failed is tried once more
    *workers, alone = (tests / "workers").read_text(encoding="utf-8").split()
    assert (len(workers), len(set(workers)), alone) == (4, 1, "alone")
    assert ("they get no second try:\n  test_it.py::test_a_law" in done.stdout) is (world == "lawless")


@pytest.mark.slow
def test_what_fails_twice_fails_and_is_not_listed(tests: Path) -> None:
    done = _run("pytest-again", "broken", tests, "-q", "-k", "second or every")
    assert done.returncode == 1, done.stdout
    assert not (tests / "second-tries").exists()


@pytest.mark.slow
def test_a_search_prints_what_it_finds_as_the_example_to_keep(tests: Path) -> None:
    done = _run("search", "lawless", tests, "--seconds", "0.1", "--jobs", "1")
    assert done.returncode == 1, done.stdout
    assert "@example(number=1000, text='')\n" in done.stdout
    assert "1 tests with a counterexample" in done.stdout
    assert _run("search", "", tests, "--seconds", "0.1", "--jobs", "1").returncode == 0
