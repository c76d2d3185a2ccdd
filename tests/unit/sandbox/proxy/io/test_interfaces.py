"""This machine's own addresses, from the kernel and from libc: nothing is dialled while they are not known."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from sandbox.proxy.io import getifaddrs, interfaces
from tests.support.served_proxy import ServedProxy, all_of


@pytest.mark.skipif(not hasattr(socket, "AF_NETLINK"), reason="nothing to compare with")
def test_libc_tells_the_addresses_the_kernel_tells() -> None:
    own = getifaddrs.own_addresses()
    assert own == interfaces.own_addresses()
    assert "127.0.0.1" in own


def test_an_address_of_one_link_is_told_without_the_links_number() -> None:
    kept_by_bsd = socket.inet_pton(socket.AF_INET6, "fe80:4::1")
    assert getifaddrs.unscoped(kept_by_bsd) == socket.inet_pton(socket.AF_INET6, "fe80::1")
    other = socket.inet_pton(socket.AF_INET6, "fd00:4::1")
    assert getifaddrs.unscoped(other) == other


def test_nothing_is_dialled_while_this_machines_addresses_are_not_known() -> None:
    def unknown() -> frozenset[str]:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    with ServedProxy(["db.test"], hosts={"db.test": ["192.0.2.1"]}, own=unknown) as served, served.proxied() as client:
        client.sendall(b"CONNECT db.test:5432 HTTP/1.1\r\nHost: x\r\n\r\n")
        said = all_of(client)
    assert said.startswith(b"HTTP/1.1 502 ")
    assert b"this machine's own addresses, which are refused, are not known (Permission denied)" in said
