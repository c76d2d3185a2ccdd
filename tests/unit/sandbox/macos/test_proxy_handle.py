"""A task's own proxy on macOS: the process, the ports, the password, by real clients; a stand-in for `sandbox-exec`.

Nothing holds the command to its profile here, so what the profile opens is asked of the evaluator instead.
"""

from __future__ import annotations

import re
import shlex
import socket
from typing import TYPE_CHECKING, Any

import pytest

from sandbox.contract.config import Ignore
from sandbox.macos import proxy_handle
from sandbox.macos.run import MacRun
from sandbox.proxy.policy.policy import Policy
from tests.support.fake_mac import FakeMac, Sessionless, mac_request
from tests.support.seatbelt import Profile
from tests.support.served_proxy import SECONDS, Server, all_of, exactly, page

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from sandbox.contract.results import RunResult

# each runs clients, a server and a proxy
pytestmark = pytest.mark.slow

_CURL = "curl -sS --max-time 60 --noproxy ''"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def _no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def mac(tmp_path: Path) -> FakeMac:
    return FakeMac.at(tmp_path / "mac")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(page) as running:
        yield running


def _run(mac: FakeMac, command: str, fields: dict[str, Any] | None = None, **options: Any) -> RunResult:
    root = mac.state.parent.resolve()
    project = root / "ws" / "shop"
    project.mkdir(parents=True, exist_ok=True)
    request = mac_request(project, root / "temp", workspace=project.parent, **(fields or {}))
    return MacRun(Sessionless(), request, command, {"timeout": 60.0, **options}, system=mac.tools)()  # type: ignore[typeddict-item]


def _variables(result: RunResult) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in result.stdout.decode().splitlines())


@pytest.mark.parametrize(
    "client",
    [
        "",
        "--proxytunnel",
        # asked for the password first, as git does
        "--proxy-anyauth",
        "--proxy $FTP_PROXY",
    ],
)
def test_a_listed_host_is_reached_by_every_way_of_asking(mac: FakeMac, server: Server, client: str) -> None:
    url = f"http://127.0.0.1:{server.port}/page"
    result = _run(mac, f"{_CURL} {client} {url}", {"network": (f"127.0.0.1:{server.port}",)})
    assert (result.exit_code, result.violations, result.trace) == (0, (), "complete")
    head = result.stdout.decode()
    assert head.startswith("GET /page HTTP/1.1\r\n")
    # the server learns nothing of the proxy's password
    assert "authorization" not in head.lower()


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("http://127.0.0.1:{port}/", "127.0.0.1:{port}"),
        ("http://pkg.test/", "pkg.test:80"),
        ("https://pkg.test/", "pkg.test:443"),
        ("--proxy $FTP_PROXY http://pkg.test:8000/", "pkg.test:8000"),
    ],
)
def test_another_is_refused_by_name_whether_or_not_anything_is_listed(
    mac: FakeMac, server: Server, command: str, target: str
) -> None:
    target = target.format(port=server.port)
    for fields in ({}, {"network": ("registry.packages.test", "127.0.0.1:1")}):
        told: list[object] = []
        result = _run(mac, f"{_CURL} {command.format(port=server.port)} || true", fields, on_violation=told.append)
        (violation,) = result.violations
        assert told == [violation]
        assert violation.line == f"deny network-outbound {target} (not on the allow list)"
        assert (result.exit_code, result.command_exit_code) == (1, 0)
        assert result.fix is not None
        assert result.fix.allow.network == (target,)
    assert server.clients == 0


def test_the_deny_list_wins(mac: FakeMac, server: Server) -> None:
    here = f"127.0.0.1:{server.port}"
    result = _run(mac, f"{_CURL} http://{here}/ || true", {"network": (here,), "deny_network": (here,)})
    assert [violation.line for violation in result.violations] == [f"deny network-outbound {here} (on the deny list)"]
    assert server.clients == 0


def test_a_refusal_can_be_ignored(mac: FakeMac) -> None:
    result = _run(mac, f"{_CURL} http://pkg.test/", {"ignore": Ignore(network=("pkg.test:80",))})
    assert (result.exit_code, result.violations) == (0, ())


def test_the_profile_opens_the_ports_the_variables_name_and_no_others(mac: FakeMac) -> None:
    result = _run(mac, "env", {"network": ("localhost:4173", "pkg.test")})
    told = _variables(result)
    profile = Profile.of(mac.profile)
    ports = {int(told[name].rpartition(":")[2]) for name in ("HTTP_PROXY", "FTP_PROXY")}
    assert len(ports) == 2
    for host in ("localhost", "127.0.0.1", "::1"):
        for port in (*ports, 4173):
            assert profile.allows("network-outbound", f"{host}:{port}")
        assert not profile.allows("network-outbound", f"{host}:{max(ports) + 1}")
    assert not profile.allows("network-outbound", "151.101.0.223:443")
    assert not profile.allows("network-bind", "localhost:0")


def test_no_two_tasks_share_a_port_or_a_password(mac: FakeMac) -> None:
    policy = Policy(allow=("pkg.test",))
    with proxy_handle.opened(policy) as one, proxy_handle.opened(policy) as other:
        assert not set(one.ports) & set(other.ports)
        assert one.variables({})["HTTP_PROXY"].partition("@")[0] != other.variables({})["HTTP_PROXY"].partition("@")[0]
    first, second = (_variables(_run(mac, "env"))["HTTP_PROXY"].partition("@")[0] for _ in range(2))
    assert first != second


def test_every_variable_names_the_tasks_own_front_and_its_own_options_stay(mac: FakeMac) -> None:
    mine = {"JAVA_TOOL_OPTIONS": "-Xmx1g", "HTTP_PROXY": "http://corp:1", "CLOUDSDK_PROXY_USERNAME": "me"}
    told = _variables(_run(mac, "env", env=mine))
    found = re.fullmatch(r"http://vxconf:([0-9a-f]{32})@127\.0\.0\.1:([0-9]+)", told["HTTP_PROXY"])
    assert found is not None
    password, port = found.groups()
    assert told["CLOUDSDK_PROXY_USERNAME"] == "vxconf"
    assert (told["CLOUDSDK_PROXY_PASSWORD"], told["CLOUDSDK_PROXY_PORT"]) == (password, port)
    assert told["JAVA_TOOL_OPTIONS"].startswith(f"-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={port} ")
    assert told["JAVA_TOOL_OPTIONS"].endswith(" -Xmx1g")
    assert told["GIT_CONFIG_PARAMETERS"] == f"'http.proxy={told['HTTP_PROXY']}'"
    assert told["NO_PROXY"] == "localhost,127.0.0.1,::1"
    assert not [name for name, value in told.items() if ":3128" in value or ":1080" in value]


@pytest.mark.parametrize("who", ["", "--proxy-user vxconf:", "--proxy-user vxconf:$(printf %032d 0)"])
def test_another_program_of_this_machine_is_served_by_neither_port(mac: FakeMac, server: Server, who: str) -> None:
    here = f"127.0.0.1:{server.port}"
    command = (
        f"http=http://${{HTTP_PROXY#*@}} socks=socks5h://${{FTP_PROXY#*@}}\n"
        f"{_CURL} -o /dev/null -w '%{{http_code}} ' --proxy $http {who} http://{here}/\n"
        f"{_CURL} -o /dev/null -w '%{{http_connect}} ' --proxy $http {who} -p http://{here}/\n"
        f"{_CURL} --proxy $socks {who} http://{here}/ && echo in\n"
        f"{_CURL} -o /dev/null -w '%{{http_code}} ' http://{here}/\n"
    )
    result = _run(mac, command, {"network": (here,)})
    assert result.stdout.split() == [b"407", b"407", b"200"]
    assert server.clients == 1
    assert result.violations == ()


def test_ssh_is_led_through_the_front(mac: FakeMac) -> None:
    told = _variables(_run(mac, "env"))["GIT_SSH_COMMAND"]
    (through,) = (word for word in shlex.split(told) if word.startswith("ProxyCommand="))
    assert through.endswith(" ssh %h %p")

    def greet(client: socket.socket) -> None:
        client.sendall(b"SSH-2.0-test\r\n" + exactly(client, 3))

    with Server(greet) as there:
        here = f"127.0.0.1:{there.port}"
        # what ssh would run for it
        command = (
            'for word in "$@"; do case $word in ProxyCommand=*) through=${word#*=};; esac; done\n'
            'run() { sh -c "exec $(printf %s "$through" | sed "s/%%/%/g; s/%h/$1/; s/%p/$2/")"; }\n'
            # to the end of what comes back, as ssh reads it
            f"said=$(printf abc | run 127.0.0.1 {there.port}); printf '%s\\n' \"$said\"\n"
            "run pkg.test 22 </dev/null || echo no\n"
        )
        result = _run(mac, f'eval "set -- $GIT_SSH_COMMAND"\n{command}', {"network": (here,)})
    assert result.stdout == b"SSH-2.0-test\r\nabc\nno\n", result.stderr
    assert b"the sandbox gave no way to pkg.test:22 (403)" in result.stderr
    assert [violation.target for violation in result.violations] == ["pkg.test:22"]


def test_local_binding_reaches_this_machine_beside_the_front(mac: FakeMac, server: Server) -> None:
    result = _run(mac, f"curl -sS --max-time 60 http://127.0.0.1:{server.port}/", {"local_binding": (8000,)})
    assert (result.exit_code, result.violations) == (0, ())
    profile = Profile.of(mac.profile)
    assert profile.allows("network-outbound", f"127.0.0.1:{server.port}")
    assert not profile.allows("network-outbound", "10.0.0.1:443")


def test_what_came_in_at_the_very_end_is_judged_all_the_same() -> None:
    heard: list[tuple[str, str]] = []
    with (
        proxy_handle.opened(Policy()) as proxy,
        socket.create_connection(("127.0.0.1", proxy.ports[0]), SECONDS) as client,
    ):
        password = proxy.variables({})["CLOUDSDK_PROXY_PASSWORD"]
        client.sendall(_asking("late.test:443", "vxconf", password))
        proxy.report(lambda asked, reason: heard.append((asked, reason)))
        assert proxy.settle() == ""
        assert all_of(client).startswith(b"HTTP/1.1 403 ")
    assert heard == [("late.test:443", "not on the allow list")]


def test_a_front_to_which_nobody_comes_is_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_front: proxy_handle.MacProxyHandle) -> None:
        raise AssertionError

    monkeypatch.setattr(proxy_handle.MacProxyHandle, "_start", start)
    with proxy_handle.opened(Policy(allow=("pkg.test",))) as proxy:
        proxy.report(lambda *_: None)
        assert proxy.settle() == ""


def test_a_pass_needs_a_front_that_told_all(mac: FakeMac, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_handle, "_BOOT", "{path!r}; import os; os._exit(3)")
    result = _run(mac, f"{_CURL} http://pkg.test/ || true", {"network": ("pkg.test",)})
    assert (result.command_exit_code, result.exit_code, result.trace) == (0, 1, "partial")
    assert result.trace_reason == "the network's proxy ended before the task did"


def test_a_run_that_is_over_leaves_no_front_behind(
    mac: FakeMac, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    begin = proxy_handle.MacProxyHandle._start

    def start(proxy: proxy_handle.MacProxyHandle) -> subprocess.Popen[bytes]:
        started.append(begin(proxy))
        return started[-1]

    monkeypatch.setattr(proxy_handle.MacProxyHandle, "_start", start)
    here = f"127.0.0.1:{server.port}"
    assert _run(mac, f"{_CURL} -o /dev/null http://{here}/", {"network": (here,)}).exit_code == 0
    (process,) = started
    assert process.returncode is not None


def test_a_tunnel_moves_half_a_megabyte_each_way(mac: FakeMac, server: Server) -> None:
    here = f"127.0.0.1:{server.port}"
    command = f'head -c 500000 /dev/zero > "$TMPDIR/x"; {_CURL} -p -T "$TMPDIR/x" http://{here}/ | wc -c'
    result = _run(mac, command, {"network": (here,)})
    assert (result.exit_code, result.violations) == (0, ()), result.stderr
    assert int(result.stdout) > 500_000


def _asking(target: str, name: str, password: str) -> bytes:
    import base64

    known = base64.b64encode(f"{name}:{password}".encode()).decode()
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: basic {known}\r\n\r\n".encode()
