"""What a block says of the network, held to what a task reaches: behind a proxy of the host's that knows every name."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import Session
from sandbox.base.task_environment_variables import JAVA_FLAGS, PROXIES
from sandbox.contract.config import Ignore
from tests.conftest import REPOSITORY
from tests.kernel.conftest import Workspace, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sandbox import RunResult
    from tests.conftest import Tree

pytestmark = pytest.mark.kernel


def _has_an_account() -> bool:
    try:
        return bool(pwd.getpwuid(os.getuid()))
    except KeyError:
        return False


_PYTHON = f"{shlex.quote(sys.executable)} -I -S -c"

#: Prints the host it was answered for, and fails where it was not; no proxy is named but by the environment.
GET = f"""{_PYTHON} '
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=30).read().decode(), end="")
' """
#: Likewise without looking at the environment.
GET_THROUGH = f"""{_PYTHON} '
import sys, urllib.request as r
opener = r.build_opener(r.ProxyHandler({{"http": sys.argv[1]}}))
print(opener.open(sys.argv[2], timeout=30).read().decode(), end="")
' """


class _Answer(BaseHTTPRequestHandler):
    """A proxy of the host's: says which host it was asked for, whatever that is."""

    def do_GET(self) -> None:
        body = self.path.split("/")[2].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class calls it that
        pass


@pytest.fixture(autouse=True)
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the host's proxy; the host has no other way out."""
    for name in [n for n in os.environ if n.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.server_port}")
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def reached(place: Workspace, *hosts: str, **fields: Any) -> RunResult:
    """Asks hosts one after the other; the command passes whatever becomes of that."""
    return place.run("; ".join(f"{GET} http://{host}/ || true" for host in hosts), fields=fields)


def refused(result: RunResult) -> list[str]:
    assert all(v.kind == "network" for v in result.violations), shown(result)
    return [v.target for v in result.violations]


def test_a_listed_host_is_reached_and_another_is_a_violation_even_when_survived(quick_shop: Workspace) -> None:
    result = reached(quick_shop, "a.test", "b.test", network=("a.test",))
    assert result.stdout == b"a.test", shown(result)
    assert refused(result) == ["b.test:80"]
    assert (result.exit_code, result.command_exit_code) == (1, 0)
    (violation,) = result.violations
    assert violation.operation == "network-outbound"
    assert violation.line == "deny network-outbound b.test:80 (not on the allow list)"
    assert result.fix is not None
    assert result.fix.allow.network == ("b.test:80",)


@pytest.mark.parametrize("network", [None, ()])
def test_a_task_without_a_list_reaches_nothing_and_is_told_of_it_by_name(quick_shop: Workspace, network: Any) -> None:
    result = reached(quick_shop, "a.test", network=network)
    assert (result.stdout, refused(result), result.exit_code) == (b"", ["a.test:80"], 1), shown(result)


def test_the_tasks_of_one_session_keep_their_own_lists(quick_shop: Workspace) -> None:
    with ThreadPoolExecutor(3) as pool:
        lists = (("a.test",), ("b.test",), None)
        runs = [pool.submit(reached, quick_shop, "a.test", "b.test", network=network) for network in lists]
        found = [run.result() for run in runs]
    assert [result.stdout for result in found] == [b"a.test", b"b.test", b""], [shown(r) for r in found]
    assert [refused(result) for result in found] == [["b.test:80"], ["a.test:80"], ["a.test:80", "b.test:80"]]


def test_deny_is_looked_at_before_allow_and_no_entry_is_suggested(quick_shop: Workspace) -> None:
    lists = {"network": ("*.acme.test",), "deny_network": ("ads.acme.test",)}
    result = reached(quick_shop, "api.acme.test", "ads.acme.test", **lists)
    assert (result.stdout, refused(result)) == (b"api.acme.test", ["ads.acme.test:80"]), shown(result)
    assert "on the deny list" in result.violations[0].line
    assert result.fix is None or result.fix.allow.network == ()


def test_an_ignored_host_stays_refused_and_fails_nothing(quick_shop: Workspace) -> None:
    result = reached(quick_shop, "a.test", ignore=Ignore(network=("a.test:80",)))
    assert (result.exit_code, result.stdout, result.violations) == (0, b"", ()), shown(result)
    result = reached(quick_shop, "a.test", ignore=Ignore(read=("a.test:80",), network=("a.test:81",)))
    assert refused(result) == ["a.test:80"], shown(result)


def test_true_reaches_what_the_declared_tasks_list_and_no_more(quick_shop: Workspace) -> None:
    with Session() as session:
        place = _in(quick_shop, session)
        wide: dict[str, Any] = {"network": True, "deny_network": ("bad.test",)}
        before = reached(place, "a.test", **wide)
        assert (before.stdout, refused(before)) == (b"", ["a.test:80"]), shown(before)
        session.declare([place.request(network=("a.test", "bad.test")), place.request(network=("b.test",))])
        session.declare([place.request(**wide), place.request()])
        after = reached(place, "a.test", "b.test", "bad.test", "no.test", **wide)
        assert (after.stdout, refused(after)) == (b"a.testb.test", ["bad.test:80", "no.test:80"]), shown(after)
        # what is declared opens nothing for a task that does not ask for it
        assert refused(reached(place, "a.test")) == ["a.test:80"]
        assert refused(reached(place, "a.test", network=("b.test",))) == ["a.test:80"]


def test_a_tasks_own_proxies_do_not_survive_and_lead_nowhere_else(quick_shop: Workspace, proxy: str) -> None:
    mine = dict.fromkeys(PROXIES, f"http://{proxy}") | {"JAVA_TOOL_OPTIONS": "-Dmine=1"}
    result = quick_shop.run(f"{GET} http://b.test/ || true; env", env=mine, fields={"network": ("a.test",)})
    found = dict(line.split("=", 1) for line in result.stdout.decode().splitlines() if "=" in line)
    assert {name: found[name] for name in PROXIES} == PROXIES
    assert found["JAVA_TOOL_OPTIONS"] == f"{JAVA_FLAGS} -Dmine=1"
    assert refused(result) == ["b.test:80"], shown(result)
    # the host's proxy itself is no way out
    direct = quick_shop.run(f"{GET_THROUGH} http://{proxy} http://b.test/ || true")
    assert direct.stdout == b"", shown(direct)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_goes_through_the_proxy_whatever_the_users_own_configuration_says(quick_shop: Workspace) -> None:
    (quick_shop.home / ".gitconfig").write_text("[http]\n\tproxy = http://proxy.corp.test:8080\n")
    result = quick_shop.run("git ls-remote http://code.test/x.git || true")
    assert refused(result) == ["code.test:80"], shown(result)


@pytest.mark.skipif(shutil.which("ssh") is None or not _has_an_account(), reason="ssh runs for users with an account")
def test_git_has_ssh_go_through_the_proxy_too(quick_shop: Workspace) -> None:
    (quick_shop.home / ".gitconfig").write_text("[core]\n\tsshCommand = false\n")
    result = quick_shop.run("git ls-remote ssh://git@code.test/x.git || true")
    assert [target.partition(":")[0] for target in refused(result)] == ["code.test"], shown(result)


def test_a_proxy_of_the_hosts_that_is_not_spoken_refuses_who_would_need_it_by_name(
    quick_shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5h://mel:hunter2@127.0.0.1:9")
    result = reached(quick_shop, "a.test", network=("a.test",))
    assert (result.exit_code, result.started) == (125, False)
    assert "https_proxy" in result.refusals[0].message
    assert "hunter2" not in shown(result)
    assert refused(reached(quick_shop, "a.test")) == ["a.test:80"]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Path]:
    """A socket of the host's that answers everybody with its own name."""
    path = tmp_path / "s"
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = server.accept()
                    with peer:
                        peer.sendall(b"served")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        stack.callback(thread.join)
        stack.callback(server.shutdown, socket.SHUT_RDWR)
        yield path


CONNECTS = f"""{_PYTHON} '
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1]); print(s.recv(99).decode())
except OSError as e:
    print(e.strerror)
' """


def test_a_socket_of_the_hosts_is_reached_by_its_entry_alone_and_else_reported(
    quick_shop: Workspace, served: Path
) -> None:
    result = quick_shop.run(f"{CONNECTS} {served}")
    assert result.stdout == b"Operation not permitted\n", shown(result)
    (violation,) = result.violations
    assert (violation.kind, violation.operation, violation.path) == ("network", "connect", str(served))
    assert any(f'allow.unixSockets = ["{served}"]' in hint.line for hint in result.hints), shown(result)
    assert quick_shop.passes(f"{CONNECTS} {served}", fields={"unix_sockets": (str(served),)}) == "served\n"
    assert refused(quick_shop.run(f"{CONNECTS} {served}", fields={"unix_sockets": (f"{served}x",)})) == [str(served)]


def test_every_socket_is_open_to_who_asks_for_that_and_the_result_says_so(quick_shop: Workspace, served: Path) -> None:
    result = quick_shop.run(f"{CONNECTS} {served}", fields={"unix_sockets": True})
    assert (result.stdout, result.protections.sockets) == (b"served\n", "off"), shown(result)
    assert quick_shop.run("true").protections.sockets == "full"


def test_a_refused_socket_is_silenced_by_its_path(quick_shop: Workspace, served: Path) -> None:
    result = quick_shop.run(f"{CONNECTS} {served}", fields={"ignore": Ignore(network=(str(served),))})
    assert (result.exit_code, result.violations) == (0, ()), shown(result)


def test_who_only_looks_up_a_user_or_a_host_is_not_reported(quick_shop: Workspace) -> None:
    quick_shop.passes(
        "id >/dev/null; getent passwd root >/dev/null; getent hosts localhost >/dev/null; ls -l / >/dev/null"
    )


def _in(place: Workspace, session: Session) -> Workspace:
    return Workspace(session, place.base, place.root, place.project, place.home, place.observer)


def test_the_tasks_of_one_invocation_are_the_run(workspace_factory: Callable[[Tree], Path]) -> None:
    get = json.dumps(f"{GET} http://a.test/; true")
    text = f"[tasks.wide.exec]\ncommand = {get}\nsandbox.allow.network = true\n"
    text += '[tasks.narrow.exec]\ncommand = "true"\nsandbox.allow.network = ["a.test"]\n'
    project = workspace_factory({"p/vx.toml": text}) / "p"

    def run(*tasks: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "vxconf", "run", *tasks]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])}
        return subprocess.run(command, cwd=project, env=environment, capture_output=True, check=False)

    alone = run("wide")
    assert alone.returncode == 1, alone
    assert b"may not reach a.test:80 (not on the allow list)" in alone.stderr
    assert b"vx.toml:" in alone.stderr
    both = run("wide", "narrow")
    assert both.returncode == 0, both
    assert b"a.test" in both.stdout
