"""A name or an address that is listed without a port is reached at any, by programs that know no proxy."""

from __future__ import annotations

import socket
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.support.served_proxy import Server, echo
from tests.support.sites import address_of_its_own, passed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.hosts import Told
    from tests.support.sites import Knowing

pytestmark = pytest.mark.kernel

PYTHON = f"{sys._base_executable} -I"  # type: ignore[attr-defined]

_HEAD = """
import errno, socket
FOUR, SIX = socket.AF_INET, socket.AF_INET6
def dial(host, port, family=socket.AF_UNSPEC):
    kind, _, _, _, address = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0]
    s = socket.socket(kind, socket.SOCK_STREAM)
    s.settimeout(30)
    s.connect(address)
    return s
def answer(*given):
    try:
        with dial(*given) as s:
            s.sendall(b"hello")
            return s.recv(5).decode()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
"""

#: Where the names lead is this machine itself, at any port.
HERE = "127.0.0.1"


def _run(knowing: Knowing, body: str, *allow: str, **fields: object) -> Told:
    command = f"cd \"$TMPDIR\" && cat >p.py <<'END'\n{_HEAD}{dedent(body)}\nEND\n{PYTHON} p.py"
    return knowing(command, allow=(*allow, HERE), **fields)


@pytest.mark.parametrize("family", ["FOUR", "SIX"])
def test_a_name_is_reached_at_the_port_of_whatever_server(knowing: Knowing, family: str) -> None:
    with Server(echo) as one, Server(echo) as other:
        body = f"""
            for port in ({one.port}, {other.port}, {one.port}):
                print(answer("web.test", port, {family}))
            with dial("web.test", {one.port}, {family}) as s:
                print(s.getpeername()[1])
        """
        told = _run(knowing, body, "web.test")
        assert passed(told).split() == ["hello", "hello", "hello", str(one.port)], told


def test_a_name_is_reached_at_any_port_by_who_waits_for_nothing(knowing: Knowing) -> None:
    with Server(echo) as server:
        body = f"""
            import asyncio
            async def main():
                reader, writer = await asyncio.open_connection("web.test", {server.port})
                writer.write(b"hello")
                print((await reader.readexactly(5)).decode())
                writer.close()
            asyncio.run(main())
        """
        assert passed(_run(knowing, body, "web.test")).strip() == "hello"


def test_many_threads_that_dial_one_new_port_all_reach_it(knowing: Knowing) -> None:
    with Server(echo) as server:
        body = f"""
            from concurrent.futures import ThreadPoolExecutor
            with ThreadPoolExecutor(16) as pool:
                print(*pool.map(lambda _: answer("web.test", {server.port}), range(64)))
        """
        assert passed(_run(knowing, body, "web.test")).split() == ["hello"] * 64


def test_where_files_are_served_a_name_is_reached_at_any_port_too(knowing: Knowing, tmp_path: Path) -> None:
    made = tmp_path / "ws" / "project" / "made.txt"
    with Server(echo) as server:
        body = f"""
            with open({str(made)!r}, "w") as file:
                file.write(answer("web.test", {server.port}))
        """
        passed(_run(knowing, body, "web.test", allow_write=(str(made),)))
    assert made.read_text() == "hello"


@pytest.mark.parametrize(("allow", "target"), [("web.test:443", "web.test:{}"), ("other.test", "web.test")])
def test_a_port_that_is_not_listed_is_refused_by_name(knowing: Knowing, allow: str, target: str) -> None:
    with Server(echo) as server:
        told = _run(knowing, f'print(answer("web.test", {server.port}))', allow)
        assert server.clients == 0
    assert told.targets == [target.format(server.port)], told
    assert "hello" not in told.stdout
    assert (told.exit_code, told.command_exit_code, told.trace) == (1, 0, "complete")


def test_a_port_that_is_denied_is_refused_by_name(knowing: Knowing) -> None:
    with Server(echo) as server:
        told = _run(
            knowing, f'print(answer("web.test", {server.port}))', "web.test", deny_network=(f"*:{server.port}",)
        )
        assert server.clients == 0
    assert told.targets == [f"web.test:{server.port}"], told
    assert "on the deny list" in told.lines[0]
    assert told.stdout.strip() == "ECONNREFUSED"


@pytest.mark.parametrize("place", ["0.0.0.0", "::"])  # noqa: S104  of the task's own network alone
def test_a_name_never_leads_to_a_server_of_the_tasks_own(knowing: Knowing, place: str) -> None:
    with Server(echo) as server:
        body = f"""
            both = {place!r} == "::"
            with socket.create_server(
                ({place!r}, {server.port}), family=SIX if both else FOUR, dualstack_ipv6=both
            ) as own:
                print(answer("web.test", {server.port}, FOUR))
                own.setblocking(False)
                try:
                    own.accept()
                    print("it led here")
                except BlockingIOError:
                    pass
        """
        told = _run(knowing, body, "web.test")
        assert server.clients == 0
    # a server of the task's own has the port, and the proxy cannot listen beside it
    assert told.stdout.split() == ["ECONNREFUSED"], told
    assert told.targets == [f"web.test:{server.port}"], told


def test_a_server_that_is_not_there_is_a_connection_that_ends(knowing: Knowing) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    told = _run(knowing, f'print(answer("web.test", {port}))', "web.test")
    assert passed(told).strip() in {"ECONNRESET", ""}, told


def test_more_ports_than_there_are_listeners_for_are_refused_and_told(knowing: Knowing) -> None:
    body = """
        found = set()
        for port in range(20000, 20600):
            found.add(answer("web.test", port))
        print(*sorted(found))
    """
    told = _run(knowing, body, "web.test")
    assert set(told.stdout.split()) <= {"ECONNRESET", "ECONNREFUSED", ""}, told
    assert "ECONNREFUSED" in told.stdout
    assert 0 < len(told.targets) < 600
    assert told.trace == "complete"


def test_a_listed_address_is_reached_at_any_port(knowing: Knowing) -> None:
    own = address_of_its_own()
    with Server(echo, own) as server:
        told = _run(knowing, f'print(answer("{own}", {server.port}))', own)
        assert passed(told).strip() == "hello"
