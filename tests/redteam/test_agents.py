"""What is behind sockets of the host's (buses, agents, daemons), asked for by the programs that ask them."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.redteam.conftest import Box, shown
from tests.redteam.connecting import dial

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.kernel

_ALL = "org.freedesktop.DBus.ListNames"
#: By what runs it: variables, and words.
ASKED: dict[str, tuple[dict[str, str], list[str]]] = {
    "ssh-add": ({"SSH_AUTH_SOCK": "{}"}, ["-l"]),
    "dbus-send": ({}, ["--bus=unix:path={}", "--print-reply", "--dest=org.freedesktop.DBus", "/", _ALL]),
    "gdbus": (
        {},
        ["call", "--address=unix:path={}", "--dest=org.freedesktop.DBus", "--object-path=/", f"--method={_ALL}"],
    ),
    "busctl": ({}, ["--address=unix:path={}", "list"]),
    "systemd-run": (
        {"DBUS_SESSION_BUS_ADDRESS": "unix:path={}", "XDG_RUNTIME_DIR": "/nowhere"},
        ["--user", "--no-ask-password", "true"],
    ),
    "gpg-connect-agent": ({}, ["--no-autostart", "-S", "{}", "getinfo version", "/bye"]),
    "tmux": ({}, ["-S", "{}", "list-sessions"]),
    "docker": ({}, ["-H", "unix://{}", "ps"]),
    "curl": ({}, ["-sS", "--unix-socket", "{}", "http://localhost/_ping"]),
    "nc": ({}, ["-U", "{}"]),
    "socat": ({}, ["-u", "OPEN:/dev/null", "UNIX-CONNECT:{}"]),
}


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[socket.socket, Path]]:
    """A socket of the host's beside everything of the task, which answers nobody; its name is short enough for one."""
    place = Path(tempfile.mkdtemp(prefix="vxa", dir="/tmp"))
    (place / "temp").mkdir()
    monkeypatch.setenv("VX_TMPDIR", str(place / "temp"))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place / "agent"))
        server.listen()
        server.setblocking(False)
        yield server, place / "agent"
    shutil.rmtree(place)


@pytest.mark.parametrize("program", ASKED)
def test_no_agent_of_the_hosts_hears_of_a_task(box: Box, agent: tuple[socket.socket, Path], program: str) -> None:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"not installed: {program}")
    server, path = agent
    variables, words = ASKED[program]
    given = {name: value.replace("{}", str(path)) for name, value in variables.items()}
    command = [found, *(word.replace("{}", str(path)) for word in words)]
    inside = (
        "import json, subprocess\n"
        f"given, command = json.loads({json.dumps([given, command])!r})\n"
        "made = subprocess.run(command, env={**os.environ, **given}, stdin=subprocess.DEVNULL, timeout=60)\n"
        "print('ended', made.returncode)\n"
    )
    result = dial(box, inside)
    with pytest.raises(BlockingIOError):
        server.accept()
    assert str(path) in {violation.path for violation in result.violations}, shown(result)
    assert result.stdout.startswith(b"ended "), shown(result)
    assert result.stdout != b"ended 0\n", shown(result)
    assert (result.exit_code, result.command_exit_code) == (1, 0), shown(result)
