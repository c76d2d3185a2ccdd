"""Laws of host patterns, and that what is explained, suggested and let through never disagree."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.base.host_patterns import Pattern, canonical_host, check_pattern, spelled
from sandbox.contract.config import Ignore, ResolvedSandboxConfig
from sandbox.contract.intents import Intent
from sandbox.contract.results import Access
from sandbox.judge.boundary import Boundary
from sandbox.judge.ignore_lists import IgnoreLists
from sandbox.judge.network_denials import NetworkDenials, never_suggested
from sandbox.planning.path_reach import Plan
from sandbox.proxy.policy import policy_from_config
from sandbox.proxy.policy.host_rules import HostRules
from sandbox.proxy.policy.policy import NOT_ALLOWED, Policy
from vxconf.explain import explain_network
from vxconf.resolve.resolve_block import Resolution
from vxconf.resolve.task_model import Entry

_NAMES = st.sampled_from(["a.test", "b.test", "api.a.test", "x.api.a.test", "xa.test", "10.0.0.1", "[fd00::1]"])
_LOOPBACK = st.sampled_from(["localhost", "127.0.0.1", "[::1]"])
_WILD = st.sampled_from(["*.a.test", "*.api.a.test", "*.b.test"])
_BINDINGS: st.SearchStrategy[bool | tuple[int, ...]] = st.sampled_from([False, True, (8000,), (80, 8000)])
_PORTS = st.sampled_from([22, 80, 443, 8000])


def _entries(*, deny: bool = False, loopback: bool = False) -> st.SearchStrategy[str]:
    hosts = st.one_of(_NAMES, _WILD, *([st.just("*")] if deny else []), *([_LOOPBACK] if loopback else []))
    return st.builds(lambda host, port: host if port is None else f"{host}:{port}", hosts, st.none() | _PORTS)


def _patterns() -> st.SearchStrategy[Pattern]:
    return _entries(deny=True).map(lambda entry: check_pattern(entry, allow=False))


@st.composite
def _configs(draw: st.DrawFn, *, loopback: bool = False) -> ResolvedSandboxConfig:
    return ResolvedSandboxConfig(
        platform="linux",
        workspace="/ws",
        project="/ws/p",
        network=draw(st.none() | st.lists(_entries(loopback=loopback), max_size=4).map(tuple)),
        deny_network=draw(st.lists(_entries(deny=True, loopback=loopback), max_size=3).map(tuple)),
        local_binding=draw(_BINDINGS),
    )


def _lists(config: ResolvedSandboxConfig) -> tuple[tuple[str, tuple[str, ...]], ...]:
    allowed = config.network if isinstance(config.network, tuple) else ()
    return (("network", allowed), ("denyNetwork", config.deny_network))


def _block(config: ResolvedSandboxConfig) -> explain_network.ExplainedNetwork:
    origins = [
        (f"{field}[{index}]", (Entry(text, (field, index)),))
        for field, listed in _lists(config)
        for index, text in enumerate(listed)
    ]
    resolution = Resolution(config=config, origins=tuple(origins), links=(), refusals=())
    return explain_network.ExplainedNetwork(config=config, resolution=resolution)


@settings(max_examples=80)
@given(_patterns(), _patterns(), _NAMES, _PORTS)
def test_what_a_pattern_covers_it_matches_too(wide: Pattern, narrow: Pattern, name: str, port: int) -> None:
    host = canonical_host(name)
    if wide.covers(narrow) and narrow.matches(host, port):
        assert wide.matches(host, port)
    assert wide.covers(wide)


@settings(max_examples=80)
@given(_configs(), _NAMES, _PORTS)
def test_what_is_explained_of_a_host_is_what_the_proxy_does(
    config: ResolvedSandboxConfig, name: str, port: int
) -> None:
    refusal = HostRules(policy_from_config.policy(config, temp="")).refusal(canonical_host(name), port)
    answer = explain_network.host(_block(config), f"{name}:{port}")
    assert answer.allowed is (refusal == "")
    if isinstance(answer.by, Entry):
        denies = str(answer.by.path[0]) == "denyNetwork"
        assert denies is not answer.allowed
        assert check_pattern(answer.by.text, allow=not denies).matches(canonical_host(name), port)
    else:
        assert refusal == NOT_ALLOWED


@settings(max_examples=80)
@given(_configs(), _NAMES)
def test_a_host_without_a_port_is_reached_when_some_port_of_it_is(config: ResolvedSandboxConfig, name: str) -> None:
    rules = HostRules(policy_from_config.policy(config, temp=""))
    named = {check_pattern(entry, allow=False).port for _, listed in _lists(config) for entry in listed}
    ports = [port for port in (*named, 9999) if port is not None]
    some = any(rules.refusal(canonical_host(name), port) == "" for port in ports)
    if explain_network.host(_block(config), name).allowed:
        assert some


@settings(max_examples=80)
@given(_configs(loopback=True))
def test_a_port_is_the_hosts_or_the_tasks_own_and_never_a_denied_one(config: ResolvedSandboxConfig) -> None:
    found = policy_from_config.policy(config, temp="")
    assert not set(found.host_ports) & set(found.published)
    rules = HostRules(found)
    for port in found.host_ports:
        assert any(rules.refusal(host, port) == "" for host in policy_from_config.LOOPBACK)


def _network_denials(*ignored: str) -> NetworkDenials:
    plan = Plan(operations=(), workspace="/ws", project="/ws/p")
    boundary = Boundary(plan=plan, project="/ws/p", workspace="/ws", home="/home/mel")
    return NetworkDenials(boundary, IgnoreLists(Ignore(network=ignored), boundary))


@settings(max_examples=80)
@given(_configs(), st.lists(st.tuples(_NAMES, _PORTS), min_size=1, max_size=4))
def test_the_suggested_entries_let_through_what_was_refused(
    config: ResolvedSandboxConfig, dials: list[tuple[str, int]]
) -> None:
    before = policy_from_config.policy(config, temp="")
    judge = _network_denials()
    curable = []
    for name, port in dials:
        host = canonical_host(name)
        reason = HostRules(before).refusal(host, port)
        judge.take(_refused(spelled(host, port), reason))
        if reason == NOT_ALLOWED:
            curable.append((host, port))
    fix = judge.completed(None)
    suggested = fix.allow.network if fix is not None else ()
    after = HostRules(Policy(allow=(*before.allow, *suggested), deny=before.deny))
    assert all(after.refusal(host, port) == "" for host, port in curable)
    assert len(suggested) <= len(set(curable))


@settings(max_examples=80)
@given(st.text(max_size=40), st.text(max_size=10))
def test_no_target_makes_the_judge_fail(host: str, port: str) -> None:
    judge = _network_denials("*.test:*")
    target = f"{host}:{port}"
    never_suggested(target)
    violation = judge.take(_refused(target, NOT_ALLOWED))
    fix = judge.completed(None)
    if fix is not None:
        assert all(str(check_pattern(entry, allow=True)) == entry for entry in fix.allow.network)
    assert all(hint.line.isprintable() for hint in judge.hints())
    assert violation is None or violation.line.isprintable()


def _refused(target: str, reason: str) -> Access:
    return Access(
        pid=1,
        operation="network-outbound",
        intent=Intent.CONNECT,
        asked=target,
        path="",
        exists=False,
        refused=reason != "",
        reason=reason,
    )
