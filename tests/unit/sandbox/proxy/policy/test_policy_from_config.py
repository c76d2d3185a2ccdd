"""What a task's proxy is told: its lists, the run's union, ports, sockets and the host's own proxies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandbox.base.host_patterns import PatternRefused
from sandbox.contract.config import ResolvedSandboxConfig
from sandbox.contract.errors import NotStarted
from sandbox.proxy.policy.policy import Policy, UpstreamProxies
from sandbox.proxy.policy.policy_from_config import host_ports, own_sockets, policy, union, upstream

if TYPE_CHECKING:
    from collections.abc import Mapping


def config(**fields: Any) -> ResolvedSandboxConfig:
    return ResolvedSandboxConfig(platform="linux", workspace="/ws", project="/ws/apps/shop", **fields)


def test_a_task_without_grants_reaches_nothing_but_its_own_sockets() -> None:
    assert policy(config(), temp="/tmp/t") == Policy(own_sockets=("/tmp/t",), private_sockets=("/tmp/t",))


def test_lists_are_compared_in_one_form_whatever_their_spelling() -> None:
    found = policy(
        config(network=("PKG.test", "pkg.test", "*.ACME.test:443", "[0:0::1]:80"), deny_network=("*:22",)), temp=""
    )
    assert found.allow == ("pkg.test", "*.acme.test:443", "[::1]:80")
    assert found.deny == ("*:22",)


def test_the_runs_union_holds_every_listed_host_once() -> None:
    lists = [config(network=("a.test", "s.test")), config(network=("b.test", "S.test")), config(), config(network=True)]
    assert union(lists) == ("a.test", "s.test", "b.test")


def test_true_reaches_the_union_and_keeps_its_own_deny_list() -> None:
    asked = config(network=True, deny_network=("b.test",))
    found = policy(asked, temp="", declared=[config(network=("b.test",), deny_network=("a.test",)), asked])
    assert (found.allow, found.deny) == (("b.test",), ("b.test",))


def test_true_without_a_declared_list_reaches_nothing() -> None:
    assert policy(config(network=True), temp="").allow == ()
    assert policy(config(network=True), temp="", declared=[config(network=True), config()]).allow == ()


def test_a_list_is_the_tasks_own_whatever_else_the_run_declares() -> None:
    assert policy(config(network=("a.test",)), temp="", declared=[config(network=("b.test",))]).allow == ("a.test",)
    assert policy(config(network=()), temp="", declared=[config(network=("b.test",))]).allow == ()
    assert policy(config(), temp="", declared=[config(network=("b.test",))]).allow == ()


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (("localhost:4173", "127.0.0.1:4173", "[::1]:5000", "pkg.test:443", "localhost"), (4173, 5000)),
        (True, ()),
        (None, ()),
        ((), ()),
        (("127.0.0.2:80", "*.localhost.test:81"), ()),
    ],
)
def test_ports_of_the_hosts_loopback_are_those_a_list_names(network: Any, expected: tuple[int, ...]) -> None:
    assert host_ports(config(network=network)) == expected


def test_a_port_of_the_tasks_own_server_is_not_dialled_on_the_host() -> None:
    assert host_ports(config(network=("localhost:8000", "localhost:9000"), local_binding=(8000,))) == (9000,)


@pytest.mark.parametrize("denied", ["localhost:8000", "127.0.0.1", "[::1]:8000", "*", "*:8000"])
def test_a_denied_port_is_not_dialled_past_the_proxy(denied: str) -> None:
    assert host_ports(config(network=("localhost:8000",), deny_network=(denied,))) == ()
    assert host_ports(config(network=("localhost:8001",), deny_network=("localhost:8000", "x.test"))) == (8001,)


def test_a_temporary_directory_in_a_write_grant_is_not_the_task_s_alone() -> None:
    for granted, private in (("/tmp/", ()), ("/tmp/other/", ("/tmp/t",)), ("/tmp/t/deeper/", ("/tmp/t",))):
        assert policy(config(allow_write=(granted,)), temp="/tmp/t").private_sockets == private


def test_a_task_makes_sockets_in_its_temporary_directory_and_its_literal_write_grants() -> None:
    granted = (
        "/ws/apps/shop/dist/",
        r"/ws/apps/shop/pages/\[id\]/",
        "/ws/apps/shop/app.sock",
        "/ws/apps/shop/gen/*.py",
    )
    expected = ("/tmp/t", "/ws/apps/shop/dist", "/ws/apps/shop/pages/[id]", "/ws/apps/shop/app.sock")
    assert own_sockets(config(allow_read=("/ws/lib/",), allow_write=granted), "/tmp/t") == expected


@pytest.mark.parametrize(
    ("given", "expected"), [(True, True), (("/run/x.sock",), ("/run/x.sock",)), ((), ()), (None, ())]
)
def test_host_sockets_are_those_a_block_lists(given: Any, expected: object) -> None:
    assert policy(config(unix_sockets=given), temp="").unix_sockets == expected


@pytest.mark.parametrize(
    "entry", ["https://pkg.test", "intranet", "*", "2130706433", "a\0.test", "169.254.169.254.", ""]
)
def test_what_is_no_host_pattern_never_becomes_a_policy(entry: str) -> None:
    with pytest.raises(PatternRefused):
        policy(config(network=(entry,)), temp="")


P = "http://proxy.test:3128"
Q = "http://other.test:8080"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ({}, UpstreamProxies()),
        ({"HTTP_PROXY": P}, UpstreamProxies(http=P)),
        ({"HTTPS_PROXY": P}, UpstreamProxies(https=P)),
        ({"http_proxy": Q, "HTTP_PROXY": P, "https_proxy": P, "HTTPS_PROXY": Q}, UpstreamProxies(http=Q, https=P)),
        ({"ALL_PROXY": P}, UpstreamProxies(http=P, https=P)),
        ({"ALL_PROXY": P, "http_proxy": "", "HTTP_PROXY": Q}, UpstreamProxies(https=P)),
        ({"all_proxy": Q, "ALL_PROXY": P, "https_proxy": P}, UpstreamProxies(http=Q, https=P)),
        ({"HTTPS_PROXY": "proxy.test:3128"}, UpstreamProxies(https=P)),
        (
            {"HTTPS_PROXY": "http://mel:pa%40ss@proxy.test:3128/"},
            UpstreamProxies(https="http://mel:pa%40ss@proxy.test:3128/"),
        ),
        ({"HTTPS_PROXY": "http://[fd00::1]:3128"}, UpstreamProxies(https="http://[fd00::1]:3128")),
        ({"HTTP_PROXY": P, "REQUEST_METHOD": "GET"}, UpstreamProxies()),
        ({"HTTP_PROXY": P, "http_proxy": Q, "REQUEST_METHOD": "GET"}, UpstreamProxies(http=Q)),
        (
            {"HTTPS_PROXY": P, "NO_PROXY": "a.test, .b.test  c.test,"},
            UpstreamProxies(https=P, except_for=("a.test", ".b.test", "c.test")),
        ),
        ({"HTTPS_PROXY": P, "NO_PROXY": "a.test", "no_proxy": ""}, UpstreamProxies(https=P)),
        ({"HTTPS_PROXY": P, "NO_PROXY": "*"}, UpstreamProxies()),
        ({"NO_PROXY": "a.test"}, UpstreamProxies()),
    ],
)
def test_the_hosts_own_proxies_are_read_as_other_programs_read_them(
    host: Mapping[str, str], expected: UpstreamProxies
) -> None:
    assert upstream(host) == expected


@pytest.mark.parametrize(
    "value", ["socks5h://mel:hunter2@127.0.0.1:1080", "https://mel:hunter2@proxy.test", "http://", "a b"]
)
def test_a_proxy_that_is_not_spoken_is_refused_by_the_name_of_its_variable_alone(value: str) -> None:
    with pytest.raises(NotStarted, match="https_proxy") as refused:
        upstream({"ALL_PROXY": value, "HTTP_PROXY": P})
    assert "hunter2" not in str(refused.value)


def test_a_proxy_that_is_not_spoken_is_no_matter_to_a_task_that_reaches_nothing() -> None:
    host = {"ALL_PROXY": "socks5://127.0.0.1:1080"}
    assert policy(config(), temp="", host=host).upstream == UpstreamProxies()
    with pytest.raises(NotStarted):
        policy(config(network=("a.test",)), temp="", host=host)
