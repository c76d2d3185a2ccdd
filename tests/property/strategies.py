"""Random trees, links, names and grants, shared by the laws of this folder."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from sandbox.base import globs, paths
from sandbox.base.host_facts import HostFacts, Kind
from sandbox.request.credential_stores import STORES
from tests.support.memory_files import MemoryFiles

WORKSPACE = "/home/u/ws"
HOME = "/home/u"
TEMP_ROOT = "/tmp/t"
FACTS = HostFacts(platform="linux", home=HOME, temp_root=TEMP_ROOT)

_NAMES = ("a", "b", "c", ".d")
_RELATIVE = tuple(
    "/".join(names) for depth in range(1, 4) for names in itertools.product(_NAMES, repeat=depth)
)  # the short ones first: examples shrink towards them

#: Any name a Linux directory can hold, bytes that are no text included.
any_names = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0") | st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF),
    min_size=1,
    max_size=12,
).filter(lambda name: name not in {".", ".."})


@functools.cache
def below(directory: str) -> st.SearchStrategy[str]:
    """Paths strictly below a directory, of few names, so that random paths meet.

    One draw each: a list of names would be an example's whole cost.
    """
    return st.sampled_from([paths.join(directory, relative) for relative in _RELATIVE])


@st.composite
def trees(draw: st.DrawFn, root: str, *, most_links: int = 3) -> MemoryFiles:
    """A tree below `root`, with links to anywhere in it, above it and to nothing."""
    files = MemoryFiles.of(f"{root}/")
    for path in draw(st.lists(below(root), max_size=10)):
        _add(files, path, draw(st.sampled_from([Kind.FILE, Kind.FILE, Kind.DIRECTORY, Kind.OTHER])))
    for path in draw(st.lists(below(root), max_size=most_links)):
        if _add(files, path, Kind.LINK):
            files.links[path] = draw(_texts(root))
    return files


@functools.cache
def _texts(root: str) -> st.SearchStrategy[str]:
    relative = [".", "..", "../..", "a", "b/c", ".d", "../a/b", "gone", "/etc", root]
    return st.sampled_from([*relative, *(paths.join(root, path) for path in _RELATIVE[:20])])


def _add(files: MemoryFiles, path: str, kind: Kind) -> bool:
    """Adds a name where the tree has room for it."""
    above = [files.kind(directory) for directory in paths.parents(path)]
    if files.kind(path) is not None or any(known not in {None, Kind.DIRECTORY} for known in above):
        return False
    files.add(path, kind)
    return True


@dataclass(frozen=True)
class Case:
    """A request in the making: what `tests.support.plans.planned` takes besides the files."""

    files: MemoryFiles
    given: dict[str, Any] = field(hash=False)

    def but(self, **changed: Any) -> dict[str, Any]:
        return self.given | changed


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A workspace in a home with credential stores, and grants over both; some are refused."""
    files = draw(trees(WORKSPACE))
    project = draw(st.sampled_from([WORKSPACE, f"{WORKSPACE}/a", f"{WORKSPACE}/a/b"]))
    if files.kind(project) is not Kind.DIRECTORY and not _add(files, project, Kind.DIRECTORY):
        project = WORKSPACE
    for wall in draw(st.lists(st.sampled_from([".git/HEAD", ".vx/cache/x", ".vx/other"]), unique=True)):
        _add(files, f"{WORKSPACE}/{wall}", Kind.FILE)
    for store in draw(st.lists(st.sampled_from(STORES), max_size=4, unique=True)):
        _add(files, f"{HOME}/{store}", draw(st.sampled_from([Kind.FILE, Kind.DIRECTORY])))
        if files.kind(f"{HOME}/{store}") is Kind.DIRECTORY:
            _add(files, f"{HOME}/{store}/inside", Kind.FILE)
    _add(files, f"{HOME}/notes", Kind.FILE)
    _add(files, f"{HOME}/.config/app/x", Kind.FILE)
    _add(files, f"{TEMP_ROOT}/other/x", Kind.FILE)
    _add(files, f"{TEMP_ROOT}/mine", Kind.DIRECTORY)
    return Case(
        files,
        {
            "workspace": WORKSPACE,
            "project": project,
            "facts": FACTS,
            "read": draw(st.lists(grants(files, write=False), max_size=4).map(tuple)),
            "write": draw(st.lists(grants(files, write=True), max_size=2).map(tuple)),
            "nested": draw(st.lists(below(WORKSPACE), max_size=2)),
            "temp": draw(st.sampled_from([None, f"{TEMP_ROOT}/mine"])),
        },
    )


def grants(files: MemoryFiles, *, write: bool) -> st.SearchStrategy[str]:
    """Grants on what is there, on what is not, and for reading a few patterns too."""
    named = sorted(files.kinds) + [paths.join(WORKSPACE, relative) for relative in _RELATIVE[:20]]
    real = [globs.escape(paths.canonical(path, files)).rstrip("/") for path in named]
    if write:
        return st.sampled_from([f"{path}/" for path in real if not path.endswith(_FILES)])
    whole = [f"{path}/" for path in real] + [path for path in real if path]
    return st.sampled_from(whole) | st.sampled_from([f"{path}/{tail}" for path in real for tail in _WILD])


_FILES = ("HEAD", "/x", "/notes", "/inside")
_WILD = ("*", ".*", "?", "**/a", "*/b", "**", "[ab]", "{a,b}")
