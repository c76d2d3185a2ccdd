"""Names behind names: what a task calls a server it was let through to, and servers of its own behind listed names."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import pytest

from tests.redteam.conftest import PYTHON
from tests.redteam.connecting import HELP
from tests.support.hosts import run_knowing
from tests.support.served_proxy import Server

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.hosts import Told

pytestmark = pytest.mark.kernel

_SHARED = {"web.test": "127.0.0.1", "hidden.test": "127.0.0.1"}

_GREET = """
import json, ssl
def through_proxy(host, port):
    s = socket.create_connection(("127.0.0.1", 3128), 30)
    s.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\nHost: hidden.test\\r\\n\\r\\n".encode())
    assert s.recv(4096).startswith(b"HTTP/1.1 200 ")
    return s
def through_socks(host, port):
    s = socket.create_connection(("127.0.0.1", 1080), 30)
    s.sendall(b"\\5\\1\\0\\5\\1\\0\\3" + bytes((len(host),)) + host.encode() + port.to_bytes(2, "big"))
    told = b""
    while len(told) < 12: told += s.recv(12 - len(told))
    assert told[3] == 0
    return s
def past_both(host, port):
    return socket.create_connection((host, port), 30)
def greeting(name):
    context = ssl.create_default_context()
    said = ssl.MemoryBIO()
    try: context.wrap_bio(ssl.MemoryBIO(), said, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError: return said.read()
def cut(data, size):
    "The same greeting in many records."
    body = data[5:]
    pieces = (body[at:at + size] for at in range(0, len(body), size))
    return b"".join(data[:3] + len(piece).to_bytes(2, "big") + piece for piece in pieces)
def heard(s, *pieces):
    s.settimeout(30)
    try:
        for piece in pieces:
            s.sendall(piece)
            time.sleep(0.001)
        return s.recv(9).decode()
    except OSError as error:
        return type(error).__name__
"""


def _run(base: Path, program: str, *network: str) -> Told:
    script = base / "ws" / "project" / "names.py"
    script.parent.mkdir(parents=True)
    script.write_text(HELP + program, encoding="utf-8")
    return run_knowing(_SHARED, f"{PYTHON} names.py", base, network=network, allow_read=[str(script)])


def test_a_listed_name_lets_nobody_reach_another_that_shares_its_server(base: Path) -> None:
    """Domain fronting: the server of many names goes by the one it is greeted with."""
    said: list[bytes] = []

    def hears(client: socket.socket) -> None:
        if data := client.recv(1 << 16):
            said.append(data)
            client.sendall(b"welcome")

    with Server(hears) as server:
        program = f"""{_GREET}
told = {{}}
for way in (through_proxy, through_socks, past_both):
    whole = greeting("hidden.test")
    for label, pieces in (
        ("whole", [whole]),
        ("in records", [cut(whole, 7)]),
        ("in bytes", [whole[at:at + 1] for at in range(len(whole))]),
        ("in capitals", [greeting("HIDDEN.test")]),
        ("with a dot", [whole.replace(b"hidden.test", b"hidden.tes.")]),
        ("with a NUL", [whole.replace(b"hidden.test", b"web.test\\0xx")]),
        ("broken", [whole[:90] + b"\\xff" + whole[91:120] + b"\\xff\\xff" + whole[122:]]),
    ):
        told[way.__name__ + " " + label] = heard(way("web.test", {server.port}), *pieces)
print(json.dumps(told))
"""
        told = _run(base, program, f"web.test:{server.port}", f"127.0.0.1:{server.port}")
    answers = json.loads(told.stdout)
    assert len(answers) == 21
    assert {key: answer for key, answer in answers.items() if answer != "ConnectionResetError"} == {}, told
    assert said == []
    assert f"hidden.test:{server.port}" in told.targets, told
    assert (told.command_exit_code, told.exit_code, told.trace) == (0, 1, "complete"), told


def test_a_listed_name_is_greeted_by_its_own_name(base: Path) -> None:
    """What the tests above refuse is refused for its name."""

    def hears(client: socket.socket) -> None:
        if client.recv(1 << 16):
            client.sendall(b"welcome")

    with Server(hears) as server:
        program = (
            f"{_GREET}\nprint(*(heard(way('web.test', {server.port}), greeting('web.test'))"
            " for way in (through_proxy, through_socks, past_both)))\n"
        )
        told = _run(base, program, f"web.test:{server.port}", f"127.0.0.1:{server.port}")
    assert told.stdout.split() == ["welcome"] * 3, told
    assert (told.exit_code, told.targets) == (0, []), told


def test_no_letter_leaves_whatever_it_is_addressed_to(base: Path) -> None:
    """Names carried out by datagrams: to a name server of the host's, to a listed name, to a broadcast."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard:
        heard.bind(("127.0.0.1", 0))
        heard.setblocking(False)
        port = heard.getsockname()[1]
        program = f"""
def send(family, address, kind):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        try:
            if kind == "connected":
                s.connect(address); s.send(b"secret"); s.send(b"secret")
            elif kind == "message":
                s.sendmsg([b"secret"], [], 0, address)
            else:
                s.sendto(b"secret", address)
        except OSError:
            pass
named = socket.getaddrinfo("web.test", {port}, type=socket.SOCK_DGRAM)
for kind in ("connected", "message", "addressed"):
    for host in ("127.0.0.1", "192.0.2.1", "255.255.255.255", "224.0.0.251", "10.255.255.255"):
        send(socket.AF_INET, (host, {port}), kind)
    for host in ("::1", "2001:db8::1", "ff02::fb", "::ffff:127.0.0.1"):
        send(socket.AF_INET6, (host, {port}), kind)
    for family, _, _, _, address in named:
        send(family, address, kind)
"""
        told = _run(base, program, "web.test", f"127.0.0.1:{port}")
        with pytest.raises(BlockingIOError):
            heard.recv(9)
    assert f"192.0.2.1:{port}" in told.targets, told
    assert (told.command_exit_code, told.trace) == (0, "complete"), told
