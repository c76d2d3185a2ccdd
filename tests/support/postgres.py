"""A PostgreSQL server of the test's own, run by somebody who is not root, as it wants to be."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from typing import Self

import pytest

_SECONDS = 120.0
_ATTEMPTS = 5
USER = "tester"


def programs() -> str:
    """The directory of PostgreSQL's programs, empty where they are not installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    beside = shutil.which("initdb")
    return os.path.dirname(found[-1]) if found else os.path.dirname(os.path.realpath(beside)) if beside else ""


def needs_postgres() -> pytest.MarkDecorator:
    """Skip where it is not installed."""
    return pytest.mark.skipif(not programs(), reason="not installed: postgresql")


class Postgres:
    """Serves on 127.0.0.1 while the block runs; whoever says to be `USER` is believed.

    Attributes:
        port: where.
    """

    port: int

    def __enter__(self) -> Self:
        """Make a database and serve it."""
        # where other users can go, unlike a test's own directories
        self._place = tempfile.mkdtemp(prefix="pg-", dir="/tmp")
        self._as: list[str] = []
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self._place, nobody.pw_uid, nobody.pw_gid)
            self._as = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
        else:
            try:
                pwd.getpwuid(os.getuid())
            except KeyError:  # it asks who its user is
                self._as = ["unshare", "--map-user=65534", "--map-group=65534"]
        self._data = f"{self._place}/data"
        made = self._run("initdb", "-D", self._data, "-U", USER, "--auth=trust", "--no-sync", "--locale=C")
        if made.returncode:
            shutil.rmtree(self._place, ignore_errors=True)
            pytest.skip(f"initdb makes no database here: {made.stderr.decode(errors='replace')[-300:]}")
        for _ in range(_ATTEMPTS):
            if self._serve():
                return self
        raise AssertionError(self._said())

    def __exit__(self, *_: object) -> None:
        """End it, and leave nothing."""
        with contextlib.suppress(ProcessLookupError):
            self._server.terminate()
        self._server.wait(_SECONDS)
        shutil.rmtree(self._place, ignore_errors=True)

    def _run(self, program: str, *words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*self._as, os.path.join(programs(), program), *words], check=False, capture_output=True, cwd="/"
        )

    def _serve(self) -> bool:
        """Whether it serves, at a port that was free a moment ago."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        settings = ("fsync=off", "unix_socket_directories=", "listen_addresses=127.0.0.1")
        with open(f"{self._place}/log", "wb") as log:
            self._server = subprocess.Popen(
                [
                    *(*self._as, os.path.join(programs(), "postgres"), "-D", self._data, "-p", str(self.port)),
                    *(word for setting in settings for word in ("-c", setting)),
                ],
                stdout=log,
                stderr=log,
                cwd="/",
            )
        end = time.monotonic() + _SECONDS
        while self._server.poll() is None and time.monotonic() < end:
            ready = self._run("pg_isready", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER)
            if ready.returncode == 0:
                return True
            time.sleep(0.05)
        self._server.kill()
        self._server.wait()
        return False

    def _said(self) -> str:
        with open(f"{self._place}/log", encoding="utf-8", errors="replace") as log:
            return log.read()
