"""A socket that a task did not make is not reached where the task may write, so no descriptor crosses between tasks."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox import Session
from tests.redteam.conftest import PYTHON, Box, shown
from tests.support.observers import ANSWERING
from tests.support.walls_away import take_away

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox import RunResult

pytestmark = pytest.mark.kernel

_KINDS = {"stream": socket.SOCK_STREAM, "packets": socket.SOCK_SEQPACKET, "letters": socket.SOCK_DGRAM}
_OURS = """from sandbox.linux.connect.sockets_of_task import SocketsOfTask
SocketsOfTask.made = lambda self, place: True"""
_UNTOLD = "from sandbox.linux.inside import network_listeners; network_listeners.asked = lambda: []"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that tasks share, with room for the names of sockets."""
    directory = Path(tempfile.mkdtemp(prefix="vxs", dir="/tmp"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(params=ANSWERING)
def answered(box: Box, shared: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Box:
    """A task that may write in the shared directory; its own temporary one lies elsewhere."""
    (shared / "temp").mkdir()
    monkeypatch.setenv("VX_TMPDIR", str(shared / "temp"))
    return dataclasses.replace(box, observer=str(request.param))


def _attack(
    box: Box, top: Path, *sockets: str, session: Session | None = None
) -> tuple[dict[str, str], RunResult, int]:
    """What a task told of another's sockets in a directory it may write, and how many of those heard of it."""
    config = box.request().config
    request = (session or box.session).request(
        dataclasses.replace(config, allow_write=(f"{top}/",), unix_sockets=sockets), workspace_root=str(box.root)
    )
    with ExitStack() as stack:
        others = []
        for name, kind in _KINDS.items():
            others.append(stack.enter_context(socket.socket(socket.AF_UNIX, kind)))
            others[-1].bind(str(top / name))
            if kind != socket.SOCK_DGRAM:
                others[-1].listen()
            others[-1].setblocking(False)
        command = box.program("others_sockets", top)
        result = (session or box.session).run(request, command=command, observer=box.observer, timeout=60)
        heard = sum(map(_heard, others))
    assert result.command_exit_code == 0, shown(result)
    told: dict[str, str] = json.loads(result.stdout)
    assert told.pop("nobody's") == "ECONNREFUSED", "a socket's file that is left over is no violation"
    return told, result, heard


def _heard(sock: socket.socket) -> bool:
    try:
        if sock.type == socket.SOCK_DGRAM:
            sock.recv(9)
        else:
            sock.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def test_a_socket_that_another_made_in_a_write_grant_is_not_reached(answered: Box, shared: Path) -> None:
    (shared / "top").mkdir()
    told, result, heard = _attack(answered, shared / "top")
    assert heard == 0
    assert len(told) >= 15
    assert set(told.values()) == {"EPERM"}, told
    assert {v.path for v in result.violations} == {str(shared / "top" / name) for name in _KINDS}, shown(result)
    assert all("this task did not make it" in v.line for v in result.violations)


def test_nor_where_the_grant_holds_the_temporary_directory(answered: Box, shared: Path) -> None:
    told, _, heard = _attack(answered, shared)
    assert heard == 0
    assert set(told.values()) == {"EPERM"}, told


def test_what_its_list_names_is_reached(answered: Box, shared: Path) -> None:
    listed = [str(shared / name) for name in _KINDS]
    told, result, heard = _attack(answered, shared, *listed)
    assert heard == len(_KINDS)
    assert {told[f"{name} connect"] for name in _KINDS} == {"done"}
    assert {v.path for v in result.violations} <= set(listed)


def test_without_that_question_all_are_reached(answered: Box, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take_away(monkeypatch, _OURS)
    with Session() as session:
        told, _, heard = _attack(answered, shared, session=session)
    assert heard == len(_KINDS)
    assert set(told.values()) == {"done"}, told


@pytest.mark.parametrize("answered", ANSWERING[1:], indirect=True)
def test_what_no_kernel_tells_is_no(answered: Box, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shared / "top").mkdir()
    take_away(monkeypatch, _UNTOLD)
    with Session() as session:
        told, result, heard = _attack(answered, shared / "top", session=session)
    assert heard == 0
    assert set(told.values()) == {"EPERM"}, told
    assert all("does not tell whose it is" in v.line for v in result.violations)


@pytest.fixture
def layered(shared: Path) -> Iterator[Path]:
    """A directory of overlayfs, which tells programs the numbers of its layers."""
    if os.geteuid():
        pytest.skip("mounts need root")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as upper:
        for directory in (shared / "lower", shared / "top", Path(upper, "u"), Path(upper, "w")):
            directory.mkdir()
        options = f"lowerdir={shared}/lower,upperdir={upper}/u,workdir={upper}/w"
        made = subprocess.run(
            ["mount", "-t", "overlay", "none", f"{shared}/top", "-o", options], capture_output=True, check=False
        )
        if made.returncode:
            pytest.skip(f"no overlayfs here: {made.stderr.decode()}")
        yield shared / "top"
        subprocess.run(["umount", "-l", f"{shared}/top"], check=True)


@pytest.mark.one_user
@pytest.mark.parametrize("answered", ANSWERING[1:], indirect=True)
def test_on_layers_the_task_s_own_is_reached_and_another_s_is_not(answered: Box, layered: Path) -> None:
    told, _, heard = _attack(answered, layered)
    assert heard == 0
    assert set(told.values()) == {"EPERM"}, told
    program = (
        "import os, socket, sys\n"
        "for kind in (1, 2, 5):\n"
        "    s = socket.socket(socket.AF_UNIX, kind); s.bind(f'{sys.argv[1]}/own{kind}')\n"
        "    s.listen() if kind != 2 else None\n"
        "    c = socket.socket(socket.AF_UNIX, kind); c.connect(f'{sys.argv[1]}/own{kind}'); print(kind)\n"
    )
    (answered.project / "lib/own.py").write_text(program, encoding="utf-8")
    config = dataclasses.replace(answered.request().config, allow_write=(f"{layered}/",))
    request = answered.session.request(config, workspace_root=str(answered.root))
    result = answered.session.run(request, command=f"{PYTHON} lib/own.py {layered}", observer=answered.observer)
    assert (result.exit_code, result.stdout) == (0, b"1\n2\n5\n"), shown(result)


_DAEMON = """
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind("out/d"); s.listen()
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
print(s.accept()[0].recv(9).decode(), flush=True)
"""
_CLIENT = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('out/d'); s.send(b'hello')"


def test_a_daemon_of_the_task_s_own_is_reached_when_whoever_made_its_socket_is_gone(answered: Box) -> None:
    (answered.project / "lib/daemon.py").write_text(_DAEMON, encoding="utf-8")
    result = answered.run(f'{PYTHON} lib/daemon.py && {PYTHON} -c "{_CLIENT}"; sleep 0.2')
    assert (result.exit_code, result.stdout) == (0, b"hello\n"), shown(result)


_TAKES = """
import os, socket, time
s = socket.socket(socket.AF_UNIX); s.bind("{0}/s"); s.listen(); s.settimeout({1})
open("{0}/up", "w").close()
try:
    fds = socket.recv_fds(s.accept()[0], 9, 9)[1]
    print(os.read(fds[0], 99))
except TimeoutError:
    print("nobody came")
"""
_HANDS = """
import os, socket
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("{0}/s"); socket.send_fds(s, [b"x"], [os.open("lib/cart.py", os.O_RDONLY)])
except OSError as error:
    print(error.errno)
"""


@pytest.mark.parametrize("answered", ANSWERING[:1], indirect=True)
@pytest.mark.parametrize("listed", [False, True])
def test_no_descriptor_crosses_from_task_to_task_but_by_a_list(answered: Box, shared: Path, *, listed: bool) -> None:
    (shared / "top").mkdir()
    place = shared / "top"
    for name, text in (("takes", _TAKES), ("hands", _HANDS)):
        (answered.project / "lib" / f"{name}.py").write_text(text.format(place, 20 if listed else 1), encoding="utf-8")
    config = dataclasses.replace(answered.request().config, allow_write=(f"{place}/",))
    sends = dataclasses.replace(config, unix_sockets=(f"{place}/s",) if listed else ())
    taken: list[RunResult] = []

    def take() -> None:
        request = answered.session.request(
            dataclasses.replace(config, allow_read=(f"{answered.project}/lib/takes.py",)),
            workspace_root=str(answered.root),
        )
        taken.append(answered.session.run(request, command=f"{PYTHON} lib/takes.py", observer=answered.observer))

    thread = threading.Thread(target=take)
    thread.start()
    end = time.monotonic() + 20
    while not (place / "up").exists() and time.monotonic() < end:
        time.sleep(0.01)
    request = answered.session.request(sends, workspace_root=str(answered.root))
    sent = answered.session.run(request, command=f"{PYTHON} lib/hands.py", observer=answered.observer)
    if not listed:
        (place / "s").unlink()
    thread.join()
    assert taken[0].stdout.strip() == (b"b'cart\\n'" if listed else b"nobody came"), shown(taken[0])
    assert (sent.exit_code, sent.stdout) == ((0, b"") if listed else (1, b"1\n")), shown(sent)
