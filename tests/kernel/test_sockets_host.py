"""The host's sockets are out of a task's reach, each try is told; what is listed is reached, and nothing beside it."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.kernel.conftest import shown
from tests.support.observers import OBSERVERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox import RunResult
    from tests.kernel.conftest import Workspace

_PYTHON = os.path.realpath(sys.executable)

_HEAD = """
    import array, errno, os, socket, sys
    from socket import AF_UNIX, SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET
    def code(what, *arguments):
        try:
            return what(*arguments) or "done"
        except OSError as error:
            return errno.errorcode[error.errno]
    def connect(path, kind=SOCK_STREAM):
        s = socket.socket(AF_UNIX, kind)
        s.connect(path)
        s.send(b"x")
"""


@pytest.fixture(params=OBSERVERS[:2])
def observer(request: pytest.FixtureRequest) -> str:
    """Those that stop calls: under a tracer there are no such sockets at all."""
    return str(request.param)


@pytest.fixture
def outside(places: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of the host's beside everything of the task, and one for that; short enough for sockets in them."""
    assert places.is_dir()
    directory = Path(tempfile.mkdtemp(prefix="vxh", dir="/tmp"))
    (directory / "temp").mkdir()
    (directory / "host").mkdir()
    monkeypatch.setenv("VX_TMPDIR", str(directory / "temp"))
    yield directory / "host"
    shutil.rmtree(directory)


@contextlib.contextmanager
def _listening(path: Path | str, kind: int = socket.SOCK_STREAM) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind(str(path))
        if kind != socket.SOCK_DGRAM:
            server.listen()
        server.setblocking(False)
        yield server


def _untouched(server: socket.socket, kind: int = socket.SOCK_STREAM) -> bool:
    try:
        if kind == socket.SOCK_DGRAM:
            server.recv(9)
        else:
            server.accept()[0].close()
    except BlockingIOError:
        return True
    return False


def _run(shop: Workspace, program: str, **fields: object) -> RunResult:
    (shop.project / "lib" / "program.py").write_text(dedent(_HEAD) + dedent(program), encoding="utf-8")
    return shop.run(shlex.join((_PYTHON, "-B", "lib/program.py")), read=["lib/"], fields=fields)


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM])
def test_a_connect_is_refused_and_told(shop: Workspace, outside: Path, kind: socket.SocketKind) -> None:
    path = outside / "docker.sock"
    with _listening(path, kind) as server:
        result = _run(shop, f"print(code(connect, {str(path)!r}, {kind.name}))")
        assert _untouched(server, kind)
    assert result.stdout == b"EPERM\n", shown(result)
    assert (result.exit_code, result.command_exit_code, result.trace) == (1, 0, "complete"), shown(result)
    (violation,) = result.violations
    assert (violation.kind, violation.operation, violation.errno) == ("network", "connect", "EPERM")
    assert (violation.target, violation.path) == (str(path), str(path))
    assert "docker.sock" in violation.line


@pytest.mark.parametrize("call", ["sendto", "sendmsg", "rights"])
def test_a_letter_is_refused_and_told(shop: Workspace, outside: Path, call: str) -> None:
    path = str(outside / "log")
    send = {
        "sendto": f"s.sendto, b'x', {path!r}",
        "sendmsg": f"s.sendmsg, [b'x'], [], 0, {path!r}",
        "rights": f"s.sendmsg, [b'x'], [(1, 1, array.array('i', [0]))], 0, {path!r}",
    }[call]
    with _listening(path, socket.SOCK_DGRAM) as server:
        result = _run(shop, f"s = socket.socket(AF_UNIX, SOCK_DGRAM)\nprint(code({send}))")
        assert _untouched(server, socket.SOCK_DGRAM)
    assert result.stdout == b"EPERM\n", shown(result)
    assert [(v.operation, v.path) for v in result.violations] == [("sendmsg" if call == "rights" else call, path)]


def test_every_spelling_of_a_refused_path_is_told_by_its_place(shop: Workspace, outside: Path) -> None:
    path = outside / "s"
    program = f"""
        T = os.environ["TMPDIR"]
        os.symlink({str(path)!r}, T + "/link")
        os.symlink({str(outside)!r}, T + "/dir")
        folder = os.open({str(outside)!r}, os.O_PATH)
        there = os.path.relpath({str(path)!r}, T)
        os.chdir(T)
        names = [T + "/link", "dir/s", there, f"/proc/self/fd/{{folder}}/s", "/proc/self/root{path}", "/tmp/../{path}"]
        for name in names:
            print(code(connect, name))
    """
    with _listening(path) as server:
        result = _run(shop, program)
        assert _untouched(server)
    assert result.stdout.split() == [b"EPERM"] * 6, shown(result)
    assert {v.path for v in result.violations} == {str(path)}


def test_a_socket_hidden_in_the_workspace_is_not_there_and_told(
    shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop.project)
    with _listening("dev.sock") as server:
        result = _run(shop, "print(code(connect, 'dev.sock'))")
        assert _untouched(server)
    assert result.stdout == b"ENOENT\n", shown(result)
    assert [(v.operation, v.path) for v in result.violations] == [("connect", str(shop.project / "dev.sock"))]


def test_what_is_no_socket_or_missing_or_asked_by_every_program_is_no_news(shop: Workspace, outside: Path) -> None:
    (outside / "file").write_text("x", encoding="utf-8")
    program = f"""
        import pwd
        print(code(connect, {str(outside / "file")!r}), code(connect, {str(outside / "none")!r}))
        print(code(connect, "\\0" + {str(outside)!r}))
        pwd.getpwall()
        import syslog
        syslog.syslog("a line")
    """
    with _listening(f"\0{outside}") as server:
        result = _run(shop, program)
        assert _untouched(server)
    assert result.stdout.split() == [b"ECONNREFUSED", b"ENOENT", b"ECONNREFUSED"]
    assert (result.exit_code, result.violations) == (0, ()), shown(result)


def test_a_list_opens_exactly_its_paths(shop: Workspace, outside: Path) -> None:
    listed, other = outside / "listed", outside / "other"
    with _listening(listed) as one, _listening(other) as two:
        program = f"print(code(connect, {str(listed)!r}), code(connect, {str(other)!r}))"
        result = _run(shop, program, unix_sockets=(str(listed),))
        assert result.stdout == b"done EPERM\n", shown(result)
        assert not _untouched(one)
        assert _untouched(two)
    assert [v.path for v in result.violations] == [str(other)]


def test_every_path_is_open_to_the_task_that_asks_for_that_alone(shop: Workspace, outside: Path) -> None:
    path = outside / "any"
    with _listening(path) as server:
        opened = _run(shop, f"print(code(connect, {str(path)!r}))", unix_sockets=True)
        assert (opened.stdout, opened.exit_code) == (b"done\n", 0), shown(opened)
        assert not _untouched(server)
        closed = _run(shop, f"print(code(connect, {str(path)!r}))")
        assert (closed.stdout, closed.exit_code) == (b"EPERM\n", 1), shown(closed)


def test_the_host_learns_the_tasks_user_of_a_listed_socket(shop: Workspace, outside: Path) -> None:
    path = outside / "listed"
    with _listening(path) as server:
        result = _run(shop, f"print(code(connect, {str(path)!r}))", unix_sockets=(str(path),))
        assert result.exit_code == 0, shown(result)
        with server.accept()[0] as peer:
            credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    assert credentials[4:] == os.getuid().to_bytes(4, "little") + os.getgid().to_bytes(4, "little")


@pytest.mark.parametrize("mode", [0o000, 0o600])
def test_a_listed_socket_keeps_its_mode_bits(shop: Workspace, outside: Path, mode: int) -> None:
    path = outside / "listed"
    with _listening(path):
        path.chmod(mode)
        result = _run(shop, f"print(code(connect, {str(path)!r}))", unix_sockets=(str(path),))
    assert result.stdout == (b"done\n" if mode else b"EACCES\n"), shown(result)


def test_families_that_no_network_holds_do_not_exist(shop: Workspace) -> None:
    program = """
        for family in (38, 40, 31, 29, 44, 42):
            for kind in (SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET):
                assert code(socket.socket, family, kind) == "EAFNOSUPPORT", family
        print(*(code(socket.socket, family, socket.SOCK_RAW, 1) for family in (socket.AF_PACKET, socket.AF_INET)))
    """
    result = _run(shop, program)
    assert result.stdout == b"EPERM EPERM\n", shown(result)


@pytest.mark.parametrize("dial", ["192.0.2.1:443", "[2001:db8::1]:443", "10.1.2.3:5432", "169.254.169.254:80"])
def test_a_literal_address_is_refused_and_told(shop: Workspace, dial: str) -> None:
    host, _, port = dial.rpartition(":")
    program = f"print(code(socket.create_connection, ({host.strip('[]')!r}, {port})))"
    result = _run(shop, program)
    assert result.stdout == b"ENETUNREACH\n", shown(result)
    (violation,) = result.violations
    assert (violation.operation, violation.target, result.exit_code) == ("network-outbound", dial, 1)
    assert "not on the allow list" in violation.line


def test_a_letter_to_a_literal_address_is_told_and_finding_the_own_address_is_not(shop: Workspace) -> None:
    program = """
        import getpass
        for host in ("192.0.2.1", "8.8.8.8"):
            for port in (0, 1, 53, 80):
                with socket.socket(socket.AF_INET, SOCK_DGRAM) as s:
                    code(s.connect, (host, port))
        socket.getaddrinfo("localhost", 80)
        with socket.socket(socket.AF_INET, SOCK_DGRAM) as s:
            print(code(s.sendto, b"x", ("192.0.2.7", 53)), code(s.sendmsg, [b"x"], [], 0, ("192.0.2.8", 53)))
    """
    result = _run(shop, program)
    assert result.stdout == b"ENETUNREACH ENETUNREACH\n", shown(result)
    assert [v.target for v in result.violations] == ["192.0.2.7:53", "192.0.2.8:53"]


def test_waiting_for_a_server_of_its_own_is_no_news(shop: Workspace) -> None:
    program = """
        import threading, time
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        def serve():
            time.sleep(0.3)
            with socket.create_server(("127.0.0.1", port)) as server:
                server.accept()[0].close()
        thread = threading.Thread(target=serve)
        thread.start()
        tries = 0
        for blocking in (True, False):
            while True:
                with socket.socket() as s:
                    s.setblocking(blocking)
                    if code(s.connect, ("127.0.0.1", port)) != "ECONNREFUSED":
                        break
                tries += 1
                time.sleep(0.02)
        thread.join()
        print(tries > 0)
    """
    result = _run(shop, program)
    assert (result.exit_code, result.violations, result.stdout) == (0, (), b"True\n"), shown(result)


def test_nothing_is_made_for_a_task_that_nobody_watches(shop: Workspace, outside: Path) -> None:
    shop.observer = "none"
    with _listening(outside / "s") as server:
        result = _run(shop, f"print(code(connect, {str(outside / 's')!r}))")
        assert _untouched(server)
    assert result.stdout == b"EPERM\n", shown(result)


def test_a_socket_is_made_only_where_a_file_may_be(shop: Workspace) -> None:
    program = """
        made = {}
        for place in ("out", "lib", "."):
            os.chdir(place)
            with socket.socket(AF_UNIX) as s:
                made[place] = code(s.bind, "new.sock")
            os.chdir(os.path.dirname(os.getcwd()) if place != "." else ".")
        with socket.socket(AF_UNIX) as s, socket.socket() as t:
            print(*made.values(), code(s.bind, "\\0abstract"), code(t.bind, ("127.0.0.1", 0)))
    """
    (shop.project / "out").mkdir()
    (shop.project / "lib" / "program.py").write_text(dedent(_HEAD) + dedent(program), encoding="utf-8")
    result = shop.run(shlex.join((_PYTHON, "-B", "lib/program.py")), read=["lib/"], write=["out/"])
    assert result.stdout == b"done EROFS EROFS done done\n", shown(result)
    found = {(v.kind, v.operation, os.path.relpath(v.path, shop.project)) for v in result.violations}
    assert found == {("write", "bind", "lib/new.sock"), ("write", "bind", "new.sock")}


def test_a_port_at_which_no_listed_name_is_reached_is_told_by_the_name(shop: Workspace) -> None:
    program = "print(code(socket.create_connection, ('listed.test', 9999)))"
    result = _run(shop, program, network=("listed.test:443",))
    assert result.stdout == b"ECONNREFUSED\n", shown(result)
    (violation,) = result.violations
    assert (violation.operation, violation.target, result.exit_code) == ("network-outbound", "listed.test:9999", 1)
    assert "not on the allow list" in violation.line
