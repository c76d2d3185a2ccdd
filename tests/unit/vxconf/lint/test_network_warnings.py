"""Warnings about hosts, ports and sockets that are valid and probably not meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import vxconf
from tests.conftest import Tree
from vxconf.workspace.check_files import check_project

Factory = Callable[[Tree], Path]


def warned(factory: Factory, block: str) -> list[tuple[str, str, str]]:
    text = f'[tasks.build.exec]\ncommand = "x"\n[tasks.build.exec.sandbox]\n{block}\n'
    workspace = vxconf.load(str(factory({"p/vx.toml": text, "p/socks/x": ""})))
    found = check_project(workspace.project("p"), ("linux",))
    prefix = "tasks.build.exec.sandbox."
    return [(d.code, d.path.removeprefix(prefix), d.message) for d in found if d.code.startswith("VX4")]


@pytest.mark.parametrize(
    ("block", "code", "place"),
    [
        ('allow.network = ["acme.test", "acme.test:443"]', "VX404", "allow.network[1]"),
        ('allow.network = ["api.acme.test", "*.acme.test"]', "VX404", "allow.network[0]"),
        ('allow.network = ["*.acme.test", "*.api.acme.test:80"]', "VX404", "allow.network[1]"),
        ('allow.network = ["PKG.test", "pkg.test"]', "VX404", "allow.network[1]"),
        ('deny.network = ["*", "ads.acme.test:8443"]', "VX404", "deny.network[1]"),
        ('allow.network = ["ads.acme.test"]\ndeny.network = ["*.acme.test"]', "VX409", "allow.network[0]"),
        ('allow.network = ["acme.test:443"]\ndeny.network = ["acme.test"]', "VX409", "allow.network[0]"),
        ('allow.network = ["acme.test"]\ndeny.network = ["*"]', "VX409", "allow.network[0]"),
        ('allow.network = ["acme.test"]\ndeny.network = ["acme.test"]', "VX409", "allow.network[0]"),
        ('allow.network = ["localhost:8000"]\nallow.localBinding = [8000]', "VX411", "allow.network[0]"),
        ('allow.network = ["[::1]:8000"]\nallow.localBinding = [80, 8000]', "VX411", "allow.network[0]"),
        ('allow.network = ["169.254.169.254:80"]', "VX405", "allow.network[0]"),
        ('allow.network = ["*.workers.dev"]', "VX414", "allow.network[0]"),
        ('allow.network = ["acme.test", "*.amazonaws.com:443"]', "VX414", "allow.network[1]"),
        ('allow.unixSockets = ["/var/run/docker.sock"]', "VX410", "allow.unixSockets[0]"),
        ('allow.unixSockets = ["~/.gnupg/S.gpg-agent"]', "VX410", "allow.unixSockets[0]"),
        ('allow.unixSockets = ["/run/user/1000/bus"]', "VX410", "allow.unixSockets[0]"),
        ('allow.unixSockets = ["/tmp/.X11-unix/X0"]', "VX410", "allow.unixSockets[0]"),
        ('allow.unixSockets = ["/run/user/1000/wayland-0"]', "VX410", "allow.unixSockets[0]"),
        ('allow.unixSockets = ["/tmp/ssh-AbCd/agent.12"]', "VX410", "allow.unixSockets[0]"),
        ('allow.unixSockets = ["socks"]', "VX412", "allow.unixSockets[0]"),
    ],
)
def test_a_grant_that_is_probably_not_meant_is_warned_of(
    workspace_factory: Factory, block: str, code: str, place: str
) -> None:
    assert [(c, p) for c, p, _ in warned(workspace_factory, block)] == [(code, place)]


@pytest.mark.parametrize(
    "block",
    [
        'allow.network = ["acme.test", "*.acme.test"]',
        'allow.network = ["acme.test:80", "acme.test:443"]',
        'allow.network = ["db.acme.test", "db.acme.test:5432"]',  # a program dials the second one without a proxy
        'allow.network = ["localhost", "localhost:4173"]',
        'allow.network = ["localhost:4173", "127.0.0.1:4173"]',
        'allow.network = ["acme.test"]\ndeny.network = ["acme.test:80", "*.acme.test", "*:22"]',
        'allow.network = ["*.acme.test"]\ndeny.network = ["ads.acme.test"]',
        'allow.network = ["localhost:8000"]\nallow.localBinding = [8001]',
        'allow.network = ["acme.test:8000"]\nallow.localBinding = [8000]',
        'allow.network = ["10.0.0.7:5432"]',
        'allow.network = ["*.acme.workers.dev", "ours.workers.dev", "*.s3-of-ours.test"]',
        'deny.network = ["*.ngrok.io"]',
        'allow.network = ["acme.test", "acme.test"]',
        'allow.unixSockets = ["/run/postgresql/.s.PGSQL.5432", "app.sock"]',
        "allow.unixSockets = true",
    ],
)
def test_a_grant_that_means_what_it_says_is_not(workspace_factory: Factory, block: str) -> None:
    assert warned(workspace_factory, block) == []


def test_a_warning_names_the_other_entry(workspace_factory: Factory) -> None:
    block = 'allow.network = ["*.acme.test", "api.acme.test"]\ndeny.network = ["*.api.acme.test", "b.api.acme.test"]'
    assert [message for _, _, message in warned(workspace_factory, block)] == [
        'allow.network "api.acme.test" is already covered by allow.network "*.acme.test"',
        'deny.network "b.api.acme.test" is already covered by deny.network "*.api.acme.test"',
    ]
