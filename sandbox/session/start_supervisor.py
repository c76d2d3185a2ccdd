"""EFFECT: the start of a session's supervisor: an interpreter of its own that imports nothing but the engine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from sandbox.contract.errors import NotStarted
from sandbox.proxy.io import library_path

#: The most seconds a supervisor takes to start, and to end.
START_SECONDS = 30.0

_BOOT = (
    "import sys; sys.path.insert(0, {path!r}); sys.path.append({library!r});"
    " from sandbox.linux.warden.supervisor import main; main({fd})"
)


def start_supervisor() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a supervisor and wait until it is ready.

    Returns:
        The process, and the channel on which it is sent requests.

    Raises:
        NotStarted: packages are missing, or it did not start.
        OSError: no process can be started.
    """
    library = library_path.directory()
    if not library:
        raise NotStarted(
            "the packages h11 and dnspython are missing, which every task's proxy needs",
            hint="pip install h11 dnspython",
        )
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with theirs:
            supervisor = _spawn(library, theirs.fileno())
    except OSError:
        ours.close()
        raise
    ours.settimeout(START_SECONDS)
    try:
        ready = ours.recv(16)
    except OSError:
        ready = b""
    if ready != b"ready":
        ours.close()
        supervisor.kill()
        supervisor.wait()
        raise NotStarted("the session's supervisor did not start", hint="set VXCONF_DEBUG=1 for its own words")
    ours.settimeout(None)
    return supervisor, ours


def _spawn(library: str, channel: int) -> subprocess.Popen[bytes]:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    debug = bool(os.environ.get("VXCONF_DEBUG"))
    return subprocess.Popen(
        (sys.executable, "-I", "-S", "-c", _BOOT.format(path=root, library=library, fd=channel)),
        pass_fds=(channel,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=None if debug else subprocess.DEVNULL,
        # Signals of a terminal are for the executor, which decides which of them the command gets.
        start_new_session=True,
        env={"LC_ALL": "C.UTF-8", **({"VXCONF_DEBUG": "1"} if debug else {})},
    )
