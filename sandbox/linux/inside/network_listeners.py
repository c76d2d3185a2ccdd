"""EFFECT: the proxy's listeners in a task's network, and the files that make the proxy the task's resolver."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from typing import TYPE_CHECKING

from sandbox.contract.errors import NotStarted
from sandbox.linux.kernel import kernel_calls, unix_diag
from sandbox.proxy.io import interfaces
from sandbox.proxy.io.server_ports_on_host import refuse_reserved
from sandbox.proxy.policy.host_rules import HostRules
from sandbox.proxy.policy.service_addresses import DNS_PORT, HTTP_PORT, LOOPBACK, LOOPBACK6, SOCKS_PORT
from sandbox.proxy.policy.stand_in_addresses import FIRST4, FIRST6

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.proxy.policy.policy import Policy

_BACKLOG = 1024
_PLACE = "/dev/.vx-names"
_FREEBIND4, _FREEBIND6 = 15, 78
# a search list of the root alone: the resolver appends no domain, so lookups are only of names the task wrote
_RESOLVER = f"nameserver {LOOPBACK}\nsearch .\n"
_HOSTS = f"{LOOPBACK} localhost {{}}\n{LOOPBACK6} localhost ip6-localhost ip6-loopback\n"
_ORDINARY = re.compile(r"[A-Za-z0-9.-]+")


def usual() -> list[socket.socket]:
    """The listeners that every task has, in the current network namespace.

    Raises:
        NotStarted: a listener cannot be opened.
    """
    _introduce()
    where = [(socket.SOCK_STREAM, port) for port in (HTTP_PORT, SOCKS_PORT, DNS_PORT)]
    where.append((socket.SOCK_DGRAM, DNS_PORT))
    return [_listener(LOOPBACK, port, kind) for kind, port in where]


def literal(policy: Policy) -> list[socket.socket]:
    """Listeners at the addresses that a policy lists, which from now on belong to the task's network.

    Raises:
        NotStarted: a listener cannot be opened.
    """
    found: list[socket.socket] = []
    # most lists hold names alone, and to read them takes a while
    if not any(entry[0].isdigit() or entry.startswith("[") for entry in policy.allow):
        return found
    rules = HostRules(policy)
    for address in rules.addresses():
        try:
            interfaces.add_local_route(address, 128 if ":" in address else 32)
        except OSError:  # no IPv6 here; the address is reached through the proxy
            continue
        found += [_listener(address, port, socket.SOCK_STREAM) for port in rules.ports(address)]
    return found


def reached(policy: Policy) -> list[socket.socket]:
    """Listeners in the task's network at the host's loopback ports that a policy lists.

    Raises:
        NotStarted: a port is the proxy's own, or cannot be opened.
    """
    found = []
    for port in policy.host_ports:
        refuse_reserved(port, "network")
        found.append(_listener(LOOPBACK, port, socket.SOCK_STREAM))
        with contextlib.suppress(OSError):  # a machine without IPv6
            found.append(_bound(LOOPBACK6, port, socket.SOCK_STREAM))
    return found


def at(places: Iterable[tuple[str, int]]) -> list[socket.socket]:
    """Listeners at those of some addresses and ports that can be opened."""
    found = []
    for address, port in places:
        with contextlib.suppress(OSError):
            found.append(_bound(address, port, socket.SOCK_STREAM))
    return found


def name_resolver() -> dict[str, int]:
    """Mounts that make programs ask the proxy for names, by the file each is to lie over.

    Names of the host's own `/etc/hosts` are resolved by the proxy, too.
    """
    host = os.uname().nodename
    texts = {"/etc/resolv.conf": _RESOLVER, "/etc/hosts": _HOSTS.format(host if _ORDINARY.fullmatch(host) else "")}
    trees = {}
    # files on the sandbox's own /dev: to take down a file system of their own would take milliseconds
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
    """Mount the files of `name_resolver`; a machine without such a file asks its own loopback anyway (resolver(5))."""
    for path, tree in trees.items():
        if os.path.exists(path):
            kernel_calls.attach_mount_at(tree, os.path.realpath(path))
        os.close(tree)
        # a mount of a file without a name cannot be attached
        os.unlink(f"{_PLACE}/{os.path.basename(path)}")
    os.rmdir(_PLACE)


def _introduce() -> None:
    """Give loopback an address of each family, which programs look for before they ask for one (AI_ADDRCONFIG)."""
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


def asked() -> list[int]:
    """A netlink socket that tells of this network's sockets; none where the kernel has no such protocol."""
    try:
        return [socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, unix_diag.PROTOCOL).detach()]
    except OSError:
        return []
