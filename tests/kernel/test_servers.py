"""Servers: ready when they say so or listen, stopped one by one, their violations told at the end."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import NotReady, Ready, Session
from sandbox.contract.errors import SandboxError
from sandbox.session.server_readiness import listens
from tests.conftest import make_tree
from tests.kernel.conftest import SHOP, Workspace, shown, violated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sandbox import Server

# says that it listens in two pieces and in colour; ends on TERM with a status of its own
_SERVER = r"""
import signal, socket, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
for part in ("listening \x1b[36mon\x1b[0m ", "port " + sys.argv[1] + "\n"):
    sys.stdout.write(part)
    sys.stdout.flush()
    time.sleep(0.1)
try:
    open("notes.md")
except OSError:
    pass
while True:
    time.sleep(0.05)
"""

_ANSWERS = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    while True:
        with listener.accept()[0] as client:
            client.sendall(b"here")
"""


@pytest.fixture
def shop(places: Path) -> Iterator[Workspace]:
    root = make_tree(places / "ws", {**SHOP, "apps/shop/serve.py": _SERVER})
    with Session() as session:
        yield Workspace(session, places, root, root / "apps" / "shop", places / "home")


def start(shop: Workspace, ready: Ready | None, command: str = "exec python3 serve.py 8123", **options: Any) -> Server:
    return shop.session.start(shop.request(["serve.py"]), command=command, ready=ready, **options)


@pytest.mark.parametrize("ready", [Ready(output=r"listening on port \d+"), Ready(port=8123), None])
def test_a_server_is_ready_when_it_says_so_or_listens(shop: Workspace, ready: Ready | None) -> None:
    said: list[bytes] = []
    with start(shop, ready, on_stdout=said.append) as server:
        server.wait_ready()
        assert server.ready
        assert server.running
        if ready is not None and ready.output:
            assert b"port 8123" in b"".join(said)
    assert not server.running


def test_a_stopped_server_has_its_own_status_and_tells_its_violations_at_the_end(shop: Workspace) -> None:
    denied = threading.Event()
    server = start(shop, Ready(port=8123), on_violation=lambda _: denied.set())
    server.wait_ready()
    assert denied.wait(30)
    result = server.stop()
    assert (result.exit_code, result.command_exit_code) == (7, 7), shown(result)
    assert violated(result, shop.project) == [("read", "notes.md")]
    assert server.wait() is result
    assert server.stop() is result


def test_a_server_that_ends_before_it_is_ready_is_told_with_its_result(shop: Workspace) -> None:
    with pytest.raises(NotReady, match="ended with 3") as caught, start(shop, Ready(port=1), "exit 3") as server:
        server.wait_ready()
    assert caught.value.result is not None
    assert caught.value.result.exit_code == 3


def test_a_server_that_is_not_ready_in_time_is_left_as_it_is(shop: Workspace) -> None:
    begun = threading.Event()
    server = start(shop, Ready(output="never said", timeout=0.2), on_start=lambda _: begun.set())
    with pytest.raises(NotReady, match=r"not ready within 0\.2 s: it waited until a line matches never said"):
        server.wait_ready()
    assert server.running
    assert begun.wait(60)
    assert server.stop().started


def test_one_server_is_stopped_while_another_and_a_run_beside_it_live(shop: Workspace) -> None:
    with start(shop, Ready(port=8123)) as one, start(shop, Ready(port=8124), "exec python3 serve.py 8124") as other:
        one.wait_ready()
        other.wait_ready()
        assert one.stop().exit_code == 7
        assert shop.passes("echo beside") == "beside\n"
        assert other.running
        with Session() as session:
            again = Workspace(session, shop.base, shop.root, shop.project, shop.home)
            assert again.passes("echo at once") == "at once\n"
        assert other.running


def _asked(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        return client.recv(16)


def test_a_servers_port_answers_past_other_runs_and_is_the_next_sessions_at_once(shop: Workspace) -> None:
    (shop.project / "answer.py").write_text(_ANSWERS, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    request = shop.request(["answer.py"], local_binding=(port,))
    command = f"exec python3 answer.py {port}"
    with shop.session.start(request, command=command, ready=Ready(port=port)) as server:
        server.wait_ready()
        assert _asked(port) == b"here"
        # what comes and goes beside it takes nothing along
        assert shop.passes("echo beside") == "beside\n"
        with start(shop, Ready(port=8123)) as other:
            other.wait_ready()
        with Session() as session:
            again = Workspace(session, shop.base, shop.root, shop.project, shop.home)
            assert again.passes("echo again") == "again\n"
        # a second one for the port is refused, with nothing made for what it was granted
        held = shop.request(["answer.py"], ["made/dist"], local_binding=(port,))
        with (
            pytest.raises(NotReady, match=f"port {port}") as caught,
            shop.session.start(held, command=command, ready=Ready(port=port)) as second,
        ):
            second.wait_ready()
        assert caught.value.result is not None
        assert (caught.value.result.exit_code, caught.value.result.started) == (125, False)
        assert not (shop.project / "made").exists()
        assert _asked(port) == b"here"
    with pytest.raises(ConnectionRefusedError):
        _asked(port)
    shop.session.close()
    with Session() as session:
        with session.start(request, command=command, ready=Ready(port=port)) as server:
            server.wait_ready()
            assert _asked(port) == b"here"
        result = server.wait()
        assert (result.signal, result.violations, result.trace) == ("SIGTERM", (), "complete"), shown(result)


def test_a_server_that_ignores_term_is_killed_after_the_grace(shop: Workspace) -> None:
    server = start(shop, Ready(output="up"), "trap '' TERM; echo up; while :; do sleep 0.05; done")
    server.wait_ready()
    result = server.stop(grace=0.3)
    assert result.signal == "SIGKILL", shown(result)
    assert not server.running


def test_closing_the_session_ends_its_servers(shop: Workspace) -> None:
    server = start(shop, Ready(port=8123))
    server.wait_ready()
    shop.session.close()
    result = server.wait(30)
    assert (result.started, result.signal, result.exit_code) == (True, "SIGKILL", 137), shown(result)


def test_a_server_stopped_before_it_started_never_ran(shop: Workspace) -> None:
    result = start(shop, None, "touch started; sleep 60").stop()
    assert not (shop.project / "started").exists()
    assert not result.started or result.signal, shown(result)


def test_an_event_loop_waits_without_standing_still(shop: Workspace) -> None:
    async def wait() -> int:
        server = start(shop, Ready(port=8123))
        ticks = asyncio.create_task(asyncio.sleep(0))
        await server.aready()
        assert ticks.done()
        return (await server.astop()).exit_code

    assert asyncio.run(wait()) == 7


def test_a_port_of_the_hosts_is_not_a_gone_servers() -> None:
    gone = subprocess.Popen(("true",))
    gone.wait()
    with socket.create_server(("127.0.0.1", 0)) as host:
        assert listens(os.getpid(), host.getsockname()[1])
        assert not listens(gone.pid, host.getsockname()[1])


def test_an_expression_that_is_none_is_refused_before_anything_starts(shop: Workspace) -> None:
    with pytest.raises(SandboxError, match="no regular expression"):
        start(shop, Ready(output="("))


def test_an_error_of_a_callback_reaches_who_waits(shop: Workspace) -> None:
    def fail(_: bytes) -> None:
        raise ZeroDivisionError

    server = start(shop, None, "echo x; sleep 60", on_stdout=fail)
    with pytest.raises(ZeroDivisionError):
        server.wait(60)
