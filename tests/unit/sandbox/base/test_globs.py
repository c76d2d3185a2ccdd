from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from sandbox.base import globs
from sandbox.contract.errors import Refusal
from sandbox.machine.ask_facts import HostFiles
from tests.support.memory_files import MemoryFiles

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        ("c{a,b}.md", ("ca.md", "cb.md")),
        ("{a,{b,c}}{1..2}", ("a1", "a2", "b1", "b2", "c1", "c2")),
        ("{a,a}", ("a",)),
        (r"\{a,b\}", (r"\{a,b\}",)),
        (r"{a,b\,c}", ("a", r"b\,c")),
        (r"\\{a,b}", (r"\\a", r"\\b")),
        ("a{b}", (r"a\{b\}",)),
        ("{a,b", (r"\{a,b",)),
        ("x{,/**}", ("x", "x/**")),
        ("plain", ("plain",)),
    ],
)
def test_braces_stand_for_alternatives_and_escaped_ones_do_not(grant: str, expected: tuple[str, ...]) -> None:
    assert globs.expand_braces(grant) == expected
    assert tuple(again for once in expected for again in globs.expand_braces(once)) == expected


@pytest.mark.parametrize("grant", ["{1..100000000}", "{a,b}" * 12, "{1..40}{1..40}"])
def test_braces_that_explode_are_refused_at_once(grant: str) -> None:
    with pytest.raises(Refusal, match="stand for more than 1000 grants") as caught:
        globs.expand_braces(grant)
    assert caught.value.code == "VX313"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        ("a*", True),
        ("a?", True),
        ("a[b]", True),
        ("a]b", True),
        (r"a\{b\}", False),
        ("a/b", False),
        (r"\*\?\[x\]", False),
        (r"\\*", True),
        (r"o\ut", False),
    ],
)
def test_stars_questions_and_brackets_are_wildcards_unless_escaped(grant: str, expected: bool) -> None:
    assert globs.has_wildcard(grant) is expected


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        (r"out/\[id\]", "out/[id]"),
        ("out/[id]", None),
        ("out/*", None),
        ("out/x", "out/x"),
        ("a{b,c}", None),
        ("a{b}", "a{b}"),
        (r"o\ut", r"o\ut"),
        (r"a\,b\\c", r"a,b\c"),
        ("dir/", "dir"),
        ("dir/**", "dir"),
        (r"/out/\[id\]/**", "/out/[id]"),
        ("/", "/"),
        ("/**", "/"),
        ("**/*", "."),
    ],
)
def test_the_one_path_a_grant_names(grant: str, expected: str | None) -> None:
    assert globs.named_path(grant) == expected


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        ("lib/**", "lib/"),
        ("lib/**/*", "lib/"),
        ("**/*", "./"),
        ("**", "./"),
        ("/ws/p/**/*", "/ws/p/"),
        ("lib/**/**/*", "lib/"),
        ("lib/**/", "lib/"),
        (".*.tmp/**", ".*.tmp/"),
        ("/**", "/"),
        ("lib/*", "lib/*"),
        ("lib/a**", "lib/a**"),
        (r"lib/\**", r"lib/\**"),
        ("lib/**/*.py", "lib/**/*.py"),
        ("lib", "lib"),
    ],
)
def test_a_tail_of_stars_means_the_directory(grant: str, expected: str) -> None:
    assert globs.collapse(grant) == expected
    assert globs.is_directory(grant) is expected.endswith("/")


PROJECT = MemoryFiles.of(
    "/ws/p/a.txt",
    "/ws/p/.hidden",
    "/ws/p/real/f.txt",
    "/ws/p/real/deep/g.txt",
    "/ws/p/pages/[slug].py",
    "/ws/p/pages/s.py",
    "/ws/p/[id].md",
    "/ws/p/x.md",
    "/ws/libs/money/src/coin.txt",
    links={
        "/ws/p/alias": "real",
        "/ws/p/out": "../libs/money/src",
        "/ws/p/loop": ".",
        "/ws/p/gone": "nothing",
    },
)


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        ("/ws/p/*.txt", ["/ws/p/a.txt"]),
        ("/ws/p/.h*", ["/ws/p/.hidden"]),
        ("/ws/p/re?l", ["/ws/p/real"]),
        ("/ws/p/*/f.txt", ["/ws/p/alias/f.txt", "/ws/p/real/f.txt"]),
        ("/ws/p/**/*.txt", ["/ws/p/a.txt", "/ws/p/real/deep/g.txt", "/ws/p/real/f.txt"]),
        ("/ws/p/**/**/g.txt", ["/ws/p/real/deep/g.txt"]),
        ("/ws/p/r*/**/g.txt", ["/ws/p/real/deep/g.txt"]),
        ("/ws/p/real/*/", ["/ws/p/real/deep"]),
        ("/ws/p/a*/", ["/ws/p/alias"]),
        ("/ws/p/cache/deep/*", []),
        ("/ws/p/{a,b}.txt", ["/ws/p/a.txt"]),
        (r"/ws/p/pages/\[slug\].py", ["/ws/p/pages/[slug].py"]),
        ("/ws/p/pages/[slug].py", ["/ws/p/pages/s.py"]),
        ("/ws/p/pages/[!s]slug].py", ["/ws/p/pages/[slug].py"]),
        (r"/ws/p/\[*.md", ["/ws/p/[id].md"]),
        ("/ws/p/[x-z].md", ["/ws/p/x.md"]),
        ("/ws/p/*/../a.txt", ["/ws/p/a.txt"]),
    ],
)
def test_what_a_pattern_hits_now(grant: str, expected: list[str]) -> None:
    assert list(globs.expand(grant, PROJECT)) == expected


def test_a_hit_that_leaves_the_wildcards_directory_through_a_link_is_dropped() -> None:
    hits = globs.expand("/ws/p/*", PROJECT)
    assert {"/ws/p/a.txt", "/ws/p/real", "/ws/p/alias", "/ws/p/.hidden"} <= set(hits)
    assert "/ws/p/out" not in hits
    assert globs.expand("/ws/p/o*/coin.txt", PROJECT) == ()
    # the wildcard's own directory is what counts, not the project
    assert globs.expand("/ws/p/out/*.txt", PROJECT) == ("/ws/p/out/coin.txt",)


def test_skipped_places_and_all_below_them_are_no_hits() -> None:
    skip = globs.matcher(["/ws/p/real/"])
    assert globs.expand("/ws/p/**/*.txt", PROJECT, skip=skip) == ("/ws/p/a.txt",)
    assert "/ws/p/alias" not in globs.expand("/ws/p/*", PROJECT, skip=skip)


def test_links_in_a_circle_end() -> None:
    files = MemoryFiles.of("/d/f", links={f"/d/l{n}": "." for n in range(9)} | {"/d/a": "b", "/d/b": "a"})
    hits = globs.expand("/d/*/*/f", files)
    assert "/d/l0/l8/f" in hits
    assert globs.expand("/d/a/*", files) == ()


def test_a_pattern_that_would_look_at_everything_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(globs, "MAX_ENTRIES", 500)
    files = MemoryFiles.of("/d/f", links={f"/d/l{n}": "." for n in range(9)})
    with pytest.raises(Refusal, match=r'"/d/\*/\*/\*/\*/\*/\*" looks at more than 500 directory entries') as caught:
        globs.expand("/d/*/*/*/*/*/*", files)
    assert caught.value.code == "VX313"


def test_only_directories_the_pattern_needs_are_listed() -> None:
    files = MemoryFiles.of(*(f"/d/big/{n}" for n in range(1000)), "/d/lib/x.py")
    globs.expand("/d/lib/*.py", files)
    assert files.looked < 20


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("gen/**", "gen/a/b.py", True),
        ("gen/**", "gen", True),
        ("gen/**", "genx", False),
        ("*", "a/b", False),
        ("*", ".a", True),
        ("**/x", "x", True),
        ("**/x", "a/.b/x", True),
        ("a/**/b/**/c", "a/b/c", True),
        ("a/**/b/**/c", "a/1/b/2/3/c", True),
        ("a/**/b/**/c", "a/1/2/3/c", False),
        ("*.tmp/", "k.tmp/d/f", True),
        ("*.tmp/", "ktmp/f", False),
        ("/a/*", "a/b", False),
        ("a.b", "axb", False),
        (r"a\*", "a*", True),
        (r"a\*", "ab", False),
        (r"o\u*", r"o\ut", True),
        ("{a,b}.md", "b.md", True),
        ("a*(b)", "a1(b)", True),
        ("!a*", "!ab", True),
        ("x?y", "x\ny", True),
    ],
)
def test_a_matcher_judges_whole_paths(pattern: str, path: str, expected: bool) -> None:
    assert globs.matcher([pattern])(path) is expected


@pytest.mark.parametrize("name", ["a\nb", "caf\udce9", 'it\'s "quoted"', "two words", "[x]*?{y}\\z,", "-n", "!x", "~"])
def test_any_name_can_be_granted_and_hit_on_a_real_file_system(tmp_path: Path, name: str) -> None:
    root = str(tmp_path.resolve())
    (tmp_path / name).write_text("")
    path = f"{root}/{name}"
    assert globs.named_path(globs.escape(path)) == path
    assert globs.expand(globs.escape(path), HostFiles()) == (path,)
    assert globs.expand(f"{globs.escape(root)}/*", HostFiles()) == (path,)
    assert globs.expand(f"{globs.escape(root)}/{globs.escape(name)}*", HostFiles()) == (path,)


def test_the_libraries_load_only_for_braces_and_wildcards() -> None:
    program = """
import sys
from sandbox.base import globs
globs.named_path("/ws/lib/"), globs.matcher(["/a/b/**"])("/a/b"), globs.has_wildcard("/a"), globs.escape("/a*")
assert not {"wcmatch", "bracex"} & set(sys.modules), "loaded too early"
globs.expand_braces("{a,b}"), globs.matcher(["*.x"])
assert {"wcmatch", "bracex"} <= set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
