"""Services of a compose file or of a CI job: names without a dot, which are listed with their ports."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.hosts import run_knowing
from tests.support.served_proxy import Server, echo
from tests.support.sites import passed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.kernel

_HERE = "127.0.0.1"
PYTHON = f"{sys._base_executable} -I"  # type: ignore[attr-defined]
_ASK = f"""{PYTHON} -c '
import socket, sys
for target in sys.argv[1:]:
    host, port = target.split(":")
    try:
        with socket.create_connection((host, int(port)), 30) as s:
            s.sendall(b"hello")
            print(s.recv(5).decode())
    except OSError as error:
        print(type(error).__name__)
' """


def test_a_service_is_reached_by_its_name_at_the_port_that_is_listed(tmp_path: Path) -> None:
    with Server(echo) as server:
        told = run_knowing(
            {"postgres": _HERE},
            f"{_ASK} postgres:{server.port}",
            tmp_path,
            network=(f"postgres:{server.port}", f"{_HERE}:{server.port}"),
        )
    assert passed(told) == "hello\n"


def test_no_other_port_and_no_other_service_is_reached(tmp_path: Path) -> None:
    with Server(echo) as server, Server(echo) as other:
        told = run_knowing(
            {"postgres": _HERE, "redis": _HERE},
            f"{_ASK} postgres:{other.port} redis:{server.port}",
            tmp_path,
            network=(f"postgres:{server.port}", _HERE),
        )
    assert told.stdout.split() != ["hello", "hello"], told
    assert "hello" not in told.stdout, told
    assert {target.partition(":")[0] for target in told.targets} >= {"redis"}, told
    assert told.exit_code == 1


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "::1"])
def test_a_service_that_leads_to_this_machine_or_its_surroundings_is_refused(tmp_path: Path, address: str) -> None:
    with Server(echo) as server:
        told = run_knowing({"box": address}, f"{_ASK} box:{server.port}", tmp_path, network=(f"box:{server.port}",))
    assert "hello" not in told.stdout, told
    assert told.targets == [f"box:{server.port}"], told
    assert told.exit_code == 1
