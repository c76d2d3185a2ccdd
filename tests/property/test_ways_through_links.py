"""Laws of the way to a path: it is the same whether the directories above were followed before or not."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import example, given
from hypothesis import strategies as st

from sandbox.base import paths
from tests.property.strategies import trees
from tests.support.memory_files import MemoryFiles

_ROOT = "/r"
_components = st.sampled_from(["a", "a", "b", "b", "c", ".d", "..", ".", "", "gone"])
_spelled = st.builds(
    lambda components, end: "/".join((_ROOT, *components)) + end,
    st.lists(_components, max_size=7),
    st.sampled_from(["", "", "", "/", "/.", "//"]),
)
_texts = st.builds(
    lambda start, components: start + "/".join(components),
    st.sampled_from(["", "", f"{_ROOT}/", "../", "/"]),
    st.lists(_components.filter(bool), min_size=1, max_size=4),
)


@dataclass
class _Unchanging(MemoryFiles):
    """Files that stay as they are, so that the way to each directory is kept; with others each path is walked."""

    kept: dict[tuple[str | None, ...], object] = field(default_factory=dict)


def _holds(files: MemoryFiles, asked: list[str]) -> None:
    shared = _Unchanging(files.kinds, files.links)
    for path in asked:
        alone = _Unchanging(files.kinds, files.links)
        place, links = paths.canonical(path, files), paths.links_on(path, files)
        assert (paths.canonical(path, alone), paths.links_on(path, alone)) == (place, links), path
        assert (paths.canonical(path, shared), paths.links_on(path, shared)) == (place, links), path


@st.composite
def _linked_trees(draw: st.DrawFn) -> MemoryFiles:
    """A tree with many links: through one another, to nothing, in circles, with `..` behind a link."""
    files = draw(trees(_ROOT, most_links=9))
    for place in files.links:
        if draw(st.booleans()):
            files.links[place] = draw(_texts)
    return files


@example(MemoryFiles.of("/r/b/c/", links={"/r/a": "b/c/..", "/r/b/d": "../a/d"}), ["/r/a/../a/c", "/r/a/d/x/.."], "")
@given(_linked_trees(), st.lists(_spelled, min_size=1, max_size=12), st.sampled_from(["", "/r/a", "/r/b", "/r/a/b"]))
def test_a_way_is_the_same_with_the_directories_above_known(
    files: MemoryFiles, asked: list[str], unreadable: str
) -> None:
    # what lies in a directory that cannot be entered is there for nobody
    files.kinds = {path: kind for path, kind in files.kinds.items() if not paths.under(path, unreadable or path)}
    _holds(files, asked)


@given(st.integers(0, 3), st.integers(0, 3), st.lists(st.sampled_from(["l0", "l1", "l2", "x", ".."]), max_size=5))
def test_the_links_of_a_whole_path_are_counted(more: int, fewer: int, names: list[str]) -> None:
    count = paths.LINK_HOPS + more - fewer
    chain = {f"/r/l{number}": f"l{number + 1}" for number in range(count)}
    files = MemoryFiles.of(f"/r/l{count}/", links={**chain, f"/r/l{count}/x": "../l2"})
    _holds(files, ["/".join((_ROOT, *names[:end])) for end in range(len(names) + 1)])


@given(st.integers(30, 50), st.lists(_components, max_size=4), _linked_trees())
def test_a_deep_path_is_walked_alike(depth: int, names: list[str], files: MemoryFiles) -> None:
    _holds(files, ["/".join((_ROOT, *names, *["a", ".."] * depth, *names))])
