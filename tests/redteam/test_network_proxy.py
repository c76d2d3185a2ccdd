"""A task against its own proxy, and against those of others: it reaches nothing more, hides nothing, hurts nobody."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox import Session
from tests.redteam.conftest import Box, shown
from tests.redteam.connecting import dial
from tests.support.served_proxy import Server, page

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox import RunResult

pytestmark = pytest.mark.kernel

_SECONDS = 30.0


def parts(session: Session, word: str) -> list[int]:
    """Processes below a session's supervisor whose command line holds a word, and their children."""
    supervisor = session._supervisor
    assert supervisor is not None
    todo, found = [supervisor.pid], []
    while todo:
        pid = todo.pop()
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
            todo += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())
        except OSError:
            continue
        if word.encode() in line:
            found.append(pid)
    return found


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + _SECONDS
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def when_ready(act: Callable[[], object], box: Box) -> Callable[[bytes], None]:
    """Acts once the task is ready, and then lets it go on."""

    def heard(data: bytes) -> None:
        if b"ready" in data:
            act()
            (box.project / "out" / "go").touch()

    return heard


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def kill(pid: int) -> None:
    """By a handle: the number may be another's by now."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


_DIAL = """
try: socket.create_connection(where, 60); print("connected")
except ConnectionRefusedError: print("refused")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("victim", "later"), [(0, ""), (1, "ask('b.listed.test')"), (0, _DIAL), (1, _DIAL)])
def test_a_task_that_lost_its_proxy_or_its_opener_is_no_pass_and_others_do_not_notice(
    box: Box, victim: int, later: str
) -> None:
    with Session() as session, Server(page) as server:
        found: list[int] = []

        def act() -> None:
            # the proxy, and its child, which opens listeners for it
            found.extend(parts(session, "sandbox.linux.proxy.proxy_process"))
            kill(found[victim])
            until(lambda: gone(found[victim]))

        result = dial(
            box,
            f"where = (socket.gethostbyname('a.listed.test'), 5432); go_on()\n{later}",
            "*.listed.test",
            session=session,
            on_stdout=when_ready(act, box),
        )
        assert len(found) == 2, found
        assert result.stdout == b"ready\n" + (b"refused\n" if later == _DIAL else b""), shown(result)
        assert (result.exit_code != 0, result.trace) == (True, "partial"), shown(result)
        assert "proxy" in result.trace_reason, shown(result)
        other = dial(box, f"print(connect('127.0.0.1:{server.port}'))", f"127.0.0.1:{server.port}", session=session)
        assert (other.exit_code, other.stdout) == (0, b"200\n"), shown(other)
        until(lambda: all(map(gone, found)))


def test_a_killed_warden_takes_its_proxy_along(box: Box) -> None:
    with Session() as session:
        left: list[int] = []

        def act() -> None:
            left.extend(parts(session, "sandbox.linux.proxy.proxy_process"))
            proxy = min(left)
            status = Path(f"/proc/{proxy}/status").read_text(encoding="utf-8")
            warden = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:"))
            kill(warden)

        result = dial(
            box, "ask('a.listed.test'); go_on()", "*.listed.test", session=session, on_stdout=when_ready(act, box)
        )
        assert len(left) == 2
        assert result.exit_code != 0, shown(result)
        until(lambda: all(map(gone, left)))


def test_what_nobody_waited_for_is_reported_all_the_same(box: Box) -> None:
    result = dial(
        box,
        "ask('last.words.test', wait=False)\n"
        "connect('other.test:443', wait=False)\n"
        "s = socket.create_connection(('127.0.0.1', 1080))\n"
        "s.sendall(b'\\5\\1\\0\\5\\1\\0\\3\\x0athird.test\\x01\\xbb')\n"
        "os._exit(0)\n",
    )
    targets = {violation.target for violation in result.violations}
    assert targets == {"last.words.test", "other.test:443", "third.test:443"}, shown(result)
    assert (result.exit_code, result.command_exit_code, result.trace) == (1, 0, "complete"), shown(result)


def test_many_refusals_are_each_told_once(box: Box) -> None:
    result = dial(box, "for i in range(300):\n    ask(f'n{i}.test'); ask(f'n{i}.test')\n")
    targets = [violation.target for violation in result.violations]
    assert sorted(targets) == sorted(f"n{number}.test" for number in range(300))
    assert result.trace == "complete", shown(result)


def test_names_run_out_before_descriptors_do_and_the_proxy_stays(box: Box) -> None:
    result = dial(
        box,
        "codes = [ask(f'n{i}.listed.test') for i in range(1005)]\n"
        "print(codes.count(0), codes.count(2), ask('n3.listed.test'))\n",
        "*.listed.test",
    )
    assert result.stdout == b"1000 5 0\n", shown(result)
    assert {violation.target for violation in result.violations} == {f"n{n}.listed.test" for n in range(1000, 1005)}


def test_who_a_client_says_it_is_changes_nothing(box: Box) -> None:
    with Server(page) as server:
        listed = f"127.0.0.1:{server.port}"
        presented = (
            f"print(connect('{listed}', 'Proxy-Authorization: Basic dGFzay1hOng=\\r\\nX-Task: task-a\\r\\n'))\n"
            "s = socket.create_connection(('127.0.0.1', 1080))\n"
            "s.sendall(b'\\5\\1\\2\\1\\6task-a\\1x\\5\\1\\0\\1\\x7f\\0\\0\\1' + (%d).to_bytes(2, 'big'))\n"
            "s.settimeout(30)\n"
            "data = b''\n"
            "while len(data) < 14: data += s.recv(100)\n"
            "print(data[5])\n" % server.port
        )
        with_grant = dial(box, presented, listed)
        assert (with_grant.exit_code, with_grant.stdout) == (0, b"200\n0\n"), shown(with_grant)
        without = dial(box, presented)
        assert without.stdout == b"403\n2\n", shown(without)
        assert [violation.target for violation in without.violations] == [listed]


def test_nothing_of_the_proxy_is_in_the_tasks_reach(box: Box) -> None:
    program = (
        "ask('a.listed.test')\n"
        "print(sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))\n"
        "seen = [open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') if p.isdecimal()]\n"
        "print(any('proxy_' 'process' in line for line in seen))\n"
        "s = socket.socket()\n"
        "for port in (22, 53, 80, 443):\n"
        "    try: s.bind(('127.64.0.1', port)); print('bound', port)\n"
        "    except OSError: pass\n"
        "for path in ('/etc/resolv.conf', '/etc/hosts'):\n"
        "    try: open(path, 'a').write('x'); print('written')\n"
        "    except OSError: pass\n"
    )
    result = dial(box, program, "*.listed.test")
    # the descriptor of the directory that is listed
    assert result.stdout == b"['0', '1', '2'] 4\nFalse\n", shown(result)


def test_no_socket_of_the_tasks_own_leads_out(box: Box) -> None:
    with Server(page) as server:
        program = (
            "reached = []\n"
            f"others = (('169.254.169.254', 80), ('10.0.0.1', 53), ('1.1.1.1', 443), ('127.0.0.1', {server.port}))\n"
            "for where in others:\n"
            "    s = socket.socket(); s.settimeout(10)\n"
            "    try: s.connect(where); reached.append(where)\n"
            "    except OSError: pass\n"
            "for where in (('1.1.1.1', 53), ('10.255.255.53', 53), ('224.0.0.251', 5353)):\n"
            "    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
            "    try: s.sendto(b'secret', where); reached.append(where)\n"
            "    except OSError: pass\n"
            "for family, kind in ((socket.AF_PACKET, socket.SOCK_RAW), (socket.AF_INET, socket.SOCK_RAW)):\n"
            "    try: socket.socket(family, kind); reached.append(family)\n"
            "    except OSError: pass\n"
            "print(reached)\n"
        )
        result = dial(box, program)
        assert result.stdout == b"[]\n", shown(result)
        assert server.clients == 0
        assert {"169.254.169.254:80", "1.1.1.1:443"} <= {violation.target for violation in result.violations}


def test_a_flood_of_ones_own_proxy_starves_neither_another_task_nor_ones_own_observer(box: Box) -> None:
    flood = (
        "def dials():\n"
        "    while not os.path.exists('out/go'):\n"
        "        try: connect('other.test:1'); ask('other.test')\n"
        "        except OSError: pass\n"
        "threads = [threading.Thread(target=dials) for _ in range(8)]\n"
        "for thread in threads: thread.start()\n"
        "print('ready', flush=True)\n"
        "try: open('secret.txt')\n"
        "except OSError: pass\n"
        "for thread in threads: thread.join()\n"
    )
    results: dict[str, RunResult] = {}
    flooding = threading.Event()

    def hear(data: bytes) -> None:
        if b"ready" in data:
            flooding.set()

    with Session() as session, Server(page) as server:
        listed = f"127.0.0.1:{server.port}"
        flooder = threading.Thread(
            target=lambda: results.setdefault("flood", dial(box, flood, session=session, on_stdout=hear))
        )
        flooder.start()
        try:
            assert flooding.wait(_SECONDS)
            other = dial(box, f"print({{connect('{listed}') for _ in range(50)}})", listed, session=session)
        finally:
            (box.project / "out" / "go").touch()
            flooder.join(90)
    assert (other.exit_code, other.stdout) == (0, b"{200}\n"), shown(other)
    result = results["flood"]
    assert "other.test" in {violation.target for violation in result.violations}, shown(result)
    # by its place: how it was spelled is not always read from a thread that is kept from running
    assert str(box.project / "secret.txt") in {violation.path for violation in result.violations}, shown(result)
