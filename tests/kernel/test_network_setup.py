"""What a proxy needs to stand, and what a task finds of it before anything is dialled."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from sandbox import Session
from sandbox.proxy.io import library_path
from tests.kernel.conftest import Workspace, shown

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.kernel

PYTHON = f"{sys._base_executable} -I"  # type: ignore[attr-defined]


def test_a_proxy_that_cannot_be_set_up_is_no_start(quick_shop: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_path, "directory", lambda: "")
    with Session() as session:
        quick_shop.session = session
        result = quick_shop.run("echo ran")
    assert (result.exit_code, result.started, result.stdout) == (125, False, b""), shown(result)
    assert "h11" in str(result.refusals)


def test_names_inside_are_the_proxys_and_this_machines_own_is_the_tasks_loopback(shop: Workspace) -> None:
    program = (
        "import os, socket\n"
        "print(open('/etc/resolv.conf').read().split()[:2] if os.path.exists('/etc/resolv.conf') else 0)\n"
        "print({a[4][0] for a in socket.getaddrinfo(os.uname().nodename, 1)} <= {'127.0.0.1', '::1'})\n"
        "print({a[4][0] for a in socket.getaddrinfo('localhost', 1)} <= {'127.0.0.1', '::1'})\n"
    )
    expected = "['nameserver', '127.0.0.1']" if os.path.exists("/etc/resolv.conf") else "0"
    assert shop.passes(f'{PYTHON} -c "{program}"').split("\n") == [expected, "True", "True", ""]


def test_a_task_has_its_ports_to_itself(quick_shop: Workspace) -> None:
    program = (
        "import socket\n"
        "for where in ('0.0.0.0', '127.0.0.1'):\n"
        "    s = socket.create_server((where, 8000))\n"
        "    c = socket.create_connection(('127.0.0.1', 8000))\n"
        "    c.sendall(b'x'); print(s.accept()[0].recv(1)); s.close()\n"
    )
    assert quick_shop.passes(f'{PYTHON} -c "{program}"') == "b'x'\nb'x'\n"


def test_nothing_is_left_of_the_place_where_names_are_made(quick_shop: Workspace, places: Path) -> None:
    assert places.is_dir()
    assert ".vx" not in quick_shop.passes("ls -a /dev; grep -c . /etc/hosts >/dev/null")
