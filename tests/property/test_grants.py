from __future__ import annotations

import functools
import os
import re
import tempfile
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.machine.ask_facts import HostFiles, Snapshot
from tests.property.strategies import any_names, below, trees
from tests.support.memory_files import MemoryFiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.base.host_facts import Files

ROOT = "/r"
LINK = "\x01"

components = st.sampled_from(["*", "?", "**", ".*", "a", "b", "[ab]", "[!a]", "*a", "?*", r"\*", "{a,b}", "a{b,}"])
patterns = st.builds(
    lambda tail, slash: f"{ROOT}/{'/'.join(tail)}{slash}",
    st.lists(components, min_size=1, max_size=4),
    st.sampled_from(["", "", "/"]),
)


def one_file(path: str) -> MemoryFiles:
    files = MemoryFiles()
    files.add(path, Kind.FILE)
    return files


@given(any_names, any_names)
def test_any_name_survives_being_spelled_as_a_grant(first: str, second: str) -> None:
    path = f"/{first}/{second}"
    grant = globs.escape(path)
    assert globs.named_path(grant) == path
    assert globs.named_path(f"{grant}/**") == path
    assert globs.expand_braces(grant) == (grant,)
    assert globs.matcher([grant])(path)
    assert globs.expand(grant, one_file(path)) == (path,)
    assert globs.literal_base(f"{grant}/*") == path


@given(any_names, st.sampled_from(["*", "?*", "**/?*"]))
def test_any_name_is_hit_by_a_wildcard_and_spelled_beside_one(name: str, wild: str) -> None:
    files = one_file(f"/d/{name}")
    assert globs.expand(f"/d/{wild}", files) == (f"/d/{name}",)
    assert globs.expand(f"/d/{globs.escape(name)}*", files) == (f"/d/{name}",)


@given(st.text(st.sampled_from(list("ab*?[]{},\\/.!^-")), max_size=10).map("/".__add__))
def test_every_text_is_a_grant(text: str) -> None:
    for grant in globs.expand_braces(text):
        assert globs.expand_braces(grant) == (grant,)
        collapsed = globs.collapse(grant)
        assert globs.collapse(collapsed) == collapsed
        path = globs.named_path(grant)
        assert (path is None) is globs.has_wildcard(collapsed)
        if path is not None:
            assert globs.named_path(globs.escape(path)) == path
        globs.matcher([grant])("/a/b")
        globs.expand(grant, MemoryFiles.of("/a/b", "/b/a/*"))


@given(trees(ROOT), patterns)
def test_a_pattern_hits_what_a_walk_of_everything_finds(files: MemoryFiles, pattern: str) -> None:
    assert list(globs.expand(pattern, files)) == sorted(set(walked(pattern, files)))


@given(trees(ROOT, most_links=0), patterns)
def test_the_matcher_agrees_with_the_search_where_there_are_no_links(files: MemoryFiles, pattern: str) -> None:
    matches = globs.matcher([pattern])
    for grant in globs.expand_braces(pattern):
        hits = globs.expand(grant, files)
        whole = globs.is_directory(grant)
        for path in files.kinds:
            if path in hits or (whole and any(paths.under(path, hit) for hit in hits)):
                assert matches(path), path
    found = [
        (grant, path) for grant in globs.expand_braces(pattern) for path in files.kinds if globs.matcher([grant])(path)
    ]
    for grant, path in found:
        hits = globs.expand(grant, files)
        whole = globs.is_directory(grant)
        # what is spelled as a directory would match a file of that name, were it one
        no_directory = whole and files.kind(path) is not Kind.DIRECTORY
        assert no_directory or path in hits or (whole and any(paths.under(path, hit) for hit in hits)), path


def walked(pattern: str, files: MemoryFiles) -> Iterator[str]:
    """An expansion that knows nothing of the search: every spelling of everything, against one expression."""
    for grant in globs.expand_braces(pattern):
        collapsed = globs.collapse(grant)
        parts = [part for part in collapsed.split("/") if part]
        if not globs.has_wildcard(collapsed):
            path = globs.named_path(collapsed) or "/"
            if files.kind(path) is not None:
                yield path
            continue
        wild = next(i for i, part in enumerate(parts) if globs.has_wildcard(part))
        base = "/" + "/".join(globs.unescape(part) for part in parts[:wild])
        holder = paths.canonical(base, files)
        expression = re.compile("".join(map(source, parts[wild:])) + r"\Z", re.DOTALL)
        for spelled, marked in spellings(base, holder, "", files, steps=7):
            target = paths.canonical(spelled, files)
            wanted = not collapsed.endswith("/") or files.kind(target) is Kind.DIRECTORY
            if wanted and expression.match(marked) and within(spelled, base, holder, files):
                yield spelled


def within(spelled: str, base: str, holder: str, files: Files) -> bool:
    """Whether no step of a spelling leaves the directory that holds the wildcard."""
    while spelled != base:
        if not paths.at_or_under(paths.canonical(spelled, files), holder):
            return False
        spelled = paths.parent(spelled)
    return True


def spellings(spelled: str, real: str, marked: str, files: Files, *, steps: int) -> Iterator[tuple[str, str]]:
    if steps == 0:
        return
    for name in files.entries(real):
        kind = files.kind(paths.join(real, name))
        mark = f"{marked}/{name}{LINK if kind is Kind.LINK else ''}"
        below_ = paths.join(spelled, name)
        yield below_, mark
        target = paths.canonical(paths.join(real, name), files)
        if files.kind(target) is Kind.DIRECTORY:
            yield from spellings(below_, target, mark, files, steps=steps - 1)


@functools.cache
def source(component: str) -> str:
    if component == "**":
        return rf"(?:/[^/{LINK}]+)*"
    kinds = {"*": rf"[^/{LINK}]*", "?": rf"[^/{LINK}]", "[ab]": "[ab]", "[!a]": rf"[^a/{LINK}]"}
    pieces = re.findall(r"\[!?[ab]+\]|\\.|.", component)
    return "/" + "".join(kinds.get(piece, re.escape(piece.removeprefix("\\"))) for piece in pieces) + f"{LINK}?"


@settings(max_examples=40)
@given(trees(ROOT), st.lists(below(ROOT), min_size=1, max_size=4))
def test_canonical_is_what_the_kernel_says(files: MemoryFiles, asked: list[str]) -> None:
    with tempfile.TemporaryDirectory() as made:
        top = os.path.realpath(made)
        real = MemoryFiles()
        for path, kind in files.kinds.items():
            if path == "/":
                real.add(top, Kind.DIRECTORY)
            elif kind is Kind.LINK:
                text = files.links[path]
                text = f"{top}{text}" if text.startswith(ROOT) else text
                real.add(top + path, Kind.LINK)
                real.links[top + path] = text
            else:
                real.add(top + path, kind)
        build(real, top)
        snapshot = Snapshot()
        for path in [*asked, *files.kinds]:
            spelled = paths.normal(top + path)
            found = paths.canonical(spelled, HostFiles())
            assert found == paths.canonical(spelled, real) == paths.canonical(spelled, snapshot)
            try:
                expected = os.path.realpath(spelled, strict=True)
            except FileNotFoundError:
                expected = os.path.realpath(spelled)
            except OSError:
                # a loop, or a name below a file
                continue
            assert found == expected


def build(files: MemoryFiles, top: str) -> None:
    for path in sorted(files.kinds, key=paths.parts):
        if not paths.under(path, top):
            continue
        kind = files.kinds[path]
        if kind is Kind.DIRECTORY:
            os.mkdir(path)
        elif kind is Kind.LINK:
            os.symlink(files.links[path], path)
        else:
            with open(path, "xb"):
                pass
