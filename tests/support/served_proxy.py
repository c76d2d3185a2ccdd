"""A proxy in a thread of this process, and servers it leads to, for tests that need no sandbox."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any, Self

from sandbox.proxy.io.idle_loop import IdleLoop
from sandbox.proxy.io.interfaces import own_addresses
from sandbox.proxy.policy.policy import Policy, UpstreamProxies
from sandbox.proxy.policy.service_addresses import DNS_PORT, HTTP_PORT, LOOPBACK, SOCKS_PORT
from sandbox.proxy.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sandbox.proxy.io.dialler import Address

SECONDS = 30.0


class _Disguised(socket.socket):
    """A listener that says it has the address it would have in a task's network."""

    pretended: tuple[str, int]

    def getsockname(self) -> Any:
        return self.pretended


def _disguised(address: str, port: int, kind: int = socket.SOCK_STREAM) -> tuple[_Disguised, int]:
    listener = _Disguised(socket.AF_INET, kind)
    listener.bind((LOOPBACK, 0))
    real: int = socket.socket.getsockname(listener)[1]
    if kind == socket.SOCK_STREAM:
        listener.listen(1024)
    listener.pretended = (address, port)
    return listener, real


class ServedProxy:
    """One proxy, while the block runs.

    Attributes:
        reports: what was refused, in order.
        stand_ins: the real port behind each address and port the proxy opened for a name.
        failures: errors of the proxy's own.
    """

    def __init__(
        self,
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        hosts: dict[str, list[str]] | None = None,
        upstream: UpstreamProxies | None = None,
        resolve: Callable[[str, int], list[Address]] | None = None,
        *,
        own: Callable[[], frozenset[str]] = own_addresses,
    ) -> None:
        self.hosts = hosts or {}
        self.asked: list[str] = []
        self.reports: list[tuple[str, str]] = []
        self.failures: list[Exception] = []
        self.stand_ins: dict[tuple[str, int], int] = {}
        self.loop = IdleLoop()
        self.proxy = Proxy(
            self.loop,
            Policy(allow=tuple(allow), deny=tuple(deny), upstream=upstream or UpstreamProxies()),
            listen=self._listen,
            report=lambda asked, reason: self.reports.append((asked, reason)),
            failed=self.failures.append,
            resolve=resolve or self._resolve,
            own=own,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        listeners = {}
        for port in (HTTP_PORT, SOCKS_PORT, DNS_PORT):
            listeners[port] = _disguised(LOOPBACK, port)
        datagrams, self.lookups = _disguised(LOOPBACK, DNS_PORT, socket.SOCK_DGRAM)
        self.http, self.socks, self.streamed_lookups = (real for _, real in listeners.values())
        self.proxy.take([*(listener for listener, _ in listeners.values()), datagrams])
        self._stands.set()
        self.loop.run_forever()
        self.proxy.close()
        self.loop.close()

    def _listen(self, places: list[tuple[str, int]]) -> list[socket.socket]:
        opened: list[socket.socket] = []
        for address, port in places:
            if ":" not in address:
                listener, real = _disguised(address, port)
                self.stand_ins[address, port] = real
                opened.append(listener)
        return opened

    def _resolve(self, host: str, port: int) -> list[Address]:
        self.asked.append(host)
        if host not in self.hosts:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (int(socket.AF_INET6 if ":" in address else socket.AF_INET), (address, port))
            for address in self.hosts[host]
        ]

    def __enter__(self) -> Self:
        self._stands = threading.Event()
        self._thread.start()
        assert self._stands.wait(SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        assert self.failures == []

    def proxied(self) -> socket.socket:
        """A connection to the HTTP port."""
        return socket.create_connection((LOOPBACK, self.http), SECONDS)

    def connect(self, target: str) -> tuple[int, socket.socket]:
        """The status of a CONNECT, and its connection."""
        client = self.proxied()
        client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        return int(head_of(client).split(b" ", 2)[1]), client

    def ask(self, message: bytes) -> bytes:
        """The answer to a DNS message."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(SECONDS)
            client.sendto(message, (LOOPBACK, self.lookups))
            return client.recv(4096)


def query(name: str, kind: int = 1) -> bytes:
    """A question for a name's addresses, those of IPv4 unless another kind is asked for."""
    return b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + name_data(name) + kind.to_bytes(2, "big") + b"\0\1"


def name_data(name: str) -> bytes:
    """A name as messages hold it."""
    return b"".join(bytes((len(label),)) + label.encode("ascii") for label in name.split(".")) + b"\0"


def head_of(client: socket.socket) -> bytes:
    """Everything up to the blank line."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = client.recv(1)
        if not byte:
            return head
        head += byte
    return head


def exactly(client: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer at the end."""
    found = b""
    while len(found) < size and (data := client.recv(size - len(found))):
        found += data
    return found


def all_of(client: socket.socket) -> bytes:
    """Everything up to the end."""
    found = b""
    try:
        while data := client.recv(1 << 16):
            found += data
    except ConnectionResetError:
        found += b"<reset>"
    return found


class Server:
    """A TCP server that answers each connection with `answer`, in a thread of its own."""

    def __init__(self, answer: Callable[[socket.socket], object], address: str = LOOPBACK) -> None:
        self._answer = answer
        self._listener = socket.create_server(
            (address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET, backlog=1024
        )
        self.port: int = self._listener.getsockname()[1]
        self.clients = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.clients += 1
            client.settimeout(SECONDS)
            threading.Thread(target=self._one, args=(client,), daemon=True).start()

    def _one(self, client: socket.socket) -> None:
        with client:
            try:
                self._answer(client)
            except OSError:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # wakes who waits in accept, which a mere close does not
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def echo(client: socket.socket) -> None:
    """Send back what comes, then the end."""
    while data := client.recv(1 << 16):
        client.sendall(data)
    client.shutdown(socket.SHUT_WR)


def page(client: socket.socket) -> None:
    """One HTTP response after the other, each showing the head and the body of its request."""
    while head := head_of(client):
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        body = b""
        while len(body) < length:
            body += client.recv(length - len(body))
        told = head + body
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(told), told))
