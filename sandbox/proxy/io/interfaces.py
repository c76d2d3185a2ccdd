"""EFFECT: this machine's addresses, and on Linux the local routes of a network namespace, over netlink(7)."""

from __future__ import annotations

import os
import socket
import struct

_NEW_ADDRESS, _GET_ADDRESS, _NEW_ROUTE = 20, 22, 24
_REQUEST, _ACK, _DUMP, _CREATE, _EXCLUSIVE = 1, 4, 0x300, 0x400, 0x200
_ERROR, _DONE = 2, 3
_ADDRESS, _LOCAL = 1, 2
_DESTINATION, _OUTPUT = 1, 4
_HOST_SCOPE, _LOCAL_TABLE, _KERNEL, _LOCAL_TYPE = 254, 255, 2, 2
_LOOPBACK = 1  # the number of `lo` in every namespace
_EXISTS = 17

_HEADER = struct.Struct("=IHHII")
_ADDRESS_HEAD = struct.Struct("=BBBBI")
_ROUTE_HEAD = struct.Struct("=8BI")
_ATTRIBUTE = struct.Struct("=HH")


def own_addresses() -> frozenset[str]:
    """Every address of this machine's interfaces, on Linux of this namespace's, in canonical form.

    Raises:
        OSError: the kernel does not answer.
    """
    if not hasattr(socket, "AF_NETLINK"):
        from sandbox.proxy.io import getifaddrs

        return getifaddrs.own_addresses()
    found: set[str] = set()
    with _netlink() as kernel:
        kernel.send(_message(_GET_ADDRESS, _REQUEST | _DUMP, _ADDRESS_HEAD.pack(0, 0, 0, 0, 0)))
        while True:
            data = kernel.recv(1 << 16)
            for kind, body in _messages(data):
                if kind == _DONE:
                    return frozenset(found)
                if kind == _ERROR:
                    raise _failed(body)
                if kind == _NEW_ADDRESS:
                    family = body[0]
                    for number, value in _attributes(body[_ADDRESS_HEAD.size :]):
                        if number in (_ADDRESS, _LOCAL) and family in (socket.AF_INET, socket.AF_INET6):
                            found.add(socket.inet_ntop(family, value))


def add_loopback_address(address: str, prefix: int) -> None:
    """Add an address to `lo`.

    Raises:
        OSError: the kernel refuses it.
    """
    family, packed = _packed(address)
    head = _ADDRESS_HEAD.pack(family, prefix, 0, _HOST_SCOPE, _LOOPBACK)
    attributes = _attribute(_LOCAL, packed) + _attribute(_ADDRESS, packed)
    _ask(_message(_NEW_ADDRESS, _REQUEST | _ACK | _CREATE | _EXCLUSIVE, head + attributes))


def add_local_route(network: str, prefix: int) -> None:
    """Make every address of a network lead to this namespace itself.

    Raises:
        OSError: the kernel refuses it.
    """
    family, packed = _packed(network)
    head = _ROUTE_HEAD.pack(family, prefix, 0, 0, _LOCAL_TABLE, _KERNEL, _HOST_SCOPE, _LOCAL_TYPE, 0)
    attributes = _attribute(_DESTINATION, packed) + _attribute(_OUTPUT, struct.pack("=I", _LOOPBACK))
    _ask(_message(_NEW_ROUTE, _REQUEST | _ACK | _CREATE | _EXCLUSIVE, head + attributes))


def _netlink() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)


def _packed(address: str) -> tuple[int, bytes]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.inet_pton(family, address)


def _message(kind: int, flags: int, body: bytes) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body


def _attribute(number: int, value: bytes) -> bytes:
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), number) + value + bytes(-len(value) % 4)


def _messages(data: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at + _HEADER.size <= len(data):
        length, kind, *_ = _HEADER.unpack_from(data, at)
        if length < _HEADER.size:
            break
        found.append((kind, data[at + _HEADER.size : at + length]))
        at += length + -length % 4
    return found


def _attributes(data: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at + _ATTRIBUTE.size <= len(data):
        length, number = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            break
        found.append((number, data[at + _ATTRIBUTE.size : at + length]))
        at += length + -length % 4
    return found


def _ask(message: bytes) -> None:
    with _netlink() as kernel:
        kernel.send(message)
        for kind, body in _messages(kernel.recv(1 << 16)):
            if kind == _ERROR and (error := _failed(body)).errno not in (0, _EXISTS):
                raise error


def _failed(body: bytes) -> OSError:
    code = -int.from_bytes(body[:4], "little", signed=True)
    return OSError(code, os.strerror(code), "netlink")
