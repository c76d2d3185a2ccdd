"""Datagrams to a host go nowhere: who tries them first goes on with TCP, and who needs them is told why."""

from __future__ import annotations

import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.support.served_proxy import Server, echo
from tests.support.sites import passed

if TYPE_CHECKING:
    from tests.support.hosts import Told
    from tests.support.sites import Knowing

pytestmark = pytest.mark.kernel

PYTHON = f"{sys._base_executable} -I"  # type: ignore[attr-defined]

_HEAD = """
import errno, socket, sys

def quick(port, family=socket.AF_INET):
    "A datagram socket that is connected to the host, as one of QUIC is."
    kind, _, _, _, address = socket.getaddrinfo("web.test", port, family, socket.SOCK_DGRAM)[0]
    s = socket.socket(kind, socket.SOCK_DGRAM)
    s.settimeout(30)
    s.connect(address)
    return s

def named(error):
    return errno.errorcode[error.errno]
"""

#: Ways to send one: each prints what its caller hears of it.
WAYS = {
    "connected": """
        s = quick({port})
        try: s.send(b"hello"); s.recv(5); print("answered")
        except OSError as error: print(named(error))
    """,
    "connected, IPv6": """
        s = quick({port}, socket.AF_INET6)
        try: s.send(b"hello"); s.recv(5); print("answered")
        except OSError as error: print(named(error))
    """,
    "addressed": """
        address = quick({port}).getpeername()
        s = socket.socket(type=socket.SOCK_DGRAM)
        try: s.sendto(b"hello", address); print("sent")
        except OSError as error: print(named(error))
    """,
    "a message": """
        address = quick({port}, socket.AF_INET6).getpeername()
        s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        try: s.sendmsg([b"hello"], [], 0, address); print("sent")
        except OSError as error: print(named(error))
    """,
}


def _run(knowing: Knowing, body: str, *ports: int, **fields: object) -> Told:
    return knowing(f"cd \"$TMPDIR\" && cat >p.py <<'END'\n{_HEAD}{dedent(body)}\nEND\n{PYTHON} p.py", *ports, **fields)


def _letters(told: Told) -> list[str]:
    return [hint for hint in told.hints if "/udp" in hint]


@pytest.mark.parametrize("way", WAYS)
def test_who_tries_datagrams_first_is_refused_at_once_and_goes_on_with_tcp(knowing: Knowing, way: str) -> None:
    with Server(echo) as server:
        body = dedent(WAYS[way].format(port=server.port)) + dedent(f"""
            s = socket.create_connection(("web.test", {server.port}))
            s.sendall(b"hello")
            print(s.recv(5).decode())
        """)
        told = _run(knowing, body, server.port)
    assert passed(told).split() == ["ECONNREFUSED", "hello"]
    assert told.hints == []


@pytest.mark.parametrize("way", WAYS)
def test_who_fails_for_want_of_them_is_told(knowing: Knowing, way: str) -> None:
    told = _run(knowing, dedent(WAYS[way].format(port=853)) + "sys.exit(3)", allow=("web.test",))
    assert (told.exit_code, told.targets, told.trace) == (3, [], "complete"), told
    assert _letters(told) == ["web.test:853/udp: the proxy carries TCP alone, and no datagrams"], told


def test_who_only_learns_an_address_is_told_nothing(knowing: Knowing) -> None:
    told = _run(knowing, "print(quick(443).getsockname()[0])\nsys.exit(3)", allow=("web.test",))
    assert (told.exit_code, told.targets, _letters(told)) == (3, [], []), told


def test_a_datagram_to_what_is_not_listed_fails_the_task_and_no_entry_is_suggested(knowing: Knowing) -> None:
    body = """
        s = socket.socket(type=socket.SOCK_DGRAM)
        for address in (("203.0.113.1", 53), (quick(443).getpeername()[0], 53)):
            try: s.sendto(b"secret", address)
            except OSError as error: print(named(error))
    """
    told = _run(knowing, body, allow=("web.test:443",))
    assert told.stdout.split() == ["ENETUNREACH", "ECONNREFUSED"], told
    assert told.targets == ["203.0.113.1:53", "web.test:53"], told
    assert all("TCP alone" in line for line in told.lines), told
    assert not any("allow.network" in hint for hint in told.hints), told


def test_datagrams_of_the_tasks_own_arrive(knowing: Knowing) -> None:
    body = """
        with socket.socket(type=socket.SOCK_DGRAM) as one, socket.socket(type=socket.SOCK_DGRAM) as other:
            one.bind(("127.0.0.1", 0))
            one.settimeout(30)
            other.sendto(b"hello", one.getsockname())
            print(one.recv(5).decode())
    """
    assert passed(_run(knowing, body)).strip() == "hello"
