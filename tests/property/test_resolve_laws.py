"""Laws of the way from a file's data to a resolved config."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from sandbox.base import globs, paths
from sandbox.wire.config_json import to_json
from tests.property.strategies import HOME, WORKSPACE, any_names, trees
from tests.support.memory_files import MemoryFiles
from tests.support.task_data import as_data
from vxconf.resolve.resolve_block import Resolution, resolve
from vxconf.resolve.task_model_from_data import fill_defaults

if TYPE_CHECKING:
    import random

PROJECT = f"{WORKSPACE}/a"

_PIECES = ("a", "b", "c", ".d", "..", ".", "*", "**", "?", "[ab]", "{a,b}", r"\*", "a*", "gone")
_grants = st.builds(
    lambda start, pieces, end: start + "/".join(pieces) + end,
    st.sampled_from(["", "", "", "./", "~/", f"{WORKSPACE}/", "../"]),
    st.lists(st.sampled_from(_PIECES), min_size=1, max_size=4),
    st.sampled_from(["", "", "/", "/**"]),
)
_lists = st.lists(_grants, max_size=4)


@st.composite
def _blocks(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "allow": {"read": draw(_lists), "write": draw(_lists), "pty": draw(st.booleans())},
        "ignore": {"read": draw(_lists)},
        "hermetic": draw(st.booleans()),
    }


@st.composite
def _worlds(draw: st.DrawFn) -> MemoryFiles:
    files = draw(trees(WORKSPACE))
    if files.kind(PROJECT) is None:
        files = MemoryFiles.of(f"{PROJECT}/")
    return files


def _file(block: dict[str, Any]) -> dict[str, Any]:
    return {"tasks": {"t": {"exec": {"command": "x", "sandbox": block}}}}


def _resolved(block: dict[str, Any], files: MemoryFiles, *, project: str = PROJECT) -> Resolution:
    run = fill_defaults(_file(block)).tasks[0].exec
    assert run is not None
    assert run.sandbox is not None
    return resolve(run.sandbox, platform="linux", workspace=WORKSPACE, project=project, home=HOME, files=files)


def _shuffled(value: Any, seed: random.Random) -> Any:
    if not isinstance(value, dict):
        return value
    keys = list(value)
    seed.shuffle(keys)
    return {key: _shuffled(value[key], seed) for key in keys}


@given(_blocks())
def test_filling_defaults_again_changes_nothing(block: dict[str, Any]) -> None:
    model = fill_defaults(_file(block))
    assert fill_defaults(as_data(model)) == model


@given(_blocks())
def test_filling_defaults_leaves_the_data_as_it_was(block: dict[str, Any]) -> None:
    before = copy.deepcopy(block)
    fill_defaults(_file(block))
    assert block == before


@given(_blocks(), _worlds(), st.randoms(use_true_random=False))
def test_the_order_of_keys_never_changes_a_byte_of_the_result(
    block: dict[str, Any], files: MemoryFiles, seed: random.Random
) -> None:
    assert to_json(_resolved(block, files).config) == to_json(_resolved(_shuffled(block, seed), files).config)


@given(_lists, _worlds())
def test_repeating_a_list_adds_nothing_to_it(grants: list[str], files: MemoryFiles) -> None:
    once = _resolved({"allow": {"read": grants, "write": grants}}, files).config
    twice = _resolved({"allow": {"read": grants * 2, "write": grants * 2}}, files).config
    assert once == twice
    assert len(set(once.allow_read)) == len(once.allow_read)


@given(_lists, _worlds())
def test_every_grant_is_absolute_and_canonical_up_to_its_first_wildcard(grants: list[str], files: MemoryFiles) -> None:
    config = _resolved({"allow": {"read": grants, "write": grants}}, files).config
    for grant in (*config.allow_read, *config.allow_write):
        assert grant.startswith("/")
        place = globs.literal_base(grant) if globs.has_wildcard(grant) else globs.unescape(grant).rstrip("/") or "/"
        # a path whose links never end stays as it was spelled
        assert paths.canonical(place, files) == place or paths.links_on(place, files) == ()


@given(_lists, _worlds())
def test_resolving_what_was_resolved_changes_nothing(grants: list[str], files: MemoryFiles) -> None:
    first = _resolved({"allow": {"read": grants, "write": grants}}, files).config
    again = _resolved({"allow": {"read": list(first.allow_read), "write": list(first.allow_write)}}, files).config
    assert (again.allow_read, again.allow_write) == (first.allow_read, first.allow_write)


@given(_lists, _worlds())
def test_every_grant_is_traced_to_an_entry_of_its_own_list(grants: list[str], files: MemoryFiles) -> None:
    found = _resolved({"allow": {"read": grants}}, files)
    for index in range(len(found.config.allow_read)):
        entries = found.origin(f"allowRead[{index}]")
        assert entries
        for entry in entries:
            assert grants[int(entry.path[-1])] == entry.text


@given(_lists, _worlds())
def test_a_write_grant_spelled_inside_the_project_never_lands_outside(grants: list[str], files: MemoryFiles) -> None:
    for grant in grants:
        if ".." in grant or grant.startswith(("/", "~")):
            continue
        for resolved in _resolved({"allow": {"write": [grant]}}, files).config.allow_write:
            place = globs.literal_base(resolved) if globs.has_wildcard(resolved) else globs.unescape(resolved)
            assert paths.at_or_under(place.rstrip("/"), PROJECT)


@given(any_names)
def test_any_name_can_be_granted_exactly(name: str) -> None:
    files = MemoryFiles.of(f"{PROJECT}/{name}")
    spelled = globs.escape(name)
    assume_plain = spelled if not spelled.startswith("~") else f"./{spelled}"
    (grant,) = _resolved({"allow": {"read": [assume_plain]}}, files).config.allow_read
    assert globs.named_path(grant) == f"{PROJECT}/{name}"
