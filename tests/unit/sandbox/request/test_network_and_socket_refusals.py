"""A config that did not come from a checked file is judged all the same, before anything is run."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox import Session
from sandbox.contract.config import ResolvedSandboxConfig
from sandbox.contract.errors import RequestRefused
from sandbox.request.network_and_socket_refusals import judge


def config(**fields: Any) -> ResolvedSandboxConfig:
    return ResolvedSandboxConfig(platform="linux", workspace="/ws", project="/ws/apps/shop", **fields)


def test_what_can_be_granted_is_refused_for_nothing() -> None:
    whole = config(
        network=("pkg.test", "*.acme.test:8443", "localhost", "[::1]:443"),
        deny_network=("*", "*:22", "ads.acme.test"),
        unix_sockets=("/run/docker.sock",),
        local_binding=(1, 65535, 65535),
    )
    assert list(judge(whole)) == []
    assert list(judge(config(network=True, unix_sockets=True, local_binding=True))) == []


def test_every_entry_that_is_no_host_is_named_with_its_field() -> None:
    found = list(judge(config(network=("ok.test", "intranet", "*"), deny_network=("*.com", "http://x.y", "*"))))
    assert [(r.field, r.code) for r in found] == [
        ("network[1]", "VX103"),
        ("network[2]", "VX103"),
        ("denyNetwork[0]", "VX103"),
        ("denyNetwork[1]", "VX103"),
    ]
    assert found[0].message == 'allow.network "intranet" is not a host pattern'
    assert all(r.hint for r in found)


@pytest.mark.parametrize("path", ["", "run/x.sock", "/run/\0x.sock"])
def test_a_socket_is_granted_by_a_usable_path(path: str) -> None:
    (refusal,) = judge(config(unix_sockets=("/run/ok.sock", path)))
    assert (refusal.field, refusal.code) == ("unixSockets[1]", "VX308")


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_port_that_does_not_exist_is_refused(port: int) -> None:
    (refusal,) = judge(config(local_binding=(8000, port)))
    assert (refusal.field, refusal.code) == ("localBinding", "VX105")
    assert str(port) in refusal.message


def test_a_session_is_told_of_its_runs_tasks_little_by_little() -> None:
    one, two = config(network=("a.test",)), config(network=("b.test",))
    with Session() as session:
        assert not session.declared
        session.declare([one])
        session.declare([two, one])
        assert session.declared == (one, two)


def test_a_declared_task_whose_list_is_wrong_is_refused_whole_with_every_entry() -> None:
    with Session() as session:
        with pytest.raises(RequestRefused) as refused:
            session.declare([config(network=("a.test",)), config(network=("intranet",), deny_network=("a b",))])
        assert [refusal.field for refusal in refused.value.refusals] == ["network[0]", "denyNetwork[0]"]
        assert not session.declared
