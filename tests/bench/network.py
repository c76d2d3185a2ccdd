"""What a task's proxy costs: throughput and new connections, beside a direct connection and a socat relay.

    python tests/bench/network.py [--few] [rounds]

Every figure is taken by the same client from the same server; only the way between them differs.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import sandbox

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.bench.arguments import arguments

_BYTES = 1 << 30
_CONNECTIONS = 1500
_BLOCK = bytes(1 << 18)

_CLIENT = """
import json, socket, sys, time
host, port, way, size, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
def connect():
    if way == "proxy":
        s = socket.create_connection(("127.0.0.1", 3128))
        s.sendall(b"CONNECT %s:%d HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" % (host.encode(), port))
        head = b""
        # a server speaks when it was spoken to: there is nothing behind it yet
        while not head.endswith(b"\\r\\n\\r\\n"):
            head += s.recv(4096)
        assert b" 200 " in head, head
        return s
    return socket.create_connection((host, port))
connect().close()
s = connect()
s.sendall(b"%d\\n" % size)
buffer, left = bytearray(1 << 18), size
begin = time.perf_counter()
while left:
    got = s.recv_into(buffer)
    assert got
    left -= got
rate = size / (time.perf_counter() - begin)
begin = time.perf_counter()
for _ in range(count):
    s = connect()
    s.sendall(b"1\\n")
    assert s.recv(1)
    s.close()
print(json.dumps([rate, count / (time.perf_counter() - begin)]))
"""


def _serve(listener: socket.socket) -> None:
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_answer, args=(client,), daemon=True).start()


def _answer(client: socket.socket) -> None:
    with client:
        left = int(client.recv(64) or 0)
        while left:
            left -= client.send(_BLOCK[: min(left, len(_BLOCK))])


def _server() -> tuple[int, int]:
    """A server in a process of its own: its number, its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    port: int = listener.getsockname()[1]
    pid = os.fork()
    if pid == 0:
        _serve(listener)
    listener.close()
    return pid, port


def _measured(output: bytes) -> tuple[float, float]:
    rate, connections = json.loads(output)
    return rate / 1e6, connections


class _Ways:
    """The same client on three ways to the same server."""

    def __init__(self, session: sandbox.Session, root: str, port: int, *, few: bool) -> None:
        self._amount = ("1000000", "5") if few else (str(_BYTES), str(_CONNECTIONS))
        self._session = session
        self._root = root
        self._port = port

    def _arguments(self, port: int, way: str) -> list[str]:
        return ["127.0.0.1", str(port), way, *self._amount]

    def direct(self) -> tuple[float, float]:
        done = subprocess.run(
            (sys.executable, "-c", _CLIENT, *self._arguments(self._port, "direct")), check=True, capture_output=True
        )
        return _measured(done.stdout)

    def socat(self) -> tuple[float, float]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        relay = subprocess.Popen(
            ("socat", f"TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork,backlog=1024", f"TCP:127.0.0.1:{self._port}")
        )
        try:
            _wait_for(port)
            done = subprocess.run(
                (sys.executable, "-c", _CLIENT, *self._arguments(port, "direct")), check=True, capture_output=True
            )
        finally:
            relay.kill()
            relay.wait()
        return _measured(done.stdout)

    def proxy(self) -> tuple[float, float]:
        config = sandbox.ResolvedSandboxConfig(
            platform="linux", workspace=self._root, project=self._root, network=(f"127.0.0.1:{self._port}",)
        )
        request = self._session.request(config, workspace_root=self._root)
        client = [getattr(sys, "_base_executable", sys.executable), "-I", "-S", "-c", _CLIENT]
        result = self._session.run(
            request, command=client[0], args=[*client[1:], *self._arguments(self._port, "proxy")]
        )
        if result.exit_code:
            raise RuntimeError(f"{result.stderr.decode()} {result.refusals}")
        return _measured(result.stdout)


def _wait_for(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.01)
        else:
            return


def main(rounds: int, *, few: bool = False) -> None:
    """Print the medians, and each way beside the direct one."""
    server, port = _server()
    root = tempfile.mkdtemp(prefix="proxy-bench-")
    try:
        with sandbox.Session() as session:
            ways = _Ways(session, root, port, few=few)
            measures = {"direct": ways.direct, "proxy": ways.proxy}
            if shutil.which("socat"):
                measures["socat"] = ways.socat
            taken: dict[str, list[tuple[float, float]]] = {name: [] for name in measures}
            for _ in range(rounds):
                for name, measure in measures.items():
                    taken[name].append(measure())
            for name, rows in taken.items():
                rate, connections = (statistics.median(column) for column in zip(*rows, strict=True))
                print(f"{name:<8} {rate:7.0f} MB/s  {connections:7.0f} connections/s", flush=True)
    finally:
        os.kill(server, 9)
        shutil.rmtree(root)


if __name__ == "__main__":
    count, tiny = arguments(__doc__, "rounds", 5)
    main(1 if tiny else count, few=tiny)
