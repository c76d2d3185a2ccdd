"""Real programs inside a sandbox, real servers outside: through the proxy, and with no idea that there is one."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import socket
import ssl
import subprocess
import sys
import tarfile
import threading
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.fronts import Server, echo
from tests.support.hosts import Told, run_knowing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.kernel

PYTHON = f"{sys._base_executable} -I"  # type: ignore[attr-defined]
# what tells programs of the proxy, all of it; and what tells them not to use it for a literal loopback address
NO_PROXIES = "unset $(env | grep -i proxy | cut -d= -f1) GIT_CONFIG_PARAMETERS JAVA_TOOL_OPTIONS; "
NO_EXCEPTIONS = "unset no_proxy NO_PROXY; "


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name there
        del format, args


class Site:
    """Files of a directory, over HTTP and over HTTPS."""

    def __init__(self, directory: Path, certificate: Path | None = None) -> None:
        self.directory = directory
        handler = functools.partial(Quiet, directory=str(directory))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    directory = tmp_path / "site"
    directory.mkdir()
    (directory / "page").write_text("a page\n")
    served = Site(directory)
    yield served
    served.close()


@pytest.fixture
def secure(tmp_path: Path, site: Site) -> Iterator[Site]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    both = tmp_path / "both.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=web.test"),
            *("-keyout", str(both), "-out", str(tmp_path / "cert.pem")),
        ],
        check=True,
        capture_output=True,
    )
    with both.open("a") as file:
        file.write((tmp_path / "cert.pem").read_text())
    served = Site(site.directory, both)
    yield served
    served.close()


@pytest.fixture
def knowing(tmp_path: Path, home: Path) -> Callable[..., Told]:
    """Runs a command where `web.test` is reached at the given ports; it and other names are known to the machine."""
    assert home.is_dir()
    hosts = {"web.test": "127.0.0.1", "other.test": "127.0.0.1"}

    def run(command: str, *ports: int, allow: tuple[str, ...] | None = None, **more: object) -> Told:
        listed = tuple(f"web.test:{port}" for port in ports) if allow is None else allow
        # the address too, as it is this machine's own
        literal = tuple(f"127.0.0.1:{port}" for port in ports)
        fields = {"network": (*listed, *literal)} if listed else {}
        return run_knowing(hosts, command, tmp_path, **fields, **more)  # type: ignore[arg-type]

    return run


def passed(told: Told) -> str:
    assert (told.exit_code, told.targets, told.refusals, told.trace) == (0, [], [], "complete"), told
    return told.stdout


WAYS = {
    "http": "curl -sS {scheme}://{host}:{port}/page",
    "connect": "curl -sS -p {scheme}://{host}:{port}/page",
    "socks5h": "curl -sS -x socks5h://127.0.0.1:1080 {scheme}://{host}:{port}/page",
    "socks5": "curl -sS -x socks5://127.0.0.1:1080 {scheme}://{host}:{port}/page",
    "no proxy": NO_PROXIES + "curl -sS {scheme}://{host}:{port}/page",
    "no proxy, IPv4": NO_PROXIES + "curl -sS4 {scheme}://{host}:{port}/page",
}


@pytest.mark.parametrize("way", WAYS)
def test_curl_reaches_what_is_listed(way: str, knowing: Callable[..., Told], site: Site) -> None:
    command = WAYS[way].format(scheme="http", host="web.test", port=site.port)
    assert passed(knowing(command, site.port)) == "a page\n"


@pytest.mark.parametrize("way", WAYS)
def test_curl_reaches_a_server_of_tls_whose_certificate_is_the_servers_own(
    way: str, knowing: Callable[..., Told], secure: Site
) -> None:
    command = WAYS[way].format(scheme="https", host="web.test", port=secure.port).replace("-sS", "-sSk")
    assert passed(knowing(command, secure.port)) == "a page\n"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("listed", [True, False])
def test_curl_is_refused_and_the_host_is_reported_however_the_task_ends(
    way: str, listed: bool, knowing: Callable[..., Told], site: Site
) -> None:
    command = WAYS[way].format(scheme="http", host="other.test", port=site.port) + "; true"
    told = knowing(command, *([site.port] if listed else []))
    # who resolves the name itself has not told a port yet
    resolves = way.startswith("no proxy") or way == "socks5"
    assert told.targets == ["other.test" if resolves else f"other.test:{site.port}"], told
    assert (told.exit_code, told.command_exit_code, told.trace) == (1, 0, "complete")
    assert "a page" not in told.stdout


def test_a_refused_client_is_told_the_line_to_add(knowing: Callable[..., Told]) -> None:
    told = knowing("curl -sS http://other.test/; curl -sS https://other.test:8443/ -D /dev/stderr -o /dev/null; true")
    assert 'allow.network = ["other.test:80"]' in told.stdout
    assert "403" in told.stderr
    assert told.targets == ["other.test:80", "other.test:8443"]


def test_another_port_of_a_listed_name_is_refused_by_name(knowing: Callable[..., Told], site: Site) -> None:
    told = knowing(NO_PROXIES + f"curl -sS http://web.test/page; curl -sS http://web.test:{site.port}/page", site.port)
    assert (told.targets, told.stdout) == (["web.test:80"], "a page\n")


def test_python_reaches_a_name_with_its_library_and_with_a_bare_socket(
    knowing: Callable[..., Told], site: Site
) -> None:
    program = (
        "import socket, urllib.request as u\n"
        f"print(u.urlopen('http://web.test:{site.port}/page').read().decode())\n"
        f"s = socket.create_connection(('web.test', {site.port}))\n"
        "s.sendall(b'GET /page HTTP/1.0\\r\\n\\r\\n')\n"
        "print(s.makefile().read())\n"
    )
    for prefix in ("", NO_PROXIES):
        out = passed(knowing(f'{prefix}{PYTHON} -c "{program}"', site.port))
        assert out.count("a page") == 2


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
@pytest.mark.parametrize("prefix", ["", NO_PROXIES])
def test_nodes_fetch_reaches_a_name(prefix: str, knowing: Callable[..., Told], site: Site) -> None:
    script = f"fetch('http://web.test:{site.port}/page').then(async r => console.log(r.status, await r.text()))"
    assert passed(knowing(f'{prefix}node -e "{script}"', site.port)).strip() == "200 a page"
    told = knowing(f'{prefix}node -e "{script.replace("web", "other")}.catch(() => 0)"', site.port)
    assert [target.partition(":")[0] for target in told.targets] == ["other.test"]


@pytest.mark.skipif(shutil.which("java") is None, reason="there is no java")
def test_a_jvm_goes_through_the_proxy(knowing: Callable[..., Told], site: Site, tmp_path: Path) -> None:
    if b"jdk.compiler" not in subprocess.run(["java", "--list-modules"], check=True, capture_output=True).stdout:
        pytest.skip("this java compiles nothing")
    project = tmp_path / "ws" / "project"
    project.mkdir(parents=True)
    (project / "Fetch.java").write_text(
        "public class Fetch { public static void main(String[] a) throws Exception {"
        " System.out.print(new String(new java.net.URL(a[0]).openStream().readAllBytes())); } }"
    )
    command = "java -XX:-UsePerfData Fetch.java http://{}.test:" + f"{site.port}/page"
    out = passed(knowing(command.format("web"), site.port, allow_read=[f"{project}/Fetch.java"]))
    assert out.endswith("a page\n")
    told = knowing(command.format("other") + "; true", site.port, allow_read=[f"{project}/Fetch.java"])
    assert told.targets == [f"other.test:{site.port}"]


@pytest.mark.parametrize("prefix", ["", NO_PROXIES])
def test_git_clones_over_http(prefix: str, knowing: Callable[..., Told], site: Site, tmp_path: Path) -> None:
    work = tmp_path / "work"
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (
        ["init", "-q", str(work)],
        ["-C", str(work), *identity, "commit", "-q", "--allow-empty", "-m", "the first"],
        ["clone", "-q", "--bare", str(work), str(site.directory / "r.git")],
        ["-C", str(site.directory / "r.git"), "update-server-info"],
    ):
        subprocess.run(["git", *arguments], check=True, capture_output=True)
    url = f"http://web.test:{site.port}/r.git"
    out = passed(knowing(f'{prefix}git clone -q {url} "$TMPDIR/r" && git -C "$TMPDIR/r" log --format=%s', site.port))
    assert out == "the first\n"
    told = knowing(f'{prefix}git clone -q {url.replace("web", "other")} "$TMPDIR/r"; true', site.port)
    assert [target.partition(":")[0] for target in told.targets] == ["other.test"]


def test_pip_downloads_from_an_index(knowing: Callable[..., Told], site: Site) -> None:
    wheel = site.directory / "simple" / "tiny" / "tiny-1.0-py3-none-any.whl"
    wheel.parent.mkdir(parents=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "")
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    (wheel.parent / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    index = f"--index-url http://web.test:{site.port}/simple/ --trusted-host web.test"
    download = f'{PYTHON} -m pip --isolated --no-cache-dir --disable-pip-version-check download -q -d "$TMPDIR" {index}'
    assert passed(knowing(f'{download} tiny && ls "$TMPDIR"/tiny*', site.port)).strip().endswith(wheel.name)


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm")
def test_npm_packs_from_a_registry(knowing: Callable[..., Told], site: Site, tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "package.json").write_text('{"name": "tiny", "version": "1.0.0"}')
    with tarfile.open(site.directory / "tiny-1.0.0.tgz", "w:gz") as archive:
        archive.add(package, "package")
    tarball = f"http://web.test:{site.port}/tiny-1.0.0.tgz"
    version = {"name": "tiny", "version": "1.0.0", "dist": {"tarball": tarball}}
    (site.directory / "tiny").write_text(
        json.dumps({"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}})
    )
    command = (
        'cd "$TMPDIR" && HOME="$TMPDIR" npm pack --silent --update-notifier=false '
        f"--registry http://web.test:{site.port}/ tiny"
    )
    assert passed(knowing(command, site.port)).strip() == "tiny-1.0.0.tgz"


@pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh")
def test_ssh_meets_its_server(knowing: Callable[..., Told]) -> None:
    heard: list[bytes] = []

    def banner(client: socket.socket) -> None:
        client.sendall(b"SSH-2.0-Tester\r\n")
        heard.append(client.recv(255))

    with Server(banner) as server:
        told = knowing(f"ssh -o BatchMode=yes -F none -p {server.port} web.test; true", server.port)
    assert heard
    assert heard[0].startswith(b"SSH-2.0-")
    assert told.targets == []


def test_bytes_of_any_protocol_pass_both_ways_and_each_end_is_told(knowing: Callable[..., Told]) -> None:
    program = (
        "import socket\n"
        "s = socket.create_connection(('web.test', {}))\n"
        "s.sendall(b'x' * 3000000)\n"
        "s.shutdown(socket.SHUT_WR)\n"
        "print(sum(map(len, iter(lambda: s.recv(65536), b''))))\n"
    )

    def count(client: socket.socket) -> None:
        size = 0
        while data := client.recv(1 << 16):
            size += len(data)
        client.sendall(bytes(size))

    with Server(count) as server:
        assert passed(knowing(f'{PYTHON} -c "{program.format(server.port)}"', server.port)) == "3000000\n"


def test_a_listed_address_is_dialled_as_it_is_written(knowing: Callable[..., Told]) -> None:
    """An address of this machine's own, which its loopback is not."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but its loopback's")
        own = asked.getsockname()[0]
    with Server(echo, own) as server:
        program = (
            f"import socket; s = socket.create_connection(('{own}', {server.port})); s.send(b'a'); print(s.recv(1))"
        )
        listed = knowing(f'{PYTHON} -c "{program}"', allow=(f"{own}:{server.port}",))
        assert passed(listed) == "b'a'\n"
        told = knowing(f'{PYTHON} -c "{program}" 2>/dev/null; true')
        assert told.targets == [f"{own}:{server.port}"]
