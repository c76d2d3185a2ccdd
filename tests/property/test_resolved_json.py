from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.contract.config import Ignore, ResolvedSandboxConfig
from sandbox.contract.errors import RequestRefused
from sandbox.wire.config_json import from_dict, from_json, to_dict, to_json
from tests.property.strategies import any_names

absolute = st.lists(any_names, max_size=3).map(lambda names: "/" + "/".join(names))
texts = st.lists(any_names, max_size=2).map(tuple)
grants = st.lists(absolute, max_size=3).map(tuple)
flags = st.booleans()
configs = st.builds(
    ResolvedSandboxConfig,
    platform=st.sampled_from(["linux", "macos"]),
    workspace=absolute,
    project=absolute,
    version=st.just(1),
    allow_read=grants,
    allow_write=grants,
    network=st.none() | st.just(value=True) | texts,
    deny_network=texts,
    system_info=texts,
    unix_sockets=st.none() | st.just(value=True) | grants,
    local_binding=flags | st.lists(st.integers(1, 65535), min_size=1, max_size=3).map(tuple),
    mach_lookup=texts,
    pty=flags,
    git_config=flags,
    weaker_when_nested=flags,
    weaker_network_isolation=flags,
    hermetic=flags,
    ignore=st.builds(Ignore, read=texts, write=texts, system_info=texts, network=texts),
)
keys = sorted(to_dict(ResolvedSandboxConfig(platform="linux", workspace="/", project="/")))
values = (
    st.none() | flags | st.integers(-1, 70000) | st.text(max_size=3) | st.lists(st.integers() | st.text(), max_size=2)
)


@given(configs)
def test_every_config_comes_back_and_is_written_the_same_again(config: ResolvedSandboxConfig) -> None:
    text = to_json(config)
    again = from_json(text)
    assert again == config
    assert hash(again) == hash(config)
    assert to_json(again) == text
    text.encode("ascii")


@given(configs, st.sampled_from(keys), values)
def test_a_changed_value_is_read_as_it_is_or_refused_by_its_key(
    config: ResolvedSandboxConfig, key: str, value: object
) -> None:
    changed = json.loads(json.dumps(to_dict(config) | {key: value}))
    named: list[str] = []
    try:
        assert to_dict(from_dict(changed)) == changed
    except RequestRefused as refused:
        named = [refusal.field for refusal in refused.refusals]
    assert named in ([], [key])


@given(st.recursive(values, lambda inner: st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=6))
def test_anything_else_is_refused_and_never_a_traceback(data: object) -> None:
    with pytest.raises(RequestRefused):
        from_dict(data)
