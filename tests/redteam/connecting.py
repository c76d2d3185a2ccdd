"""Runs programs whose task lists hosts, with words for what they dial."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from sandbox import ResolvedSandboxConfig
from tests.redteam.conftest import PYTHON, Box

if TYPE_CHECKING:
    from sandbox import RunResult


def dial(box: Box, program: str, *network: str, **options: Any) -> RunResult:
    """Run a Python program whose task lists these hosts; `ask`, `connect` and `go_on` are there for it."""
    config = ResolvedSandboxConfig(
        platform="linux",
        workspace=str(box.root),
        project=str(box.project),
        allow_read=(f"{box.project}/lib/",),
        allow_write=(f"{box.project}/out/",),
        network=network or None,
    )
    script = box.project / "lib" / f"dials{threading.get_ident()}.py"
    script.write_text(HELP + program, encoding="utf-8")
    session = options.pop("session", box.session)
    request = session.request(config, workspace_root=str(box.root))
    result: RunResult = session.run(
        request, command=f"{PYTHON} lib/{script.name}", timeout=90, **{"observer": box.observer, **options}
    )
    return result


HELP = '''
import os, socket, sys, threading, time

def ask(name, kind=1, wait=True):
    """The code of a lookup's answer."""
    labels = b"".join(bytes((len(l),)) + l.encode() for l in name.split("."))
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(30)
    head, tail = b"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0", b"\\0" + kind.to_bytes(2, "big") + b"\\0\\1"
    s.sendto(head + labels + tail, ("127.0.0.1", 53))
    return s.recv(4096)[3] & 15 if wait else s

def connect(target, extra="", wait=True):
    """The status of a CONNECT."""
    s = socket.create_connection(("127.0.0.1", 3128), 30)
    s.sendall(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n{extra}\\r\\n".encode())
    return int(s.recv(4096).split(b" ")[1]) if wait else s

def go_on():
    """Say so, and wait to be told."""
    print("ready", flush=True)
    while not os.path.exists("out/go"):
        time.sleep(0.02)

'''
