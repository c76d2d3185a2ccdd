"""Real programs inside a sandbox, real servers outside: through the proxy, and with no idea that there is one."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.served_proxy import Server, echo
from tests.support.sites import NO_PROXIES, Site, address_of_its_own, certify, needs, passed

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.sites import Knowing

pytestmark = pytest.mark.kernel

PYTHON = f"{sys._base_executable} -I"  # type: ignore[attr-defined]


@pytest.fixture
def secure(tmp_path: Path, site: Site) -> Iterator[Site]:
    _, both = certify("web.test", tmp_path)
    served = Site(site.directory, both)
    yield served
    served.close()


WAYS = {
    "http": "curl -sS {scheme}://{host}:{port}/page",
    "connect": "curl -sS -p {scheme}://{host}:{port}/page",
    "socks5h": "curl -sS -x socks5h://127.0.0.1:1080 {scheme}://{host}:{port}/page",
    "socks5": "curl -sS -x socks5://127.0.0.1:1080 {scheme}://{host}:{port}/page",
    "no proxy": NO_PROXIES + "curl -sS {scheme}://{host}:{port}/page",
    "no proxy, IPv4": NO_PROXIES + "curl -sS4 {scheme}://{host}:{port}/page",
}


@needs("curl")
@pytest.mark.parametrize("way", WAYS)
def test_curl_reaches_what_is_listed(way: str, knowing: Knowing, site: Site) -> None:
    command = WAYS[way].format(scheme="http", host="web.test", port=site.port)
    assert passed(knowing(command, site.port)) == "a page\n"


@needs("curl", "openssl")
@pytest.mark.parametrize("way", WAYS)
def test_curl_reaches_a_server_of_tls_whose_certificate_is_the_servers_own(
    way: str, knowing: Knowing, secure: Site
) -> None:
    command = WAYS[way].format(scheme="https", host="web.test", port=secure.port).replace("-sS", "-sSk")
    assert passed(knowing(command, secure.port)) == "a page\n"


@needs("curl")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("listed", [True, False])
def test_curl_is_refused_and_the_host_is_reported_however_the_task_ends(
    way: str, listed: bool, knowing: Knowing, site: Site
) -> None:
    command = WAYS[way].format(scheme="http", host="other.test", port=site.port) + "; true"
    told = knowing(command, *([site.port] if listed else []))
    # who resolves the name itself has not told a port yet
    resolves = way.startswith("no proxy") or way == "socks5"
    assert told.targets == ["other.test" if resolves else f"other.test:{site.port}"], told
    assert (told.exit_code, told.command_exit_code, told.trace) == (1, 0, "complete")
    assert "a page" not in told.stdout


@needs("curl")
def test_a_refused_client_is_told_the_line_to_add(knowing: Knowing) -> None:
    told = knowing("curl -sS http://other.test/; curl -sS https://other.test:8443/ -D /dev/stderr -o /dev/null; true")
    assert 'allow.network = ["other.test:80"]' in told.stdout
    assert "403" in told.stderr
    assert told.targets == ["other.test:80", "other.test:8443"]


@needs("curl")
def test_another_port_of_a_listed_name_is_refused_by_name(knowing: Knowing, site: Site) -> None:
    told = knowing(NO_PROXIES + f"curl -sS http://web.test/page; curl -sS http://web.test:{site.port}/page", site.port)
    assert (told.targets, told.stdout) == (["web.test:80"], "a page\n")


def test_python_reaches_a_name_with_its_library_and_with_a_bare_socket(knowing: Knowing, site: Site) -> None:
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


@needs("node")
@pytest.mark.parametrize("prefix", ["", NO_PROXIES])
def test_nodes_fetch_reaches_a_name(prefix: str, knowing: Knowing, site: Site) -> None:
    script = f"fetch('http://web.test:{site.port}/page').then(async r => console.log(r.status, await r.text()))"
    assert passed(knowing(f'{prefix}node -e "{script}"', site.port)).strip() == "200 a page"
    told = knowing(f'{prefix}node -e "{script.replace("web", "other")}.catch(() => 0)"', site.port)
    assert [target.partition(":")[0] for target in told.targets] == ["other.test"]


_FETCH = """
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

public class Fetch {
    public static void main(String[] args) throws Exception {
        System.out.print(new String(URI.create(args[0]).toURL().openStream().readAllBytes()));
        var answer = HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(args[0])).build(),
            BodyHandlers.ofString());
        System.out.print(answer.statusCode() + " " + answer.body());
        try (var socket = new java.net.Socket(URI.create(args[0]).getHost(), URI.create(args[0]).getPort())) {
            socket.getOutputStream().write("GET /page HTTP/1.0\\r\\n\\r\\n".getBytes());
            System.out.print(new String(socket.getInputStream().readAllBytes()));
        }
    }
}
"""


@pytest.mark.slow
@needs("java")
@pytest.mark.parametrize("prefix", ["", NO_PROXIES])
def test_a_jvm_reaches_a_name_with_both_its_libraries_and_with_a_bare_socket(
    prefix: str, knowing: Knowing, site: Site, tmp_path: Path
) -> None:
    if b"jdk.compiler" not in subprocess.run(["java", "--list-modules"], check=True, capture_output=True).stdout:
        pytest.skip("this java compiles nothing")
    source = tmp_path / "ws" / "project" / "Fetch.java"
    source.parent.mkdir(parents=True)
    source.write_text(_FETCH)
    command = f"{prefix}java -XX:-UsePerfData -XX:TieredStopAtLevel=1 Fetch.java http://{{}}.test:{site.port}/page"
    out = passed(knowing(command.format("web"), site.port, allow_read=[str(source)]))
    assert (out.count("a page\n"), "200 a page\n" in out) == (3, True), out
    told = knowing(command.format("other") + "; true", site.port, allow_read=[str(source)])
    # who resolves the name itself has not told a port yet
    assert [target.partition(":")[0] for target in told.targets] == ["other.test"], told
    assert "a page" not in told.stdout


_DIAL = """
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};

fn main() {
    let host = std::env::args().nth(1).unwrap();
    match TcpStream::connect(host.as_str()) {
        Ok(mut stream) => {
            stream.write_all(b"GET /page HTTP/1.0\\r\\n\\r\\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            print!("{}", answer);
        }
        Err(error) => println!("tcp {:?}", error.kind()),
    }
    if let Some(place) = std::env::args().nth(2) {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        match socket.send_to(b"secret", place.as_str()) {
            Ok(size) => println!("sent {}", size),
            Err(_) => println!("not sent"),
        }
    }
}
"""


@pytest.fixture(scope="session")
def dialler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of Rust's standard library alone, which knows of no proxy."""
    place = tmp_path_factory.mktemp("rust")
    (place / "dial.rs").write_text(_DIAL)
    # a compiler that rustup manages is found below the user's own home, not a test's
    user = {**os.environ, "HOME": pwd.getpwuid(os.getuid()).pw_dir} if os.getuid() == 0 else None
    made = subprocess.run(
        ["rustc", "-o", str(place / "dial"), str(place / "dial.rs")], check=False, capture_output=True, env=user
    )
    if made.returncode:
        pytest.skip(f"rustc compiles nothing here: {made.stderr.decode(errors='replace')[-200:]}")
    return place / "dial"


@needs("rustc", "cc")
def test_a_program_of_rust_reaches_a_name_and_nothing_else(
    knowing: Knowing, site: Site, dialler: Path, tmp_path: Path
) -> None:
    own = tmp_path / "ws" / "project" / "dial"
    own.parent.mkdir(parents=True)
    shutil.copy(dialler, own)
    reads = {"allow_read": [str(own)]}
    out = passed(knowing(f"./dial web.test:{site.port}", site.port, **reads))
    assert out.endswith("a page\n")
    told = knowing(f"./dial other.test:{site.port} 192.0.2.1:53", site.port, **reads)
    assert (told.command_exit_code, told.exit_code) == (0, 1), told
    assert sorted(told.targets) == ["192.0.2.1:53", "other.test"], told
    assert (told.stdout.startswith("tcp "), told.stdout.endswith("not sent\n")) == (True, True), told
    direct = knowing(f"./dial 127.0.0.1:{site.port}; ./dial 192.0.2.1:80", **reads)
    assert "a page" not in direct.stdout
    assert "192.0.2.1:80" in direct.targets, direct


def test_pip_downloads_from_an_index(knowing: Knowing, site: Site) -> None:
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


@needs("npm")
def test_npm_packs_from_a_registry(knowing: Knowing, site: Site, tmp_path: Path) -> None:
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


@needs("ssh")
def test_ssh_meets_its_server(knowing: Knowing) -> None:
    heard: list[bytes] = []

    def banner(client: socket.socket) -> None:
        client.sendall(b"SSH-2.0-Tester\r\n")
        heard.append(client.recv(255))

    with Server(banner) as server:
        told = knowing(f"ssh -o BatchMode=yes -F none -p {server.port} web.test; true", server.port)
    assert heard
    assert heard[0].startswith(b"SSH-2.0-")
    assert told.targets == []


def test_bytes_of_any_protocol_pass_both_ways_and_each_end_is_told(knowing: Knowing) -> None:
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


def test_a_listed_address_is_dialled_as_it_is_written(knowing: Knowing) -> None:
    own = address_of_its_own()
    with Server(echo, own) as server:
        program = (
            f"import socket; s = socket.create_connection(('{own}', {server.port})); s.send(b'a'); print(s.recv(1))"
        )
        listed = knowing(f'{PYTHON} -c "{program}"', allow=(f"{own}:{server.port}",))
        assert passed(listed) == "b'a'\n"
        told = knowing(f'{PYTHON} -c "{program}" 2>/dev/null; true')
        assert told.targets == [f"{own}:{server.port}"]
