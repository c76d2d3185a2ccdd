"""EFFECT: the proxy of one task: it accepts connections and lookups, judges them, answers and reports.

A client is known by the listening socket, which only this task can reach; nothing that a client says about itself
counts. Where others can reach a listener too, the proxy asks for a password.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import os
import resource
import socket
import time
from typing import TYPE_CHECKING

from sandbox.proxy.io.byte_relay import ByteRelay
from sandbox.proxy.io.connection import Connection
from sandbox.proxy.io.dialler import Dialler, Unreachable, host_addresses
from sandbox.proxy.io.interfaces import own_addresses
from sandbox.proxy.io.loopback_relay import LoopbackPorts
from sandbox.proxy.policy.host_rules import HostRules
from sandbox.proxy.policy.policy import HostRefused
from sandbox.proxy.policy.service_addresses import DNS_PORT, HTTP_PORT, LOOPBACK, LOOPBACKS, SOCKS_PORT
from sandbox.proxy.policy.stand_in_addresses import StandInAddresses
from sandbox.proxy.protocol import connect_head, socks5

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable

    from sandbox.proxy.io.dialler import Address
    from sandbox.proxy.io.idle_loop import IdleLoop
    from sandbox.proxy.policy.dns_answers import DnsAnswers
    from sandbox.proxy.policy.policy import Policy

    Serve = Callable[[Connection], Awaitable[None]]

#: The most connections of one task that are served at once; the next ones wait in the kernel.
CONNECTIONS_LIMIT = 4096
#: The most ports of stand-ins that are opened because a task connects to them, beside the usual ones.
PLACES_LIMIT = 512
#: The most distinct refusals of one task that are reported; beyond them the report has a hole.
REPORTS_LIMIT = 100_000

_DATAGRAM = 4096
_HANDSHAKE_SECONDS = 60.0
_HANDSHAKE_CHUNK = 4096
# the descriptors of a connection: its own, that of its server, one of a second attempt at the server
_DESCRIPTORS_EACH = 3
_DESCRIPTORS_KEPT = 256
_SETTLE_TURNS = 20_000
_FULL_SECONDS = 0.1
# connections accepted in one go, before other coroutines have their turn
_FAIR = 16


class Proxy:
    """The server of a task's listeners.

    Args:
        policy: the hosts, ports and sockets that the task may reach.
        listen: opens listeners in the task's network at those of some addresses and ports that can be opened.
        report: called with a refused target and the reason, before the task hears of it; called with two empty strings
            once there are more than can be reported.
        failed: called with an error that is this program's own.
        named: called with a name and its stand-ins before the task learns of them.
        resolve: finds the addresses of a name; called in a thread.
        inside: makes a stream socket of a family in the task's network.
        places: the loopback ports for HTTP and for SOCKS.
        password: asked of clients at these two ports; empty where only the task reaches them.
        own: finds every address of this machine.
    """

    def __init__(
        self,
        loop: IdleLoop,
        policy: Policy,
        *,
        listen: Callable[[list[tuple[str, int]]], list[socket.socket]],
        report: Callable[[str, str], None],
        failed: Callable[[Exception], None],
        named: Callable[[str, tuple[str, ...]], None] = lambda _host, _addresses: None,
        resolve: Callable[[str, int], list[Address]] = host_addresses,
        inside: Callable[[int], socket.socket] = lambda family: socket.socket(family, socket.SOCK_STREAM),
        places: tuple[int, int] = (HTTP_PORT, SOCKS_PORT),
        password: str = "",
        own: Callable[[], frozenset[str]] = own_addresses,
    ) -> None:
        self._loop = loop
        self._policy = policy
        self._rules = HostRules(policy)
        self._names = StandInAddresses()
        self._listen = listen
        self._tell = report
        self._named = named
        self._failed = failed
        self._told: set[tuple[str, str]] = set()
        self._listeners: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._heard: set[tuple[str, int]] = set()
        self._asked_places = 0
        self._relay = ByteRelay()
        self._ports = LoopbackPorts(self._relay, inside)
        self._dialler = Dialler(policy, self._rules, self._names, report=self._report, resolve=resolve, own=own)
        self._places = places
        self._password = password
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._room = max(1, min(CONNECTIONS_LIMIT, (descriptors - _DESCRIPTORS_KEPT) // _DESCRIPTORS_EACH))

    @functools.cached_property
    def _lookups(self) -> DnsAnswers:
        from sandbox.proxy.policy.dns_answers import DnsAnswers

        return DnsAnswers(
            self._rules, self._names, listen=self._stand_in, own_name=os.uname().nodename, report=self._report
        )

    def take(self, listeners: Iterable[socket.socket]) -> None:
        """Serve more listeners, each by the protocol of its port."""
        for listener in listeners:
            listener.setblocking(False)
            self._listeners.append(listener)
            if listener.type == socket.SOCK_DGRAM:
                self._start(self._datagrams(listener))
            else:
                address, port = listener.getsockname()[:2]
                self._heard.add((address, port))
                with contextlib.suppress(OSError):  # accepted sockets inherit the option
                    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._start(self._accept(listener, self._served_as(listener)))

    def _start(self, coroutine: Coroutine[None, None, None]) -> None:
        """Run a coroutine beside the others, and hold its task: the loop holds none (asyncio.create_task)."""
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def listen_at(self, address: str, port: int) -> bool:
        """Listen at a port of a stand-in, if that is not done yet; whether the proxy listens there."""
        if (address, port) not in self._heard and self._asked_places < PLACES_LIMIT:
            self._asked_places += 1
            self.take(self._listen([(address, port)]))
        return (address, port) in self._heard

    def settle(self) -> bool:
        """Judge what still waits once everything inside is gone; false where there is no end to it."""
        self._dialler.closing = True
        full, self._room = self._room <= 0, 1 << 30
        if full:
            # coroutines that wait for room look again after this time
            time.sleep(_FULL_SECONDS)
        return self._loop.run_until_idle(_SETTLE_TURNS)

    def close(self) -> None:
        """Serve nothing any more, once the loop has stopped."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            self._loop.run_until_complete(asyncio.wait(self._tasks))
        self._dialler.close()
        for listener in self._listeners:
            listener.close()

    def _served_as(self, listener: socket.socket) -> Serve:
        host, port = listener.getsockname()[:2]
        http, by_socks = self._places
        if host == LOOPBACK and port in (http, by_socks, DNS_PORT):
            return {http: self._http, by_socks: self._socks, DNS_PORT: self._stream_of_queries}[port]
        if host in LOOPBACKS and port in self._policy.published:
            return lambda connection: self._ports.inward(connection, port)
        if host in LOOPBACKS and port in self._policy.host_ports:
            return lambda connection: self._ports.outward(connection, port)
        return lambda connection: self._transparent(connection, host, port)

    async def _accept(self, listener: socket.socket, serve: Serve) -> None:
        for count in itertools.count(1):
            if self._room <= 0:
                await asyncio.sleep(_FULL_SECONDS)
                continue
            try:
                client, _ = await self._loop.sock_accept(listener)
            except OSError:  # the client is gone, or no descriptor is left
                await asyncio.sleep(_FULL_SECONDS)
            else:
                self._room -= 1
                self._start(self._serve(client, serve))
                if count % _FAIR == 0:
                    await asyncio.sleep(0)

    async def _serve(self, client: socket.socket, serve: Serve) -> None:
        connection = Connection(client)
        try:
            await serve(connection)
        except OSError:  # TimeoutError among them
            connection.close(reset=True)
        except Exception as error:  # noqa: BLE001  nobody awaits this task, and its report is lost
            connection.close(reset=True)
            self._failed(error.exceptions[0] if isinstance(error, ExceptionGroup) else error)
        finally:
            connection.close()
            self._room += 1

    async def _http(self, connection: Connection) -> None:
        early = connection.now(_HANDSHAKE_CHUNK)
        if early is None:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                early = await connection.recv(_HANDSHAKE_CHUNK)
        failed: HostRefused | Unreachable | None = None
        if not self._password and (asked := connect_head.read(early)) is not None:
            try:
                opened = await self._dialler.open(asked.host, asked.port)
            except (HostRefused, Unreachable) as error:
                failed = error
            else:
                with opened.connection:
                    await connection.send(asked.answer)
                    await self._relay.both(connection, opened.connection, early[asked.size :], opened.named)
                return
        # a task that speaks no HTTP does not wait for h11 to be imported
        from sandbox.proxy.io.http_port import HttpClient

        client = HttpClient(connection, self._dialler, self._relay, early, password=self._password)
        await (client.serve() if failed is None else client.tell(failed))

    async def _socks(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                target, early = await self._handshake(connection)
        except socks5.MalformedSocks as error:
            await connection.send(error.reply)
            await connection.part()
            return
        try:
            opened = await self._dialler.open(target.host, target.port)
        except HostRefused:
            await connection.send(socks5.answer(socks5.NOT_ALLOWED))
            await connection.part()
            return
        except Unreachable as error:
            await connection.send(socks5.answer(socks5.CONNECTION_REFUSED if error.refused else socks5.UNREACHABLE))
            await connection.part()
            return
        with opened.connection:
            await connection.send(socks5.answer(socks5.SUCCEEDED))
            await self._relay.both(connection, opened.connection, early, opened.named)

    async def _handshake(self, connection: Connection) -> tuple[socks5.SocksTarget, bytes]:
        handshake = socks5.Handshake(self._password)
        while True:
            data = await connection.recv(_HANDSHAKE_CHUNK)
            if not data:
                raise ConnectionAbortedError("it hung up")
            reply, target, early = handshake.feed(data)
            await connection.send(reply)
            if target is not None:
                return target, early

    async def _transparent(self, connection: Connection, host: str, port: int) -> None:
        try:
            opened = await self._dialler.open(host, port)
        except (HostRefused, Unreachable):
            connection.close(reset=True)
            return
        with opened.connection:
            await self._relay.both(connection, opened.connection, named=opened.named)

    async def _stream_of_queries(self, connection: Connection) -> None:
        buffer = b""
        while True:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                data = await connection.recv(_HANDSHAKE_CHUNK)
            if not data:
                return
            buffer += data
            while len(buffer) >= 2 and len(buffer) >= (end := 2 + int.from_bytes(buffer[:2], "big")):  # noqa: PLR2004
                answer = self._lookups.answer(buffer[2:end])
                buffer = buffer[end:]
                if answer is None:
                    return
                await connection.send(len(answer).to_bytes(2, "big") + answer)

    async def _datagrams(self, server: socket.socket) -> None:
        while True:
            try:
                message, client = await self._loop.sock_recvfrom(server, _DATAGRAM)
            except OSError:  # an answer before this could not be delivered
                continue
            try:
                answer = self._lookups.answer(message)
            except Exception as error:  # noqa: BLE001  one message must not end the lookups of others
                self._failed(error)
                continue
            if answer is not None:
                with contextlib.suppress(OSError):  # the client is gone
                    server.sendto(answer, client)
            await asyncio.sleep(0)

    def _stand_in(self, host: str, four: str, six: str) -> bool:
        wanted = [(address, port) for address in (four, six) for port in self._rules.ports(host)]
        opened = self._listen(wanted)
        self.take(opened)
        self._named(host, (four, six))
        return any(listener.family == socket.AF_INET6 for listener in opened)

    def _report(self, asked: str, reason: str) -> None:
        if (asked, reason) in self._told or len(self._told) > REPORTS_LIMIT:
            return
        self._told.add((asked, reason))
        if len(self._told) > REPORTS_LIMIT:
            self._tell("", "")
        else:
            self._tell(asked, reason)
