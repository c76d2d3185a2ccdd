from __future__ import annotations

import pytest

from sandbox.base import globs
from sandbox.contract.errors import Refusal
from sandbox.request import task_outputs
from tests.support.memory_files import MemoryFiles

LIB = "/ws/libs/money"


def found(files: MemoryFiles, *patterns: str) -> tuple[list[str], list[str]]:
    made = task_outputs.find([(LIB, patterns)], files)
    return [path.removeprefix(f"{LIB}/") for path in made.reads], [p.removeprefix(f"{LIB}/") for p in made.reported]


def test_a_directory_of_nothing_but_outputs_is_opened_whole() -> None:
    files = MemoryFiles.of(f"{LIB}/dist/a.js", f"{LIB}/dist/deep/b.js", f"{LIB}/src/coin.py")
    for pattern in ("dist/", "dist/**", "dist", "./dist/**/*"):
        assert found(files, pattern) == (["dist"], ["dist"])


def test_files_beside_the_outputs_stay_closed_and_are_reported() -> None:
    files = MemoryFiles.of(f"{LIB}/gen/a.js", f"{LIB}/gen/notes.txt", f"{LIB}/gen/all/b.js", f"{LIB}/gen/all/c.js")
    assert found(files, "gen/**/*.js") == (["gen/a.js", "gen/all"], ["gen"])


def test_a_pattern_with_no_head_never_opens_the_project() -> None:
    files = MemoryFiles.of(f"{LIB}/a.tsbuildinfo", f"{LIB}/sub/b.tsbuildinfo")
    assert found(files, "*.tsbuildinfo") == (["a.tsbuildinfo"], [])
    assert found(files, "**/*.tsbuildinfo") == (["a.tsbuildinfo", "sub/b.tsbuildinfo"], [])


def test_an_entry_with_a_mark_takes_files_back() -> None:
    files = MemoryFiles.of(f"{LIB}/dist/a.js", f"{LIB}/dist/cache/x", f"{LIB}/dist/b/c.js")
    for back in ("!dist/cache", "!dist/cache/**", "!dist/cache/"):
        assert found(files, "dist/**", back) == (["dist/a.js", "dist/b"], ["dist"])
    assert found(files, "dist/a.js", "!dist/a.js") == ([], [])


def test_a_link_is_opened_only_in_a_directory_opened_whole() -> None:
    files = MemoryFiles.of(f"{LIB}/dist/a.js", links={f"{LIB}/dist/l": "../src", f"{LIB}/link": "src"})
    assert found(files, "dist/**", "link") == (["dist"], ["dist"])
    files.add(f"{LIB}/dist/not.txt", files.kinds[f"{LIB}/dist/a.js"])
    assert found(files, "dist/a.js", "dist/l") == (["dist/a.js"], [])
    assert found(files, "dist/*[!t]") == (["dist/a.js"], ["dist"])


def test_a_head_that_is_a_link_or_leaves_the_project_opens_nothing() -> None:
    files = MemoryFiles.of(f"{LIB}/src/a.js", "/ws/other/x", links={f"{LIB}/dist": "../../other"})
    assert found(files, "dist/**", "../../other/**") == ([], [])


def test_an_empty_directory_is_opened_where_it_was_named() -> None:
    files = MemoryFiles.of(f"{LIB}/dist/", f"{LIB}/gen/")
    assert found(files, "dist/**", "gen/*.js") == (["dist"], ["dist", "gen"])


def test_outputs_that_are_not_there_are_nothing() -> None:
    assert found(MemoryFiles.of(f"{LIB}/src/a"), "dist/**", "out.bin") == ([], [])


def test_braces_and_odd_names_are_read_as_in_a_grant() -> None:
    files = MemoryFiles.of(f"{LIB}/dist/[id].js", f"{LIB}/dist/b.js", f"{LIB}/dist/c.ts")
    assert found(files, "dist/\\[id\\].{js,ts}") == (["dist/[id].js"], [])


def test_too_many_names_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(globs, "MAX_ENTRIES", 3)
    with pytest.raises(Refusal, match="more than 3 names"):
        found(MemoryFiles.of(*(f"{LIB}/dist/{n}" for n in range(4))), "dist/**")
