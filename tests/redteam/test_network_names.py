"""Names behind names: what a task calls a server it was let through to, and servers of its own behind listed names."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
from typing import TYPE_CHECKING

import pytest

from tests.redteam.conftest import PYTHON
from tests.redteam.connecting import HELP
from tests.support.hosts import run_knowing
from tests.support.served_proxy import Server
from tests.support.sites import certify

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


#: What some server passes over before a greeting: OpenSSL, GnuTLS, Go, nginx with `proxy_protocol`; and old ones.
_SKIPPED = {
    "a change of nothing": "1403030000",
    "a handshake of nothing": "1603010000",
    "many of nothing": "1603010000" * 30,
    "a change of ciphers": "140303000101",
    "a warning": "1503010002015a",
    "a warning in parts": "150301000101" + "15030100015a",
    "data of nothing": "1703030000",
    "a heartbeat": "1803030003010000",
    "an unknown kind": "500301000161",
    "a request to greet": "160301000400000000",
    "a greeting of SSL 2": "80120103030003000000060000" + "3c" + "00" * 6,
    "a line end": "0d0a",
    "a PROXY line": b"PROXY TCP4 192.0.2.1 192.0.2.2 5 443\r\n".hex(),
    "a binary PROXY header": b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0".hex(),
}


def test_nothing_that_a_server_passes_over_hides_the_name_it_goes_by(base: Path, tmp_path: Path) -> None:
    """The server is OpenSSL's. Where the wall is not, since the address is listed, the same bytes reach it."""
    told_name: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certify("web.test", tmp_path)[1])
    context.sni_callback = lambda _socket, name, _context: told_name.append(name)

    def greets(client: socket.socket) -> None:
        heard, said = ssl.MemoryBIO(), ssl.MemoryBIO()
        greeted = context.wrap_bio(heard, said, server_side=True)
        while data := client.recv(1 << 16):
            heard.write(data)
            with contextlib.suppress(ssl.SSLWantReadError):
                greeted.do_handshake()
            client.sendall(said.read())

    with Server(greets) as server:
        program = f"""{_GREET}
skipped = {{label: bytes.fromhex(text) for label, text in json.loads({json.dumps(json.dumps(_SKIPPED))}).items()}}
told = {{}}
for way in (through_proxy, through_socks, past_both):
    for label, before in skipped.items():
        for pieces in ([before + greeting("hidden.test")], [before, greeting("hidden.test")]):
            told[way.__name__, label, len(pieces)] = heard(way("web.test", {server.port}), *pieces)
print(sorted(key for key, answer in told.items() if not answer.endswith("Error")), len(told), flush=True)
for label in ("a change of nothing", "a handshake of nothing"):
    s = through_socks("127.0.0.1", {server.port})
    s.sendall(skipped[label] + greeting("hidden.test"))
    print(s.recv(1)[0])
"""
        told = _run(base, program, f"web.test:{server.port}", f"127.0.0.1:{server.port}")
    # 22: the server answers with its own greeting
    assert told.stdout.split() == ["[]", str(6 * len(_SKIPPED)), "22", "22"], told
    assert told_name == ["hidden.test"] * 2
    assert told.targets == [f"web.test:{server.port}"], told
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
