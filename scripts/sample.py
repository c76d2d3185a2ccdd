"""Checks, explains and runs the sample workspace; `make run` ends here.

Two tasks pass, two are refused with the line that would allow it. Exits 0 when exactly that happened.
Works on a copy, so that the committed workspace stays as it is.
"""

from __future__ import annotations

import http.server
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

#: The port the sample's files name.
_PORT = "48173"

_SAMPLE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures", "workspaces", "sample")


class _UnexpectedError(Exception):
    pass


def _vxconf(workspace: str, *arguments: str, exits: int, capture: bool = False) -> str:
    print(f"\n$ vxconf {shlex.join(arguments)}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "vxconf", *arguments],
        cwd=workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if capture else None,
        # reports go to stderr; here they are part of what is shown, in the order it happened
        stderr=subprocess.PIPE if capture else sys.stdout.fileno(),
        env={**os.environ, "HOME": os.path.join(os.path.dirname(workspace), "home")},
        text=True,
        check=False,
    )
    if done.returncode != exits:
        wrong = f"vxconf {shlex.join(arguments)} exited {done.returncode}, expected {exits}"
        raise _UnexpectedError(f"{wrong}\n{done.stderr or ''}".rstrip())
    return done.stdout or ""


class _Rates(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"EUR 1.00\nJPY 163.20\n")

    def log_message(self, *_: object) -> None:
        pass


def _over_the_network(workspace: str) -> None:
    print("\nA task that asks a server of this machine on the port it lists:")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Rates) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # any port is as good as the one in the file, which somebody may hold
        file = os.path.join(workspace, "apps", "shop", "vx.toml")
        with open(file, encoding="utf-8") as lines:
            text = lines.read()
        with open(file, "w", encoding="utf-8") as lines:
            lines.write(text.replace(_PORT, str(server.server_port)))
        _vxconf(workspace, "run", "apps/shop#rates", exits=0)
        server.shutdown()

    print("\nA task that asks a host no line lists and hides that it was refused:")
    _vxconf(workspace, "run", "apps/shop#tell", exits=1)


def _demonstrate(workspace: str) -> None:
    # says what to do about it where no sandbox can be built
    _vxconf(workspace, "doctor", exits=0)
    _vxconf(workspace, "check", exits=0)
    _vxconf(workspace, "explain", "apps/shop#build", "--platform", "linux", exits=0)

    print("\nA task that touches what it declared:")
    _vxconf(workspace, "run", "apps/shop#build", exits=0)

    print("\nA task that reads an undeclared file and hides that it could not:")
    _vxconf(workspace, "run", "apps/shop#peek", exits=1)

    print("\nThe same as data:")
    result = json.loads(_vxconf(workspace, "run", "apps/shop#peek", "--format", "json", exits=1, capture=True))
    allow = (result["fix"] or {"allow": {}})["allow"]
    print(f"exitCode {result['exitCode']}, commandExitCode {result['commandExitCode']}, fix.allow {json.dumps(allow)}")
    if result["commandExitCode"] != 0 or allow.get("read") != ["notes.md"]:
        raise _UnexpectedError(f"the run of peek was reported as {result}")

    _over_the_network(workspace)

    with open(os.path.join(workspace, "apps", "shop", "dist", "prices.txt"), encoding="utf-8") as file:
        if file.readline() != "Prices of today\n":
            raise _UnexpectedError("build wrote something else into dist/prices.txt")


def main() -> int:
    """The demonstration's exit status."""
    scratch = tempfile.mkdtemp(prefix="vxconf-sample-")
    try:
        workspace = os.path.join(scratch, "sample")
        # what somebody's own run made there would change what is printed
        shutil.copytree(_SAMPLE, workspace, symlinks=True, ignore=shutil.ignore_patterns("dist"))
        # whose home it is would show in what explain prints
        os.mkdir(os.path.join(scratch, "home"))
        _demonstrate(workspace)
    except _UnexpectedError as unexpected:
        print(f"\nnot as expected: {unexpected}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(scratch)
    print("\nAs expected: build and rates passed, peek and tell were refused with the line that would allow it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
