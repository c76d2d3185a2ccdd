"""EFFECT: the ports of a task's servers on the host, opened before it starts; held and reserved ones are refused."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

from sandbox.contract.errors import NotStarted, remedy
from sandbox.proxy.policy.service_addresses import DNS_PORT, HTTP_PORT, LOOPBACK, SOCKS_PORT

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The proxy's own ports in every task's network, which neither the task nor the host has there.
RESERVED = (HTTP_PORT, SOCKS_PORT, DNS_PORT)

_BACKLOG = 1024


def publish(ports: Iterable[int]) -> list[socket.socket]:
    """Listeners on the host's 127.0.0.1, through which the task's servers are reached.

    Raises:
        NotStarted: a port is in use, or not allowed to this user; no listener is left open.
    """
    opened: list[socket.socket] = []
    try:
        for port in ports:
            refuse_reserved(port, "localBinding")
            opened.append(_published(port))
    except BaseException:
        for one in opened:
            one.close()
        raise
    return opened


def _published(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        # connections of an earlier run may linger in TIME_WAIT (tcp(7))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise NotStarted(
                f"port {port} of allow.localBinding is held on this host",
                hint=f"stop what listens on 127.0.0.1:{port}, another task it may be, or give the task another port",
            ) from error
        raise NotStarted(
            f"port {port} of allow.localBinding cannot be opened on this host: {error.strerror}",
            hint="give the task a port from 1024 on" if error.errno == errno.EACCES else remedy(error),
        ) from error
    return listener


def refuse_reserved(port: int, field: str) -> None:
    """Refuse a port that is the proxy's own.

    Raises:
        NotStarted: the port is the proxy's own.
    """
    if port in RESERVED:
        raise NotStarted(
            f"port {port} of allow.{field} is where the sandbox's own proxy listens",
            hint="give the server another port",
        )
