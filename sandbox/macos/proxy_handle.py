"""EFFECT: the run's side of a task's proxy on macOS: it listens, starts the proxy, and hears its reports.

There is one loopback for everybody. So a task's proxy has ports of its own, which the system picks, and asks for a
password, which is in the task's variables alone. The proxy runs from the first time something comes in.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import secrets
import select
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from sandbox.planning.macos import proxy_environment_variables
from sandbox.proxy.io import library_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sandbox.proxy.policy.policy import Policy

_BOOT = "import sys; sys.path[:] = {path!r}; from sandbox.macos.proxy_process import main; main()"
_HOST = "127.0.0.1"
_BACKLOG = 1024
_CHUNK = 65536
_SETTLE_SECONDS = 30.0


class MacProxyHandle:
    """The proxy of one task.

    Args:
        policy: the hosts that may be reached.

    Attributes:
        ports: on which it listens, for HTTP and for SOCKS.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._password = secrets.token_hex(16)
        self._listeners = [socket.create_server((_HOST, 0), backlog=_BACKLOG) for _ in range(2)]
        self._bell, self._ring = os.pipe()
        self._thread: threading.Thread | None = None
        self._buffer = b""
        self._settled = False
        self._missing = ""
        http, socks = (int(listener.getsockname()[1]) for listener in self._listeners)
        self.ports = (http, socks)

    def variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """The task's variables, with this proxy in them."""
        return proxy_environment_variables.proxy_variables(given, ports=self.ports, password=self._password)

    def report(self, hear: Callable[[str, str], object]) -> None:
        """Have `hear` called from now on, in another thread, with each refused `host:port` and the reason."""
        self._thread = threading.Thread(target=self._serve, args=(hear,), name="vx-proxy", daemon=True)
        self._thread.start()

    def settle(self) -> str:
        """Hear of every connection that came in, at the end; why not all of it was told, empty where it was."""
        if self._ring >= 0:
            os.close(self._ring)
            self._ring = -1
        if self._thread is not None:
            self._thread.join()
        return self._missing

    def close(self) -> None:
        """Let go of everything, the proxy's process too."""
        self.settle()
        self._let_go()
        if self._bell >= 0:
            os.close(self._bell)
            self._bell = -1

    def _let_go(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    def _serve(self, hear: Callable[[str, str], object]) -> None:
        if not self._somebody_came():
            return
        try:
            process = self._start()
        except OSError as error:
            self._missed(f"the network's proxy could not be started ({error.strerror or error})")
            self._let_go()
            return
        # The proxy goes by itself from now on.
        self._let_go()
        try:
            self._hear_all(process, hear)
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # what is left in it, it does not take any more
                        pipe.close()
        if not self._settled:
            self._missed("the network's proxy ended before the task did")

    def _somebody_came(self) -> bool:
        """Wait for somebody, or for the end, at which somebody may have come all the same."""
        poll = select.poll()
        for fd in (self._bell, *(listener.fileno() for listener in self._listeners)):
            poll.register(fd, select.POLLIN)
        return any(fd != self._bell for fd, _ in poll.poll())

    def _start(self) -> subprocess.Popen[bytes]:
        descriptors = [listener.fileno() for listener in self._listeners]
        own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        path = [place for place in (*sys.path, own, library_path.directory()) if os.path.isabs(place)]
        debug = {"VXCONF_DEBUG": "1"} if os.environ.get("VXCONF_DEBUG") else {}
        process = subprocess.Popen(
            (sys.executable, "-I", "-S", "-c", _BOOT.format(path=path), *map(str, descriptors)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if debug else subprocess.DEVNULL,
            pass_fds=descriptors,
            cwd="/",
            env={"LC_ALL": "C.UTF-8", **debug},
            # Signals of a terminal are for the task; the proxy goes on until it has been heard.
            start_new_session=True,
        )
        assert process.stdin is not None  # noqa: S101  it was asked for
        with contextlib.suppress(BrokenPipeError):  # that it ended is heard below
            pickle.dump((self._policy, self._password), process.stdin)
            process.stdin.flush()
        return process

    def _hear_all(self, process: subprocess.Popen[bytes], hear: Callable[[str, str], object]) -> None:
        assert process.stdin is not None  # noqa: S101  they were asked for
        assert process.stdout is not None  # noqa: S101  the same
        told, deadline = process.stdout.fileno(), float("inf")
        poll = select.poll()
        poll.register(told, select.POLLIN)
        poll.register(self._bell, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            found = {fd for fd, _ in poll.poll(None if left == float("inf") else max(0.0, left) * 1000)}
            if not found:
                self._missed("what the network's proxy had to report was not told in time")
                return
            if self._bell in found:
                # The end of the proxy's input is the end of the task.
                poll.unregister(self._bell)
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
                deadline = time.monotonic() + _SETTLE_SECONDS
            if told in found:
                data = os.read(told, _CHUNK)
                if not data:
                    return
                self._take(data, hear)

    def _take(self, data: bytes, hear: Callable[[str, str], object]) -> None:
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            kind, *rest = json.loads(line)
            if kind == "refused":
                hear(*rest)
            elif kind == "settled":
                self._settled = True
            else:
                self._missed(rest[0])

    def _missed(self, why: str) -> None:
        self._missing = self._missing or why


@contextlib.contextmanager
def opened(policy: Policy) -> Iterator[MacProxyHandle]:
    """The proxy of one task, closed at the end."""
    proxy = MacProxyHandle(policy)
    try:
        yield proxy
    finally:
        proxy.close()
