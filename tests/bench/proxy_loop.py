"""What a task's proxy costs on its event loop, beside uvloop and beside the least that asyncio's streams cost.

    python tests/bench/proxy_loop.py [--few] [rounds]

Each way serves the same client in a process of its own, by turns in one run. Told is what that process used of a
processor, which another program's load does not change: until the first connection is answered, for each further
connection, and for each gigabyte; and the seconds a client waits for its first answer.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

_BYTES = 1 << 30
_CONNECTIONS = 2000
_BLOCK = bytes(1 << 18)
_PROXY, _UVLOOP, _STREAMS = "proxy", "uvloop", "streams"
_PROGRAM = """
import sys
sys.path[:] = {path!r}
from tests.bench.proxy_loop import serve
serve({way!r}, {listener}, {port})
"""


class Cost(NamedTuple):
    """One measurement; seconds of the proxy's processor time but for `wait`, which is the client's."""

    start: float
    wait: float
    connection: float
    gigabyte: float


def ways() -> list[str]:
    """What is compared here, the proxy as it is first."""
    found = [_PROXY, _STREAMS]
    return [*found, _UVLOOP] if importlib.util.find_spec("uvloop") else found


def serve(way: str, descriptor: int, port: int) -> None:
    """In the proxy's process: serve the inherited listener until killed."""
    listener = socket.socket(fileno=descriptor)
    if way == _STREAMS:
        _serve_streams(listener)
    else:
        _serve_proxy(way, listener, port)


def _serve_proxy(way: str, listener: socket.socket, port: int) -> None:
    # what a task's proxy has loaded before it serves
    import sandbox.linux.proxy.proxy_process  # noqa: F401
    from sandbox.proxy.io.idle_loop import IdleLoop
    from sandbox.proxy.policy.policy import Policy
    from sandbox.proxy.proxy import Proxy

    # uvloop is no dependency of this project: it is compared where it happens to be installed
    loop: Any = IdleLoop() if way == _PROXY else importlib.import_module("uvloop").new_event_loop()
    proxy = Proxy(
        loop,
        Policy(allow=(f"127.0.0.1:{port}",)),
        listen=lambda _places: [],
        report=lambda _asked, _reason: None,
        failed=_fail,
        places=(listener.getsockname()[1], 0),
    )
    proxy.take([listener])
    loop.run_forever()


def _serve_streams(listener: socket.socket) -> None:
    """A CONNECT proxy as asyncio's streams have one write it, which judges nothing."""
    import asyncio

    async def one_way(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 18):
            target.write(data)
            await target.drain()
        target.write_eof()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        host, _, port = head.split(b" ", 2)[1].decode().rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(one_way(reader, back), one_way(there, writer), return_exceptions=True)
        for one in (back, writer):
            one.close()

    async def main() -> None:
        server = await asyncio.start_server(relay, sock=listener, limit=1 << 18)
        await server.serve_forever()

    asyncio.run(main())


def _fail(error: Exception) -> None:
    raise SystemExit(str(error)) from error


def _server() -> tuple[int, int]:
    """A server in a process of its own that sends as many bytes as it is asked for: its number, its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    port: int = listener.getsockname()[1]
    pid = os.fork()
    if pid == 0:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_send, args=(client,), daemon=True).start()
    listener.close()
    return pid, port


def _send(client: socket.socket) -> None:
    with client:
        left = int(client.recv(64) or 0)
        while left:
            left -= client.send(_BLOCK[: min(left, len(_BLOCK))])


def _connected(proxy: int, port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", proxy))
    client.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: x\r\n\r\n" % port)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = client.recv(4096)
        if not data:
            raise RuntimeError(f"the proxy hung up after {head!r}")
        head += data
    if b" 200 " not in head:
        raise RuntimeError(f"the proxy said {head!r}")
    return client


def _take(client: socket.socket, size: int) -> None:
    with client:
        client.sendall(b"%d\n" % size)
        buffer = bytearray(1 << 18)
        while size:
            got = client.recv_into(buffer)
            if not got:
                raise RuntimeError(f"{size} bytes are missing")
            size -= got


def _used(pid: int) -> float:
    """Seconds of processor time of a process with one thread, so far."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


def _measured(way: str, server: int, size: int, count: int) -> Cost:
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        port: int = listener.getsockname()[1]
        path = [str(REPOSITORY), *filter(None, sys.path)]
        program = _PROGRAM.format(path=path, way=way, listener=listener.fileno(), port=server)
        begin = time.perf_counter()
        proxy = subprocess.Popen((sys.executable, "-I", "-S", "-c", program), pass_fds=(listener.fileno(),))
    try:
        _take(_connected(port, server), 1)
        wait, start = time.perf_counter() - begin, _used(proxy.pid)
        for _ in range(count):
            _take(_connected(port, server), 1)
        served = _used(proxy.pid)
        _take(_connected(port, server), size)
        moved = _used(proxy.pid)
    finally:
        proxy.send_signal(signal.SIGKILL)
        proxy.wait()
    return Cost(start, wait, (served - start) / count, (moved - served) / size * 1e9)


def main(rounds: int, *, few: bool = False) -> None:
    """Print the medians of each way, and the ratio of each to the proxy as it is."""
    size, count = (1_000_000, 5) if few else (_BYTES, _CONNECTIONS)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    pid, server = _server()
    taken: dict[str, list[Cost]] = {way: [] for way in ways()}
    try:
        for _ in range(rounds):
            for way, costs in taken.items():
                costs.append(_measured(way, server, size, count))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    medians = {way: Cost(*map(statistics.median, zip(*costs, strict=True))) for way, costs in taken.items()}
    own = medians[_PROXY]
    for way, cost in medians.items():
        print(
            f"{way:<8} start {cost.start * 1e3:6.1f} ms ({cost.start / own.start:5.2f}x), "
            f"first answer after {cost.wait * 1e3:6.1f} ms ({cost.wait / own.wait:5.2f}x), "
            f"a connection {cost.connection * 1e6:6.0f} us ({cost.connection / own.connection:5.2f}x), "
            f"a gigabyte {cost.gigabyte * 1e3:6.0f} ms ({cost.gigabyte / own.gigabyte:5.2f}x)",
            flush=True,
        )


if __name__ == "__main__":
    from tests.bench.arguments import arguments

    counted, tiny = arguments(__doc__, "rounds", 7)
    main(1 if tiny else counted, few=tiny)
