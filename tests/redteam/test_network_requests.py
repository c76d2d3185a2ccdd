"""What a hostile task asks its proxy for: hosts in disguise, requests in requests, names that lead back inside."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from tests.redteam.conftest import PYTHON, Box, shown
from tests.redteam.connecting import HELP, dial
from tests.support.hosts import run_knowing
from tests.support.served_proxy import Server, page

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox import RunResult

pytestmark = pytest.mark.kernel

#: This machine's loopback as programs, resolvers and matchers do not agree to read it.
DISGUISES = [
    *("127.0.0.1\0.listed.test", "localhost\0.listed.test", "a.listed.test\0", "127.0.0.1%00.listed.test"),
    *("2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "017700000001", "127.1", "127.0.1", "0"),
    "0.0.0.0",  # noqa: S104  asked for, and bound by nobody
    *("\u2460\u2461\u2466.\u24ea.\u24ea.\u2460", "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021"),
    "".join(chr(ord(letter) + 0xFEE0) for letter in "localhost"),
    *("localhost", "LocalHost.", "127.0.0.1."),
    *("[::1]", "::1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::]", "[::1%lo]"),
    *("[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
    *("a@127.0.0.1", "a.listed.test@127.0.0.1", "127.0.0.1#.listed.test", "127.0.0.1/.listed.test"),
    *("127.0.0.1?.listed.test", "127.0.0.1\\.listed.test", "127.0.0.1 .listed.test", "127.0.0.1\t.listed.test"),
    *("127.0.0.1\r\nX: .listed.test", "127.0.0.1\n.listed.test", "127.0.0.1:1.listed.test", "*.listed.test"),
    *("localhost\u200b", "local\u00adhost", "a..listed.test", ".listed.test", "xn--.listed.test", "-", ""),
]

_ALL = '''
import json
told = {}

def answer(s):
    """Its first bytes, or nothing."""
    try:
        s.settimeout(30)
        return s.recv(4096)
    except OSError:
        return b""

def dials(host, port):
    for label, text in (
        ("connect", f"CONNECT {host}:{port} HTTP/1.1\\r\\nHost: a.listed.test\\r\\n\\r\\n"),
        ("get", f"GET http://{host}:{port}/ HTTP/1.1\\r\\nHost: a.listed.test\\r\\nConnection: close\\r\\n\\r\\n"),
    ):
        with socket.create_connection(("127.0.0.1", 3128), 30) as s:
            s.sendall(text.encode())
            told[f"{label} {host!r}"] = answer(s)[:13].decode("latin-1")
    raw = host.encode()
    with socket.create_connection(("127.0.0.1", 1080), 30) as s:
        s.sendall(b"\\5\\1\\0\\5\\1\\0\\3" + bytes((len(raw),)) + raw + port.to_bytes(2, "big"))
        told[f"socks {host!r}"] = (answer(s) + answer(s))[2:4].hex()

'''


def test_no_disguise_of_this_machine_is_reached_by_who_lists_something_else(box: Box) -> None:
    with Server(page) as server:
        program = (
            f"{_ALL}\nfor host in json.loads({json.dumps(DISGUISES)!r}): dials(host, {server.port})\n"
            "print(json.dumps(told))\nassert ask('a.listed.test') == 0\n"
        )
        result = dial(box, program, "*.listed.test", f"*.listed.test:{server.port}")
        assert server.clients == 0
    told = json.loads(result.stdout)
    assert len(told) == 3 * len(DISGUISES)
    odd = {
        key: value
        for key, value in told.items()
        if not (
            value.startswith(("HTTP/1.1 400 ", "HTTP/1.1 403 ")) or (value[:2] == "05" and value[2:] in ("02", "04"))
        )
    }
    assert odd == {}, shown(result)
    assert (result.command_exit_code, result.trace) == (0, "complete"), shown(result)
    assert all(violation.target.isprintable() for violation in result.violations)


#: Addresses a name's owner may point it to. The first is a cloud's.
INSIDE = {
    "meta.inside.test": "169.254.169.254",
    "link.inside.test": "169.254.0.9",
    "loop.inside.test": "127.0.0.1",
    "other.inside.test": "127.255.0.7",
    "any.inside.test": "0.0.0.0",  # noqa: S104  asked for, and bound by nobody
    "six.inside.test": "::1",
    "mapped.inside.test": "::ffff:127.0.0.1",
    "compat.inside.test": "::127.0.0.1",
    "nat.inside.test": "64:ff9b::7f00:1",
    "tunnel.inside.test": "2002:7f00:1::",
    "many.inside.test": "224.0.0.1",
    "amazon.inside.test": "fd00:ec2::23",
    "google.inside.test": "fd20:ce::254",
    "azure.inside.test": "168.63.129.16",
    "oracle.inside.test": "192.0.0.192",
    "alibaba.inside.test": "100.100.100.200",
    "local.nat.inside.test": "64:ff9b:1::a9fe:a9fe",
    "site.inside.test": "fec0:0:0:ffff::1",
}


def test_a_listed_name_that_leads_inside_is_not_dialled(base: Path) -> None:
    with Server(page) as server:
        program = (
            f"{HELP}\nimport json\ntold = {{}}\n"
            f"for name in {list(INSIDE)}:\n"
            f"    told['proxied ' + name] = connect(name + ':{server.port}')\n"
            "    try:\n"
            f"        s = socket.create_connection((name, {server.port}), 30)\n"
            "        s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n"
            "        told['raw ' + name] = s.recv(99).decode()\n"
            "    except OSError: told['raw ' + name] = ''\n"
            "print(json.dumps(told))\n"
        )
        script = base / "ws" / "project" / "dials.py"
        script.parent.mkdir(parents=True)
        script.write_text(program, encoding="utf-8")
        told = run_knowing(
            INSIDE, f"{PYTHON} dials.py", base, network=(f"*.inside.test:{server.port}",), allow_read=[str(script)]
        )
        assert server.clients == 0
    answers = json.loads(told.stdout)
    assert {key: value for key, value in answers.items() if value not in (403, "")} == {}, told
    assert len(answers) == 2 * len(INSIDE)
    # each of them by its name, and what it led to
    assert set(told.targets) == {f"{name}:{server.port}" for name in INSIDE}, told
    assert any("metadata" in line for line in told.lines), told
    assert (told.command_exit_code, told.exit_code, told.trace) == (0, 1, "complete"), told


def test_every_request_of_a_connection_is_judged_and_none_hides_in_another(box: Box) -> None:
    with Server(page) as listed, Server(page) as other:
        one, two = f"127.0.0.1:{listed.port}", f"127.0.0.1:{other.port}"
        hidden = f"GET http://{two}/hidden HTTP/1.1\r\nHost: {two}\r\n\r\n"
        plain = f"GET http://{one}/plain HTTP/1.1\r\nHost: {one}\r\n\r\n"
        head = f"POST http://{one}/body HTTP/1.1\r\nHost: {one}\r\n"
        chunked = "Transfer-Encoding: chunked"
        sent = {
            "second": plain + hidden,
            "in a body": f"{head}Content-Length: {len(hidden)}\r\n\r\n{hidden}",
            "behind a body": f"{head}Content-Length: 3\r\n\r\nabc{hidden}",
            "in a chunk": f"{head}{chunked}\r\n\r\n{len(hidden):x}\r\n{hidden}\r\n0\r\n\r\n",
            "behind chunks": f"{head}{chunked}\r\n\r\n1\r\na\r\n0\r\n\r\n{hidden}",
            "two lengths": f"{head}Content-Length: 0\r\nContent-Length: {len(hidden)}\r\n\r\n{hidden}",
            "both": f"{head}Content-Length: {len(hidden) + 5}\r\n{chunked}\r\n\r\n0\r\n\r\n{hidden}",
            "both, the other way": f"{head}{chunked}\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{hidden}",
            "odd coding": f"{head}Transfer-Encoding: \x0bchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{hidden}",
            "coding twice": f"{head}{chunked}\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{hidden}",
            "folded": f"{head}X: a\r\n Content-Length: 9\r\n\r\n{hidden}",
            "bare line ends": f"GET http://{one}/ HTTP/1.1\nHost: {one}\n\n{hidden}",
            "another host": f"GET http://{one}/ HTTP/1.1\r\nHost: {two}\r\n\r\n",
            "two hosts": f"GET http://{one}/ HTTP/1.1\r\nHost: {one}\r\nHost: {two}\r\n\r\n",
            "upgrade": f"{plain[:-2]}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n{hidden}",
            "old": f"GET http://{one}/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n{hidden}",
            "trace": f"TRACE http://{one}/ HTTP/1.1\r\nHost: {one}\r\n\r\n{hidden}",
            "space": f"GET http://{one}/ http://{two}/ HTTP/1.1\r\nHost: {one}\r\n\r\n",
            "preface": f"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{hidden}",
            "connect": f"CONNECT {two} HTTP/1.1\r\nHost: {one}\r\n\r\n{plain}",
        }
        program = (
            "import json\n"
            f"sent = json.loads({json.dumps(sent)!r})\ntold = {{}}\n"
            "for label, text in sent.items():\n"
            "    with socket.create_connection(('127.0.0.1', 3128), 30) as s:\n"
            "        s.settimeout(30); data = b''\n"
            "        try:\n"
            "            s.sendall(text.encode()); s.shutdown(socket.SHUT_WR)\n"
            "            while more := s.recv(65536): data += more\n"
            "        except OSError: pass\n"
            "    told[label] = data.decode('latin-1')\n"
            "print(json.dumps(told))\n"
        )
        result = dial(box, program, one)
        assert other.clients == 0, shown(result)
    told = json.loads(result.stdout)
    assert "/plain" in told["second"], told
    for label in ("second", "behind a body", "behind chunks", "trace", "connect"):
        assert "403" in told[label], (label, told[label])
    for label in ("another host", "two hosts"):
        # what the server is told is what was judged
        assert two not in told[label], (label, told[label])
    assert {violation.target for violation in result.violations} == {two}, shown(result)
    assert (result.command_exit_code, result.trace) == (0, "complete"), shown(result)


def test_tasks_side_by_side_reach_each_its_own(box: Box) -> None:
    with Server(page) as a, Server(page) as b, Server(page) as c:
        places = [f"127.0.0.1:{server.port}" for server in (a, b, c)]
        program = (
            f"found = []\nfor _ in range(20):\n    found.append(tuple(connect(place) for place in {places!r}))\n"
            "print(sorted(set(found)))\n"
        )
        results: dict[int, RunResult] = {}

        def run(number: int) -> None:
            results[number] = dial(box, program, *places[number : number + 1])

        threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    for number, result in results.items():
        expected = tuple(200 if number == other else 403 for other in range(3))
        assert result.stdout.decode().strip() == str([expected]), shown(result)
        refused = {place for other, place in enumerate(places) if other != number}
        assert {violation.target for violation in result.violations} == refused, shown(result)
    assert len(results) == 4
