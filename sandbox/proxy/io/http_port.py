"""EFFECT: a client at a proxy's HTTP port: CONNECT and whole URLs, each request judged by itself.

Both sides are spoken through h11. A client's request is parsed, judged and written anew, so no server reads bytes that
were read in another way here (request smuggling).
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import h11

from sandbox.base import host_patterns
from sandbox.proxy.io.dialler import Unreachable
from sandbox.proxy.policy.policy import NOT_ALLOWED, HostRefused

if TYPE_CHECKING:
    from sandbox.proxy.io.byte_relay import ByteRelay
    from sandbox.proxy.io.connection import Connection
    from sandbox.proxy.io.dialler import Dialler, Opened

_HEAD_LIMIT = 1 << 16
_CHUNK = 1 << 16
_HEAD_SECONDS = 60.0
_IDLE_SECONDS = 600.0
# headers about one connection alone, which are not passed on to the next (RFC 9110, 7.6.1)
_HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"upgrade",
    )
)
_URL = re.compile(r"http://([^/?#]*)([/?][^#]*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:]*)(?::([0-9]{1,5}))?")
_LAST_PORT = 65535
_SWITCHING, _BAD_REQUEST, _FORBIDDEN, _WHO, _BAD_GATEWAY = 101, 400, 403, 407, 502
_ANOTHERS = "this proxy serves another task, or the password in the task's proxy variables was left out\n"


class _Bad(Exception):
    """A request that cannot be understood."""


def split_authority(text: str, default: int | None) -> tuple[str, int]:
    """The host and the port in a URL or a CONNECT.

    Raises:
        ValueError: it names no host, or no port.
    """
    match = _AUTHORITY.fullmatch(text)
    if match is None or not match[1]:
        raise ValueError("it names no host")
    port = int(match[2]) if match[2] else default
    if port is None or not 0 < port <= _LAST_PORT:
        raise ValueError("it names no port")
    return match[1], port


def refusal_text(asked: str, reason: str) -> str:
    """The words in which a client is told of a refusal, and of its remedy."""
    told = f"{asked} is {reason}" if reason.startswith(("not on", "on the")) else f"{asked} is refused: {reason}"
    remedy = ""
    if reason == NOT_ALLOWED:
        entry = json.dumps(asked, ensure_ascii=False)
        remedy = f"add allow.network = [{entry}] to the task's config to reach it\n"
    return f"the sandbox refused this connection: {told}\n{remedy}"


class HttpClient:
    """A client of the port, until its connection ends.

    Args:
        early: bytes read of it already.
        password: asked of every client; empty where none is asked for.
    """

    def __init__(
        self,
        connection: Connection,
        dialler: Dialler,
        relay: ByteRelay,
        early: bytes,
        *,
        password: str = "",
    ) -> None:
        self._connection = connection
        self._dialler = dialler
        self._relay = relay
        self._password = password.encode()
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_LIMIT)
        self._http.receive_data(early)

    async def serve(self) -> None:
        """Answer its requests, one after the other."""
        seconds = _HEAD_SECONDS
        while True:
            try:
                async with asyncio.timeout(seconds):
                    request = await self._next_request()
                if request is None:
                    return
                if not self._may_ask(request):
                    await self._say(_WHO, _ANOTHERS, ("Proxy-Authenticate", 'Basic realm="sandbox"'))
                    return
                again = await self._answer(request)
            except TimeoutError:
                return
            except h11.RemoteProtocolError as error:
                await self._say(error.error_status_hint, f"this request is not understood: {error}\n")
                return
            except _Bad as error:
                await self._say(_BAD_REQUEST, f"this request is not understood: {error}\n")
                return
            except (HostRefused, Unreachable) as error:
                await self._fail(error)
                return
            if not again:
                return
            self._http.start_next_cycle()
            seconds = _IDLE_SECONDS

    async def tell(self, failed: HostRefused | Unreachable) -> None:
        """Answer the request that came to nothing."""
        await self._next_request()
        await self._fail(failed)

    async def _fail(self, failed: HostRefused | Unreachable) -> None:
        if isinstance(failed, HostRefused):
            await self._say(_FORBIDDEN, refusal_text(failed.asked, failed.reason))
        else:
            await self._say(_BAD_GATEWAY, f"{failed}\n")

    def _may_ask(self, request: h11.Request) -> bool:
        if not self._password:
            return True
        import base64
        from hmac import compare_digest

        for name, value in request.headers:
            if name == b"proxy-authorization":
                scheme, _, credential = value.partition(b" ")
                try:
                    _, _, password = base64.b64decode(credential.strip(), validate=True).partition(b":")
                except ValueError:
                    return False
                return scheme.lower() == b"basic" and compare_digest(password, self._password)
        return False

    async def _next_request(self) -> h11.Request | None:
        event = await self._event(self._http, self._connection)
        return event if isinstance(event, h11.Request) else None

    async def _event(self, http: h11.Connection, connection: Connection) -> Any:
        while True:
            event = http.next_event()
            if event is not h11.NEED_DATA:
                return event
            http.receive_data(await connection.recv(_CHUNK))

    async def _say(self, status: int, text: str, *more: tuple[str, str]) -> None:
        """Answer in words, and end the connection."""
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        body = text.encode("utf-8", "replace")
        headers = [
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
            *more,
        ]
        data = self._http.send(h11.Response(status_code=status, headers=headers))
        if self._http.their_state is not h11.ERROR:
            data = (data or b"") + (self._http.send(h11.Data(data=body)) or b"")
        else:
            data = (data or b"") + body
        await self._connection.send(data)
        await self._connection.part()

    async def _answer(self, request: h11.Request) -> bool:
        """Carry out a request; whether another request may follow."""
        if request.http_version not in (b"1.0", b"1.1"):
            raise _Bad("it is of another version than 1.1")
        if request.method == b"CONNECT":
            await self._connect(request)
            return False
        names = [name for name, _ in request.headers]
        if b"transfer-encoding" in names and b"content-length" in names:
            raise _Bad("it has two lengths")
        match = _URL.fullmatch(request.target.decode("ascii"))
        if match is None:
            raise _Bad("a proxy is asked for whole http:// URLs, and through CONNECT for anything else")
        try:
            host, port = split_authority(match[1], 80)
        except ValueError as error:
            raise _Bad(str(error)) from None
        upgrades = _upgrades(request)
        # proxies carry other protocols through a tunnel alone
        opened = await self._dialler.open(host, port, plain=not upgrades)
        with opened.connection:
            authority = host_patterns.spelled(opened.host, port).removesuffix(":80")
            return await self._forward(request, opened, authority, match[2] or "/", upgrades)

    async def _connect(self, request: h11.Request) -> None:
        try:
            host, port = split_authority(request.target.decode("ascii"), None)
        except ValueError as error:
            raise _Bad(str(error)) from None
        opened = await self._dialler.open(host, port)
        with opened.connection:
            data = self._http.send(h11.Response(status_code=200, headers=[], reason=b"Connection established"))
            await self._connection.send(data or b"")
            early, _ = self._http.trailing_data
            await self._relay.both(self._connection, opened.connection, early, opened.named)

    async def _forward(
        self, request: h11.Request, opened: Opened, authority: str, path: str, upgrades: list[tuple[bytes, bytes]]
    ) -> bool:
        server = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_LIMIT)
        if not path.startswith("/"):
            path = f"/{path}"
        target = f"http://{authority}{path}" if opened.proxy else path
        last = upgrades or [(b"Connection", b"close")]
        headers = [(b"Host", authority.encode()), *_end_to_end(request.headers, b"host"), *last]
        if opened.proxy is not None and opened.proxy.authorization:
            if request.method.upper() == b"TRACE":
                # a proxy may answer TRACE itself, with every header it got (RFC 9110, 9.3.8)
                raise _Bad("the host's own proxy would show the password it is told")
            headers.append((b"Proxy-Authorization", opened.proxy.authorization.encode()))
        try:
            head = server.send(h11.Request(method=request.method, target=target, headers=headers))
        except h11.LocalProtocolError as error:
            raise _Bad(str(error)) from None
        try:
            await opened.connection.send(head or b"")
        except OSError as error:
            raise Unreachable(f"{authority} hung up ({error.strerror or error})") from None
        body = asyncio.create_task(self._request_body(server, opened.connection))
        try:
            return await self._response(server, opened)
        finally:
            # the next request is read only once this one's body is not: both come from the client's connection
            body.cancel()
            await asyncio.wait((body,))
            if not body.cancelled():
                body.result()

    async def _request_body(self, server: h11.Connection, connection: Connection) -> None:
        try:
            while True:
                event = await self._event(self._http, self._connection)
                if not isinstance(event, (h11.Data, h11.EndOfMessage)):
                    break
                await connection.send(server.send(event) or b"")
                if isinstance(event, h11.EndOfMessage):
                    return
        except (h11.ProtocolError, OSError):
            pass
        # a part of the request did not come or could not be sent, and neither side waits for the rest
        connection.close(reset=True)

    async def _response(self, server: h11.Connection, opened: Opened) -> bool:
        """Pass a server's answer on; whether another request may follow."""
        try:
            while not isinstance(event := await self._event(server, opened.connection), h11.ConnectionClosed):
                if isinstance(event, h11.InformationalResponse) and event.status_code == _SWITCHING:
                    await self._switch(server, opened, event)
                    return False
                await self._connection.send(self._http.send(_again(event)) or b"")
                if isinstance(event, h11.EndOfMessage):
                    # a quick server answers before the end of the request was looked at: its body's task has a turn
                    await asyncio.sleep(0)
                    return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
            why = "it hung up"
        except (h11.ProtocolError, OSError) as error:
            why = str(error)
        if self._http.our_state is h11.SEND_RESPONSE:
            raise Unreachable(f"the server gave no answer that is understood ({why})")
        # the client sees by the reset that its answer is not whole
        self._connection.close(reset=True)
        return False

    async def _switch(self, server: h11.Connection, opened: Opened, event: h11.InformationalResponse) -> None:
        """Pass on an answer that switches protocols, then bytes both ways; h11 refuses a switch nobody asked for."""
        headers = [*_end_to_end(event.headers), *_named(event.headers, b"upgrade")]
        await self._connection.send(
            self._http.send(h11.InformationalResponse(status_code=_SWITCHING, headers=headers)) or b""
        )
        early, _ = server.trailing_data
        await self._connection.send(early)
        early, _ = self._http.trailing_data
        # a client may switch to TLS as well (RFC 2817)
        await self._relay.both(self._connection, opened.connection, early, opened.named)


def _upgrades(request: h11.Request) -> list[tuple[bytes, bytes]]:
    """The headers that ask a server for another protocol, as a WebSocket does; none where the request has a body."""
    names = {name for name, _ in request.headers}
    whole = request.method == b"GET" and request.http_version == b"1.1"
    if not whole or b"upgrade" not in _tokens(request.headers) or names & {b"content-length", b"transfer-encoding"}:
        return []
    return _named(request.headers, b"upgrade")


def _named(headers: Any, name: bytes) -> list[tuple[bytes, bytes]]:
    """The headers of that name, and one that says they are of this connection alone."""
    found = [(spelled, value) for spelled, value in headers.raw_items() if spelled.lower() == name]
    return [*found, (b"Connection", b"Upgrade")] if found else []


def _tokens(headers: Any) -> set[bytes]:
    """The options in the Connection headers."""
    return {token.strip().lower() for name, value in headers if name == b"connection" for token in value.split(b",")}


def _again(event: h11.Event) -> h11.Event:
    """A server's event as its client gets it."""
    if isinstance(event, h11.InformationalResponse):
        return h11.InformationalResponse(status_code=event.status_code, headers=_end_to_end(event.headers))
    if isinstance(event, h11.Response):
        headers = _end_to_end(event.headers)
        return h11.Response(status_code=event.status_code, headers=headers, reason=event.reason)
    return event


def _end_to_end(headers: Any, *without: bytes) -> list[tuple[bytes, bytes]]:
    """The headers that go on to the next connection, without those about this one, which names further ones itself."""
    dropped = (_tokens(headers) - {b"transfer-encoding", b"content-length"}).union(_HOP_BY_HOP, without)
    # spelling is kept: some servers are particular about it
    return [(name, value) for name, value in headers.raw_items() if name.lower() not in dropped]
