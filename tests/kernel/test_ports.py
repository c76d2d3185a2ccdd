"""Loopback ports: a task's own servers on the host, the host's servers in the task, and nothing that was not listed."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import sys
import threading
import time
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.kernel.conftest import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox import RunResult
    from tests.kernel.conftest import Workspace

_PYTHON = os.path.realpath(sys.executable)
_PATIENCE = 60.0

#: Answers each connection with what it was sent, backwards, once that has ended; as often as told.
_SERVER = """
    import os, socket, sys
    family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
    server = socket.create_server((sys.argv[1], int(sys.argv[2])), family=family)
    for _ in range(int(sys.argv[3])):
        with server.accept()[0] as c:
            data = b""
            while part := c.recv(65536):
                data += part
            c.sendall(data[::-1])
"""

#: Dials each of its arguments, prints what came back.
_CLIENT = """
    import errno, socket, sys
    for host, port in zip(sys.argv[1::2], sys.argv[2::2]):
        try:
            with socket.create_connection((host, int(port))) as c:
                c.sendall(b"from inside")
                c.shutdown(socket.SHUT_WR)
                data = b""
                while part := c.recv(65536):
                    data += part
                print(data.decode())
        except OSError as error:
            print(errno.errorcode[error.errno])
"""


def _free() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _command(shop: Workspace, program: str, *arguments: object) -> str:
    name = f"{'server' if program is _SERVER else 'client'}.py"
    (shop.project / "lib" / name).write_text(dedent(program), encoding="utf-8")
    return shlex.join((_PYTHON, "-B", f"lib/{name}", *map(str, arguments)))


def _ask(port: int, data: bytes) -> bytes:
    """What a task's server answers, once it is up: before that a connection is taken and ended."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            answer = b""
            while part := client.recv(65536):
                answer += part
            if answer:
                return answer
        time.sleep(0.05)
    raise TimeoutError(f"nothing answered at port {port}")


def _beside(work: Callable[[], RunResult]) -> tuple[threading.Thread, list[RunResult]]:
    results: list[RunResult] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    return thread, results


@contextlib.contextmanager
def _hosts(host: str, port: int = 0) -> Iterator[int]:
    """A server of the host's that answers as `_SERVER` does."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with server.accept()[0] as client:
                        data = b""
                        while part := client.recv(65536):
                            data += part
                        client.sendall(data[::-1])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _six() -> bool:
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False


_IPV6 = pytest.mark.skipif(not _six(), reason="this machine has no ::1")


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", pytest.param("::1", marks=_IPV6)])  # noqa: S104  inside
def test_the_host_reaches_a_tasks_server_until_it_ends(shop: Workspace, host: str) -> None:
    port = _free()
    command = _command(shop, _SERVER, host, port, 2)
    thread, results = _beside(lambda: shop.run(command, read=["lib/"], fields={"local_binding": (port,)}))
    assert _ask(port, b"hello") == b"olleh"
    big = os.urandom(3 << 20)
    assert _ask(port, big) == big[::-1]
    thread.join()
    (result,) = results
    assert (result.exit_code, result.violations, result.trace) == (0, (), "complete"), shown(result)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    # at once, for the next run
    with socket.create_server(("127.0.0.1", port)):
        pass


@pytest.mark.parametrize("holder", ["127.0.0.1", "0.0.0.0"])  # noqa: S104  on purpose
def test_a_held_port_is_refused_by_name_before_anything_starts(quick_shop: Workspace, holder: str) -> None:
    with socket.create_server((holder, 0)) as server:
        port = server.getsockname()[1]
        result = quick_shop.run("touch out/ran", write=["out/"], fields={"local_binding": (port,)})
    assert (result.exit_code, result.started) == (125, False), shown(result)
    assert any(str(port) in refusal.message and "localBinding" in refusal.message for refusal in result.refusals)
    assert not (quick_shop.project / "out/ran").exists()
    assert os.listdir(quick_shop.base / "temp") == [] or not list((quick_shop.base / "temp").glob("*/*/*"))
    freed = quick_shop.run("true", fields={"local_binding": (port,)})
    assert freed.exit_code == 0, shown(freed)


@_IPV6
def test_a_listener_on_the_other_loopback_holds_nothing(quick_shop: Workspace) -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        result = quick_shop.run("true", fields={"local_binding": (server.getsockname()[1],)})
    assert result.exit_code == 0, shown(result)


def test_two_tasks_of_one_run_cannot_have_one_port(quick_shop: Workspace) -> None:
    port = _free()
    command = _command(quick_shop, _SERVER, "127.0.0.1", port, 2)
    fields = {"local_binding": (port,)}
    thread, results = _beside(lambda: quick_shop.run(command, read=["lib/"], fields=fields))
    assert _ask(port, b"first") == b"tsrif"
    second = quick_shop.run("true", fields=fields)
    assert second.exit_code == 125, shown(second)
    assert any(str(port) in refusal.message for refusal in second.refusals)
    assert _ask(port, b"still") == b"llits"
    thread.join()
    assert results[0].exit_code == 0, shown(results[0])


def test_the_port_is_open_on_the_host_before_the_task_runs(quick_shop: Workspace) -> None:
    port = _free()
    answers: list[int] = []

    def heard(_: bytes) -> None:
        with socket.socket() as client:
            answers.append(client.connect_ex(("127.0.0.1", port)))
        (quick_shop.project / "out" / "go").touch()

    # the first thing it does is heard, and it lives on until then
    command = "echo up; until [ -e out/go ]; do sleep 0.05; done"
    done = quick_shop.run(command, write=["out/"], on_stdout=heard, fields={"local_binding": (port,)})
    assert done.exit_code == 0, shown(done)
    assert answers == [0]


@pytest.mark.parametrize("field", ["local_binding", "network"])
@pytest.mark.parametrize("port", [3128, 1080, 53])
def test_a_port_of_the_proxys_own_is_refused_by_name(quick_shop: Workspace, field: str, port: int) -> None:
    value: tuple[object, ...] = (port,) if field == "local_binding" else (f"localhost:{port}",)
    result = quick_shop.run("true", fields={field: value})
    assert result.exit_code == 125, shown(result)
    assert any(str(port) in refusal.message for refusal in result.refusals), result.refusals


@pytest.mark.parametrize("entry", ["localhost", "127.0.0.1", "[::1]"])
def test_a_task_reaches_a_listed_port_of_the_hosts_by_each_name(shop: Workspace, entry: str) -> None:
    with _hosts("127.0.0.1") as port:
        hosts = ["127.0.0.1", "localhost", *(["::1"] if _six() else [])]
        command = _command(shop, _CLIENT, *(word for host in hosts for word in (host, port)))
        printed = shop.passes(command, read=["lib/"], fields={"network": (f"{entry}:{port}",)})
    assert printed.split("\n") == [*["edisni morf"] * len(hosts), ""]


@_IPV6
def test_a_server_of_the_hosts_on_the_other_loopback_alone_is_reached(shop: Workspace) -> None:
    with _hosts("::1") as port:
        command = _command(shop, _CLIENT, "127.0.0.1", port)
        assert shop.passes(command, read=["lib/"], fields={"network": (f"localhost:{port}",)}) == "edisni morf\n"


def test_a_task_reaches_another_tasks_published_port(quick_shop: Workspace) -> None:
    port = _free()
    server = _command(quick_shop, _SERVER, "127.0.0.1", port, 2)
    client = _command(quick_shop, _CLIENT, "localhost", port)
    thread, results = _beside(lambda: quick_shop.run(server, read=["lib/"], fields={"local_binding": (port,)}))
    assert _ask(port, b"up") == b"pu"
    assert quick_shop.passes(client, read=["lib/"], fields={"network": (f"localhost:{port}",)}) == "edisni morf\n"
    thread.join()
    assert results[0].exit_code == 0, shown(results[0])


@pytest.mark.parametrize("listed", [(), ("localhost:1",)])
def test_a_port_of_the_hosts_that_is_not_listed_is_not_there(shop: Workspace, listed: tuple[str, ...]) -> None:
    with _hosts("127.0.0.1") as port:
        command = _command(shop, _CLIENT, "127.0.0.1", port)
        result = shop.run(command, read=["lib/"], fields={"network": listed} if listed else {})
    assert result.stdout == b"ECONNREFUSED\n", shown(result)


def test_a_port_that_is_both_is_the_tasks_own(shop: Workspace) -> None:
    port = _free()
    program = f"""
        import socket
        server = socket.create_server(("127.0.0.1", {port}))
        with socket.create_connection(("127.0.0.1", {port})) as one, server.accept()[0] as other:
            one.sendall(b"own")
            print(other.recv(9))
    """
    (shop.project / "lib" / "own.py").write_text(dedent(program), encoding="utf-8")
    fields = {"local_binding": (port,), "network": (f"localhost:{port}",)}
    command = shlex.join((_PYTHON, "-B", "lib/own.py"))
    assert shop.passes(command, read=["lib/"], fields=fields) == "b'own'\n"


def test_without_a_list_no_port_is_opened_on_the_host(quick_shop: Workspace) -> None:
    port = _free()
    command = _command(quick_shop, _SERVER, "127.0.0.1", port, 1)
    with socket.create_server(("127.0.0.1", port)) as server:
        # the host's own listener of that number is nothing to it
        inside = f"{command} & sleep 1; {_command(quick_shop, _CLIENT, '127.0.0.1', port)}; wait"
        result = quick_shop.run(inside, read=["lib/"], fields={"local_binding": True})
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert result.stdout == b"edisni morf\n", shown(result)
