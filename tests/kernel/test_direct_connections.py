"""Dials past the proxy are refused by the task's own network, and every observer tells each of them once."""

from __future__ import annotations

import os
import shlex
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from sandbox.contract.config import Ignore
from tests.kernel.conftest import shown

if TYPE_CHECKING:
    from sandbox import RunResult
    from tests.kernel.conftest import Workspace

_HEAD = """
    import contextlib, os, socket
    def dial(host, port, kind=socket.SOCK_STREAM, blocking=True):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind) as s, contextlib.suppress(OSError):
            s.setblocking(blocking)
            s.connect((host, port))
"""


def _run(shop: Workspace, program: str, **fields: object) -> RunResult:
    words = (os.path.realpath(sys.executable), "-I", "-S", "-c", dedent(_HEAD) + dedent(program))
    return shop.run(shlex.join(words), read=["lib/"], fields=fields)


def _told(result: RunResult) -> list[tuple[str, str, str]]:
    assert result.trace == "complete", shown(result)
    assert result.exit_code == (1 if result.violations else 0), shown(result)
    return [(violation.kind, violation.operation, violation.target) for violation in result.violations]


@pytest.mark.parametrize("host", ["203.0.113.1", "2001:db8::1"])
@pytest.mark.parametrize("blocking", [True, False])
def test_a_dial_whose_failure_the_command_swallows_is_told_once(shop: Workspace, host: str, *, blocking: bool) -> None:
    target = f"[{host}]:81" if ":" in host else f"{host}:81"
    result = _run(shop, f"for _ in range(3): dial({host!r}, 81, blocking={blocking})")
    assert _told(result) == [("network", "network-outbound", target)], shown(result)
    assert result.violations[0].errno == "ENETUNREACH"
    assert "not on the allow list" in result.violations[0].line


def test_what_is_ignored_is_not_told_and_the_rest_is(shop: Workspace) -> None:
    program = "dial('203.0.113.1', 81); dial('203.0.113.2', 81)"
    ignored = _run(shop, program, ignore=Ignore(network=("203.0.113.1:*",)))
    assert _told(ignored) == [("network", "network-outbound", "203.0.113.2:81")], shown(ignored)
    assert _told(_run(shop, program, ignore=Ignore(network=("203.0.113.*",)))) == []


@pytest.mark.parametrize("blocking", [True, False])
def test_a_port_beside_the_listed_one_is_told(shop: Workspace, *, blocking: bool) -> None:
    program = f"dial('203.0.113.1', 81, blocking={blocking}); dial('203.0.113.1', 82, blocking={blocking})"
    result = _run(shop, program, network=("203.0.113.1:81",))
    assert _told(result) == [("network", "network-outbound", "203.0.113.1:82")], shown(result)


def test_a_letter_is_told_and_finding_the_own_address_is_not(shop: Workspace) -> None:
    program = """
        dial("203.0.113.1", 53, socket.SOCK_DGRAM)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            child = os.fork()
            with contextlib.suppress(OSError):
                s.connect(("203.0.113.2", 53))
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s, contextlib.suppress(OSError):
            s.sendto(b"x", ("203.0.113.3", 53))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s, contextlib.suppress(OSError):
            s.sendmsg([b"x"], [], 0, ("203.0.113.4", 53))
    """
    found = _told(_run(shop, program))
    assert found == [("network", "network-outbound", f"203.0.113.{n}:53") for n in (3, 4)]


def test_a_server_of_its_own_that_is_not_up_is_no_news(shop: Workspace) -> None:
    program = """
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        for host in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
            dial(host, port)
            dial(host, port, blocking=False)
    """
    assert _told(_run(shop, program)) == []


def test_a_task_that_may_reach_every_socket_of_the_hosts_is_told_its_dials_too(shop: Workspace) -> None:
    result = _run(shop, "dial('203.0.113.1', 81)", unix_sockets=True)
    assert _told(result) == [("network", "network-outbound", "203.0.113.1:81")], shown(result)
