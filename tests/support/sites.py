"""Servers of real protocols for clients in a sandbox: files over HTTP and HTTPS, repositories over ssh."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import socket
import ssl
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from tests.support.served_proxy import Server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.hosts import Told

    #: Runs a command where `web.test` is reached at the given ports.
    Knowing = Callable[..., Told]

# what tells programs of the proxy, all of it; and what tells them not to use it for a literal loopback address
NO_PROXIES = "unset $(env | grep -i proxy | cut -d= -f1) GIT_CONFIG_PARAMETERS JAVA_TOOL_OPTIONS; "


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skip where one of them is not installed, and name it."""
    # servers are kept out of an ordinary user's way
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    missing = [program for program in programs if shutil.which(program, path=path) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def passed(told: Told) -> str:
    """What it said, if all went well and nothing was refused."""
    assert (told.exit_code, told.targets, told.refusals, told.trace) == (0, [], [], "complete"), told
    return told.stdout


def address_of_its_own() -> str:
    """An address of this machine that its loopback is not."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but its loopback's")
        found: str = asked.getsockname()[0]
        return found


class _Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name there
        del format, args


class Site:
    """Files of a directory, over HTTP, or over HTTPS with the certificate and key of a file."""

    def __init__(self, directory: Path, certificate: Path | None = None) -> None:
        self.directory = directory
        handler = functools.partial(_Quiet, directory=str(directory))
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


def certify(name: str, place: Path) -> tuple[Path, Path]:
    """An authority of the test's own: its certificate, and a file with key and certificate of the named host."""
    own, both = place / "authority.pem", place / "both.pem"
    authority, key, request, extension = (place / f"{part}.tmp" for part in ("authority", "key", "request", "ext"))
    extension.write_text(f"subjectAltName=DNS:{name}\nbasicConstraints=critical,CA:false\n")
    signs = ["-CA", own, "-CAkey", authority, "-CAcreateserial"]
    for words in (
        ["req", "-x509", "-nodes", "-newkey", "rsa:2048", "-subj", "/CN=nobody", "-keyout", authority, "-out", own],
        ["req", "-nodes", "-newkey", "rsa:2048", "-subj", f"/CN={name}", "-keyout", key, "-out", request],
        ["x509", "-req", "-in", request, *signs, "-extfile", extension, "-days", "2", "-out", both],
    ):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
    both.write_text(both.read_text() + key.read_text())
    return own, both


def repository(place: Path, subject: str) -> Path:
    """A bare repository of one commit, which a server of mere files serves too."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    work = place.with_suffix(".work")
    for arguments in (
        ["init", "-q", str(work)],
        ["-C", str(work), *identity, "commit", "-q", "--allow-empty", "-m", subject],
        ["clone", "-q", "--bare", str(work), str(place)],
        ["-C", str(place), "update-server-info"],
    ):
        subprocess.run(["git", *arguments], check=True, capture_output=True)
    return place


#: Its first argument is a user database for this one process; the rest is what to run there.
_WITH_USERS = 'mount --bind "$1" /etc/passwd && shift && exec "$@"'


class Shell:
    """An ssh server for the user `tester`, who is whoever runs the test; only the key made for it is let in.

    Attributes:
        port: where it is on 127.0.0.1.
        known: the line of a file of known hosts, for a host by this name.
    """

    def __init__(self, place: Path, key: Path, host: str) -> None:
        """Make both keys; the one to be let in is left in the file `key`."""
        home, user, group = place / "home-of-tester", os.getuid(), os.getgid()
        (home / ".ssh").mkdir(parents=True)
        home.chmod(0o755)
        enter = ["unshare", "--mount"] if user == 0 else ["unshare", "--map-root-user", "--mount"]
        # it asks who its user is, whom no database need know
        made = [*enter, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)]
        subprocess.run(made, check=True, capture_output=True)
        shutil.copy(f"{key}.pub", home / ".ssh" / "authorized_keys")
        (home / ".ssh" / "authorized_keys").chmod(0o600)
        (home / ".ssh").chmod(0o700)
        users = place / "users"
        users.write_text(f"root:x:0:0::{home}:/bin/sh\ntester:x:{user}:{group}::{home}:/bin/sh\n")
        own = place / "key-of-server"
        told = subprocess.run(["dropbearkey", "-t", "ed25519", "-f", str(own)], check=True, capture_output=True).stdout
        public = next(line for line in told.decode().splitlines() if line.startswith("ssh-"))
        back = [] if user == 0 else ["unshare", f"--map-user={user}", f"--map-group={group}"]
        self._command = [
            *(*enter, "sh", "-c", _WITH_USERS, "sh", str(users), *back),
            *("dropbear", "-i", "-s", "-m", "-j", "-k", "-r", str(own)),
        ]
        self._server = Server(self._serve)
        self.port = self._server.port
        self.known = f"[{host}]:{self.port} {' '.join(public.split()[:2])}\n"

    def _serve(self, client: socket.socket) -> None:
        client.setblocking(True)
        path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
        subprocess.run(
            self._command,
            check=False,
            stdin=client.fileno(),
            stdout=client.fileno(),
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PATH": path},
        )

    def close(self) -> None:
        self._server.__exit__()
