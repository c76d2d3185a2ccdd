"""Patterns and aliases as seatbelt's expressions, against the library that knows globs and against folding."""

from __future__ import annotations

import unicodedata
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sandbox.base import globs, paths
from sandbox.planning.macos import pattern_regex
from sandbox.planning.macos.macos_path_reach import MacPlan
from sandbox.planning.macos.profile_rules import At, Below, Matching, Rule
from sandbox.planning.macos.profile_text import quoted, regex, text
from sandbox.request.protected_names import named_below
from tests.property.strategies import any_names
from tests.support.seatbelt import Pattern, Profile, read, searched

# the library behind patterns compiles some brackets to what Python may read otherwise one day
pytestmark = pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")

_PIECES = (
    "a",
    "b",
    ".",
    "*",
    "?",
    "**",
    "[ab]",
    "[!a]",
    "[]]",
    "[a-c]",
    "[!]/",
    "\\*",
    "\\[",
    "[^b]",
    "-",
    "é",
    "]",
    "$",
    "|",
    "(",
)
_PLAIN = ("a", "b", "c", ".", "-", "]", "é", "$", "|", "(", "*", "[", "a\n", "\\")

components = (
    st.lists(st.sampled_from(_PIECES), min_size=1, max_size=3)
    .map("".join)
    .filter(lambda name: "/" not in name and name not in {".", ".."})
)
grants = st.lists(components, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
names = st.lists(st.sampled_from(_PLAIN), min_size=1, max_size=2).map("".join).filter(lambda n: n not in {".", ".."})
places = st.lists(names, min_size=1, max_size=5).map(lambda parts: "/" + "/".join(parts))


def _is_pattern(grant: str) -> bool:
    return globs.has_wildcard(grant) and not grant.endswith("/")


def _matched(grant: str, path: str) -> bool:
    """Whether a pattern matches a path or something above it."""
    matches = globs.matcher((grant,))
    return any(map(matches, (path, *paths.parents(path))))


#: Some sixty paths are compared for each pattern.
@settings(max_examples=60)
@given(grants.map(globs.collapse).filter(_is_pattern), st.lists(places, min_size=30, max_size=30))
@example("/[]][!a]", ["/].", "/]a"])
@example("/b[.-]", ["/b.", "/b-"])
@example("/[!a]x", ["/.x", "/ax"])
def test_an_expression_matches_what_its_pattern_does_and_all_below(grant: str, some: list[str]) -> None:
    every = {*some, *(f"{path}{grant}" for path in some[:2]), *(grant.replace("*", path[1:]) for path in some)}
    matches = globs.matcher((grant,))
    expression = pattern_regex.expression(grant)
    for path in every:
        wanted = any(map(matches, (path, *paths.parents(path))))
        assert searched(expression, path) is wanted, path


@given(grants.filter(globs.has_wildcard), places, places)
def test_what_is_left_of_a_pattern_in_a_directory_matches_what_it_matches_there(
    grant: str, directory: str, rest: str
) -> None:
    grant = globs.collapse(grant).rstrip("/")
    if not grant or not globs.has_wildcard(grant):
        return
    matches = globs.matcher((grant,))
    path = directory + rest
    wanted = any(matches(one) for one in (path, *paths.parents(path)) if paths.at_or_under(one, directory))
    found = pattern_regex.restricted(grant, directory)
    assert any(_matched(one.rstrip("/"), path) for one in found) is wanted
    strictly = any(matches(one) for one in (path, *paths.parents(path)) if paths.under(one, directory))
    assert any(_matched(one, path) for one in pattern_regex.restricted(grant, directory, strictly=True)) is strictly


@given(st.lists(any_names, min_size=1, max_size=4))
def test_any_path_can_be_spelled(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    rule = Rule(action="allow", operations=("file-read*",), filters=(Below(path=path),))
    alone = Rule(action="allow", operations=("file-write*",), filters=(At(path=path),))
    profile = Profile.of(text(MacPlan(rules=(rule, alone), workspace="/ws", project="/ws")))
    assert profile.allows("file-read-data", path)
    assert profile.allows("file-read-data", f"{path}/x")
    assert not profile.allows("file-read-data", f"{path}x")
    assert profile.allows("file-write-data", path)
    assert not profile.allows("file-write-data", f"{path}/x")
    assert searched(f"^{pattern_regex.literal(path)}$", path)


@given(st.text(min_size=1))
def test_strings_and_expressions_are_read_as_they_were_meant(value: str) -> None:
    assert read(quoted(value)) == [value]
    (found,) = read(regex(value))
    assert found == value
    assert isinstance(found, Pattern) is (not set(value) & set('"\n\r\t'))


_LETTERS = "aAbBsSßẞkKéÉfiFILlst\u03c3\u03c2\u03a3åÅǆ.-_1"


@given(
    st.text(_LETTERS, min_size=1, max_size=8).filter(lambda n: n not in {".", ".."}),
    st.sampled_from(("upper", "lower", "swapcase", "casefold", "title")),
    st.sampled_from(("NFC", "NFD")),
)
def test_every_other_spelling_of_what_is_denied_is_denied_too(
    name: str, change: str, form: Literal["NFC", "NFD"]
) -> None:
    other = unicodedata.normalize(form, getattr(name, change)())
    assert searched(pattern_regex.aliases(f"/ws/{name}"), f"/ws/{other}")
    assert searched(pattern_regex.aliases(f"/ws/{name}"), f"/WS/{other}/below")
    assert not searched(pattern_regex.aliases(f"/ws/{name}"), f"/ws/{other}0")


@pytest.mark.parametrize(
    ("name", "other"),
    [
        (".git", ".GIT"),
        ("straße", "STRASSE"),
        ("strasse", "straße"),
        ("office", "o\ufb03ce"),
        ("office", "o\ufb00ice"),
        ("kit", "\u212ait"),
        ("\u212ait", "kit"),
        ("café", "cafe\u0301"),
        ("cafe\u0301", "CAFÉ"),
        ("fast", "fa\ufb06"),
        ("lists", "li\u017ft\u017f"),
    ],
)
def test_known_aliases_are_covered(name: str, other: str) -> None:
    assert searched(pattern_regex.aliases(f"/ws/{name}"), f"/ws/{other}")


_EXECUTED = (
    ".git",
    "hooks",
    "config",
    "modules",
    "worktrees",
    "x",
    ".vscode",
    ".claude",
    "agents",
    ".BashRC",
    "commondir",
)


@given(
    st.lists(st.sampled_from(_EXECUTED), max_size=3),
    st.lists(st.sampled_from(_EXECUTED), min_size=1, max_size=5),
    st.booleans(),
)
def test_names_other_programs_execute_are_told_alike(above: list[str], rest: list[str], git_config: bool) -> None:
    root = "/".join(("/ws", *above))
    path = "/".join((root, *rest))
    wanted = named_below(path, root, git_config=git_config)
    found = any(searched(one, path) for one in pattern_regex.executed(root, git_config=git_config))
    if found is not wanted:
        # in a submodule's repository more is held than need be, never less
        assert found
        assert "modules" in path


def test_a_directory_pattern_means_directories() -> None:
    plan = MacPlan(
        rules=(Rule(action="allow", operations=("file-read*",), filters=(Matching(pattern="/ws/*/"),)),),
        workspace="/ws",
        project="/ws",
    )
    profile = Profile.of(text(plan))
    assert profile.allows("file-read-data", "/ws/a", directory=True)
    assert profile.allows("file-read-data", "/ws/a/b")
    assert not profile.allows("file-read-data", "/ws/a")
