"""EFFECT: what the joiner leaves in a task's network: the proxy's listeners, and a resolver that is one of them."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from typing import TYPE_CHECKING

from sandbox.contract.errors import NotStarted
from sandbox.linux.kernel import kernel_calls
from sandbox.proxy.io import interfaces
from sandbox.proxy.io.published_ports import refuse_reserved
from sandbox.proxy.policy.host_rules import HostRules
from sandbox.proxy.policy.service_addresses import DNS_PORT, HTTP_PORT, LOOPBACK, LOOPBACK6, SOCKS_PORT
from sandbox.proxy.policy.stand_in_addresses import FIRST4, FIRST6

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.proxy.policy.policy import Policy

_BACKLOG = 1024
_PLACE = "/dev/.vx-names"
_FREEBIND4, _FREEBIND6 = 15, 78
# with no domain of the host's tried after a name, only what was asked for is told
_RESOLVER = f"nameserver {LOOPBACK}\nsearch .\n"
_HOSTS = f"{LOOPBACK} localhost {{}}\n{LOOPBACK6} localhost ip6-localhost ip6-loopback\n"
_ORDINARY = re.compile(r"[A-Za-z0-9.-]+")


def usual() -> list[socket.socket]:
    """The listeners every task has, in the current network namespace.

    Raises:
        NotStarted: one cannot be opened.
    """
    _introduce()
    where = [(socket.SOCK_STREAM, port) for port in (HTTP_PORT, SOCKS_PORT, DNS_PORT)]
    where.append((socket.SOCK_DGRAM, DNS_PORT))
    return [_listener(LOOPBACK, port, kind) for kind, port in where]


def literal(policy: Policy) -> list[socket.socket]:
    """Listeners at the addresses a policy lists, which are the task's network's own from now on.

    Raises:
        NotStarted: one cannot be opened.
    """
    found: list[socket.socket] = []
    # most lists hold names alone, and reading them takes a while
    if not any(entry[0].isdigit() or entry.startswith("[") for entry in policy.allow):
        return found
    rules = HostRules(policy)
    for address in rules.addresses():
        try:
            interfaces.add_local_route(address, 128 if ":" in address else 32)
        except OSError:  # no IPv6 here: through the proxy it is reached all the same
            continue
        found += [_listener(address, port, socket.SOCK_STREAM) for port in rules.ports(address)]
    return found


def reached(policy: Policy) -> list[socket.socket]:
    """Listeners at the host's loopback ports a policy lists, in the task's network.

    Raises:
        NotStarted: one is the proxy's own, or cannot be opened.
    """
    found = []
    for port in policy.host_ports:
        refuse_reserved(port, "network")
        found.append(_listener(LOOPBACK, port, socket.SOCK_STREAM))
        with contextlib.suppress(OSError):  # a machine without IPv6
            found.append(_bound(LOOPBACK6, port, socket.SOCK_STREAM))
    return found


def at(places: Iterable[tuple[str, int]]) -> list[socket.socket]:
    """Listeners at addresses and ports, those that can be opened."""
    found = []
    for address, port in places:
        with contextlib.suppress(OSError):
            found.append(_bound(address, port, socket.SOCK_STREAM))
    return found


def name_resolver() -> dict[str, int]:
    """Files to mount, by what they are to lie over, that have programs ask the proxy for names.

    Those the host itself lists are told as well.
    """
    host = os.uname().nodename
    texts = {"/etc/resolv.conf": _RESOLVER, "/etc/hosts": _HOSTS.format(host if _ORDINARY.fullmatch(host) else "")}
    trees = {}
    # on the anchor's own /dev: a file system of its own would have to be taken down again, which takes milliseconds
    os.mkdir(_PLACE, 0o755)
    for path, text in texts.items():
        file = f"{_PLACE}/{os.path.basename(path)}"
        made = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o444)
        os.write(made, text.encode("ascii"))
        os.close(made)
        trees[path] = kernel_calls.clone_tree(kernel_calls.AT_FDCWD, file)
        kernel_calls.set_mount_attributes(trees[path], "", add=kernel_calls.MOUNT_ATTR_RDONLY)
    return trees


def resolve(trees: dict[str, int]) -> None:
    """Put what `name_resolver` made in place; where there is no such file, programs ask this machine by themselves."""
    for path, tree in trees.items():
        if os.path.exists(path):
            kernel_calls.attach_mount_at(tree, os.path.realpath(path))
        os.close(tree)
        # what has no name any more cannot be attached
        os.unlink(f"{_PLACE}/{os.path.basename(path)}")
    os.rmdir(_PLACE)


def _introduce() -> None:
    """Give the loopback what programs look for before they ask for an address of either kind."""
    try:
        interfaces.add_loopback_address(FIRST4, 32)
    except OSError as error:
        raise NotStarted(f"the sandbox's network cannot be set up: {error.strerror}") from error
    with contextlib.suppress(OSError):  # a machine without IPv6
        interfaces.add_loopback_address(FIRST6, 128)
        interfaces.add_local_route(FIRST6, 64)


def _listener(address: str, port: int, kind: socket.SocketKind) -> socket.socket:
    try:
        return _bound(address, port, kind)
    except OSError as error:
        raise NotStarted(f"the sandbox's proxy cannot listen at {address}:{port}: {error.strerror}") from error


def _bound(address: str, port: int, kind: socket.SocketKind) -> socket.socket:
    six = ":" in address
    sock = socket.socket(socket.AF_INET6 if six else socket.AF_INET, kind | socket.SOCK_CLOEXEC)
    try:
        if six:
            sock.setsockopt(socket.IPPROTO_IPV6, _FREEBIND6, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IP, _FREEBIND4, 1)
        sock.bind((address, port))
        if kind == socket.SOCK_STREAM:
            sock.listen(_BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock
