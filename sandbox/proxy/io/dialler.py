"""EFFECT: the judgement of a target, one resolution of its name, and a connection to an address that passed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import socket
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from sandbox.base import host_patterns
from sandbox.proxy.io import interfaces
from sandbox.proxy.io.connection import NONBLOCKING, Connection
from sandbox.proxy.policy import address_guard
from sandbox.proxy.policy.host_rules import REMEMBERED
from sandbox.proxy.policy.policy import DENIED, UNTOLD, HostRefused

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from sandbox.proxy.policy.host_rules import HostRules
    from sandbox.proxy.policy.policy import Policy
    from sandbox.proxy.policy.stand_in_addresses import StandInAddresses

#: A resolved address: its family, and the argument of `connect`.
Address = tuple[int, tuple[Any, ...]]

_RESOLVE_SECONDS = 20.0
_CONNECT_SECONDS = 30.0
# the head start of an address before the next one is tried as well (RFC 8305, 5)
_STAGGER_SECONDS = 0.25
_OWN_SECONDS = 1.0
# the most names resolved at once, each in a thread, since getaddrinfo(3) blocks
_RESOLVERS = 16
_ASKED_LIMIT = 300
_PROXY = re.compile(r"(?:http://)?(?:([^/@]*)@)?(\[[^\]]*\]|[^/@:]+)(?::([0-9]+))?/*")
_HEAD_LIMIT = 16384
_OK = re.compile(rb"HTTP/1\.[01] 2[0-9][0-9][ \r]")


class Unreachable(Exception):
    """A target that the task may reach, and that does not answer; `refused` where its port is closed."""

    def __init__(self, why: str, *, refused: bool = False) -> None:
        super().__init__(why)
        self.refused = refused


class HostProxy(NamedTuple):
    """A proxy that the host itself goes through; `authorization` is a header's value, or empty."""

    host: str
    port: int
    authorization: str


class Opened(NamedTuple):
    """A connection that was opened.

    Attributes:
        host: the host that was judged, in canonical form: the one to name from here on, since a task's spelling (a
            stand-in, say) means something else on another machine.
        proxy: the host's own proxy where the connection leads to it and it wants whole URLs, else `None`.
        named: see `ByteRelay.both`; `None` where no name was asked for.
    """

    connection: Connection
    host: str
    proxy: HostProxy | None = None
    named: Callable[[str | None, str], object] | None = None


def host_addresses(host: str, port: int) -> list[Address]:
    """The addresses of a name, as this machine's resolver orders them.

    Raises:
        OSError: the resolver knows none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(int(family), address) for family, _, _, _, address in found]


def _address(host: str, port: int) -> Address:
    return int(socket.AF_INET6 if ":" in host else socket.AF_INET), (host, port)


class Dialler:
    """The opener of connections that a task's rules allow.

    Args:
        report: called with a refused target and the reason, before the task hears of it.
        resolve: finds the addresses of a name; called in a thread.
        own: finds every address of this machine; nothing is dialled while they are not known.
    """

    def __init__(
        self,
        policy: Policy,
        rules: HostRules,
        names: StandInAddresses,
        *,
        report: Callable[[str, str], None],
        resolve: Callable[[str, int], list[Address]] = host_addresses,
        own: Callable[[], frozenset[str]] = interfaces.own_addresses,
    ) -> None:
        self._upstream = policy.upstream
        self._rules = rules
        self._names = names
        self._report = report
        self._resolve = resolve
        # answers depend on the arguments alone, so each is kept
        self._canonical_host = functools.lru_cache(REMEMBERED)(host_patterns.canonical_host)
        self._kind = functools.lru_cache(REMEMBERED)(address_guard.kind)
        self._learn_own = own
        self._own: tuple[float, frozenset[str]] = (0.0, frozenset())
        #: Whether the task has ended, after which no target is dialled any more.
        self.closing = False

    @functools.cached_property
    def _threads(self) -> Executor:
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(_RESOLVERS, "resolver")

    def refuse(self, asked: str, reason: str) -> HostRefused:
        """A refusal, which is also reported."""
        self._report(asked, reason)
        return HostRefused(asked, reason)

    def judge(self, text: str, port: int) -> str:
        """The canonical form of the host that `text` names, if the task may dial it at `port`.

        Raises:
            HostRefused: the task may not.
        """
        host = self._names.host(self._form(text, port))
        if reason := self._rules.refusal(host, port):
            raise self.refuse(host_patterns.spelled(host, port), reason)
        return host

    def _form(self, text: str, port: int) -> str:
        try:
            return self._canonical_host(text)
        except host_patterns.PatternRefused as refused:
            shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:_ASKED_LIMIT])
            raise self.refuse(f"{shown}:{port}", refused.message) from None

    async def open(self, text: str, port: int, *, plain: bool = False) -> Opened:
        """Connect to a host as a client presents it.

        Args:
            text: the host, as the client spells it.
            port: its port.
            plain: whether the client speaks plain HTTP, which the host's own proxy may want to see.

        Raises:
            HostRefused: the task may not reach the host.
            Unreachable: the host does not answer.
        """
        host = self.judge(text, port)
        if self.closing:
            raise Unreachable("the task has ended")
        address = host_patterns.is_address(host)
        named = None if address or host == "localhost" else functools.partial(self._named, host, port)
        if address:
            self._guard(host, [host], port)
        if (proxy := self._proxy(host, port, plain=plain)) is not None:
            connection = await self._connect(await self._addresses(proxy.host, proxy.port))
            if plain:
                return Opened(connection, host, proxy)
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await _tunnel(connection, proxy, host_patterns.spelled(host, port))
            except TimeoutError:
                connection.close()
                raise Unreachable("the host's own proxy does not answer") from None
            except BaseException:
                connection.close()
                raise
            return Opened(connection, host, named=named)
        found = [_address(host, port)] if address else await self._addresses(host, port)
        if host != "localhost" and not address:
            passed = self._guard(host, [str(each[0]) for _, each in found], port)
            found = [each for each in found if str(each[1][0]) in passed]
        return Opened(await self._connect(found), host, named=named)

    def close(self) -> None:
        """Resolve no names any more."""
        if "_threads" in vars(self):
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _named(self, host: str, port: int, name: str | None, why: str) -> None:
        """Judge the name by which a client greets the server that it reached as `host`.

        Many names share a server, and the server goes by the one in the greeting.

        Raises:
            HostRefused: the task may not reach that name there, or the name cannot be told.
        """
        if name is None:
            raise self.refuse(host_patterns.spelled(host, port), f"{UNTOLD}: {why}")
        if (named := self._form(name, port)) == host:
            return
        if reason := self._rules.refusal(named, port):
            raise self.refuse(host_patterns.spelled(named, port), f"{reason}: asked of {host} over TLS")

    def _guard(self, host: str, addresses: list[str], port: int) -> set[str]:
        """The addresses among some that may be dialled.

        Raises:
            HostRefused: none may be.
        """
        passed, reason = set(), ""
        for address in addresses:
            # an address with a zone is one of a single link, whatever else it is (RFC 4007)
            bare = self._canonical_host(address.partition("%")[0])
            if any(self._rules.denies(each, port) for each in (bare, *address_guard.inside(bare))):
                reason = reason or DENIED
            elif self._rules.lists(bare, port):
                passed.add(address)
            elif found := "a link-local address" if "%" in address else self._kind(bare, self._own_addresses()):
                reason = reason or f"{bare} is {found}"
            else:
                passed.add(address)
        if not passed and addresses:
            raise self.refuse(host_patterns.spelled(host, port), reason)
        return passed

    def _own_addresses(self) -> frozenset[str]:
        now = time.monotonic()
        read, own = self._own
        if now - read > _OWN_SECONDS or not own:
            try:
                own = self._learn_own()
            except OSError as error:
                why = error.strerror or error
                raise Unreachable(f"this machine's own addresses, which are refused, are not known ({why})") from None
            self._own = (now, own)
        return own

    async def _addresses(self, host: str, port: int) -> list[Address]:
        if host_patterns.is_address(host):
            return [_address(host, port)]
        if host == "localhost":
            return [(socket.AF_INET, ("127.0.0.1", port)), (socket.AF_INET6, ("::1", port))]
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_RESOLVE_SECONDS):
                found = await loop.run_in_executor(self._threads, self._resolve, host, port)
        except TimeoutError:
            raise Unreachable(f"{host} was not resolved within {_RESOLVE_SECONDS:.0f} s") from None
        except (OSError, UnicodeError) as error:
            raise Unreachable(f"{host} has no address ({getattr(error, 'strerror', None) or error})") from None
        if not found:
            raise Unreachable(f"{host} has no address")
        return found

    async def _connect(self, addresses: list[Address]) -> Connection:
        try:
            if len(addresses) == 1:
                return await self._attempt(addresses[0])
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await self._race(addresses)
        except TimeoutError:
            raise Unreachable(f"no answer within {_CONNECT_SECONDS:.0f} s") from None
        except OSError as error:
            raise Unreachable(error.strerror or str(error), refused=isinstance(error, ConnectionRefusedError)) from None

    async def _race(self, addresses: list[Address]) -> Connection:
        waiting = list(addresses)
        running: set[asyncio.Task[Connection]] = set()
        failed: OSError = OSError("no address is left")
        try:
            while waiting or running:
                if waiting:
                    running.add(asyncio.create_task(self._attempt(waiting.pop(0))))
                patience = _STAGGER_SECONDS if waiting else None
                done, _ = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    running.remove(task)
                    try:
                        return task.result()
                    except OSError as error:
                        failed = error
            raise failed
        finally:
            for task in running:
                task.add_done_callback(_close_late)
                task.cancel()

    async def _attempt(self, address: Address) -> Connection:
        family, where = address
        connection = Connection(socket.socket(family, socket.SOCK_STREAM | NONBLOCKING))
        try:
            with contextlib.suppress(OSError):
                connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if not connection.begin(where):
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await connection.connected()
        except BaseException:
            connection.close()
            raise
        return connection

    def _proxy(self, host: str, port: int, *, plain: bool) -> HostProxy | None:
        url = self._upstream.http if plain else self._upstream.https
        if not url or _is_loopback(host) or excepted(host, port, self._upstream.except_for):
            return None
        match = _PROXY.fullmatch(url)
        if match is None:
            raise Unreachable("the host's own proxy is of a kind that is not spoken")
        user, name, number = match.groups()
        return HostProxy(name.strip("[]"), int(number or 80), _authorization(user) if user else "")


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine, which no other one can lead to."""
    return host in host_patterns.LOOPBACK or (host_patterns.is_address(host) and host.startswith("127."))


def _close_late(attempt: asyncio.Task[Connection]) -> None:
    """Close the connection of an attempt that came after the first one to succeed."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()


def _authorization(user: str) -> str:
    import base64
    from urllib.parse import unquote

    return "Basic " + base64.b64encode(unquote(user).encode()).decode("ascii")


def excepted(host: str, port: int, entries: tuple[str, ...]) -> bool:
    """Whether the host's `NO_PROXY` names a host, which is then dialled directly."""
    for entry in entries:
        name, _, number = entry.lower().partition(":") if entry.count(":") == 1 else (entry.lower(), "", "")
        if number and number != str(port):
            continue
        bare = name.strip("[]").removeprefix("*").removeprefix(".")
        if name == "*" or (
            bare and (host == bare or (host.endswith(f".{bare}") and not host_patterns.is_address(host)))
        ):
            return True
        if "/" in name and host_patterns.is_address(host) and _in_network(host, name):
            return True
    return False


def _in_network(address: str, network: str) -> bool:
    from ipaddress import ip_address, ip_network

    try:
        return ip_address(address) in ip_network(network, strict=False)
    except ValueError:
        return False


async def _tunnel(connection: Connection, proxy: HostProxy, target: str) -> None:
    head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if proxy.authorization:
        head += f"Proxy-Authorization: {proxy.authorization}\r\n"
    try:
        await connection.send(f"{head}\r\n".encode("ascii"))
        answer = b""
        # bytes are read one by one, since those behind the head belong to the tunnel
        while not answer.endswith(b"\r\n\r\n"):
            byte = await connection.recv(1)
            if not byte or len(answer) > _HEAD_LIMIT:
                raise Unreachable("the host's own proxy gave no answer")
            answer += byte
    except OSError as error:
        raise Unreachable(f"the host's own proxy failed ({error.strerror or error})") from None
    if not _OK.match(answer):
        said = answer.partition(b"\r\n")[0][:100].decode("ascii", "replace")
        raise Unreachable(f"the host's own proxy said {said!r}")
